//! Values as bytes.

use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, Notes, Notional, OrderIntent, OrderSide, Price, Qty, Report,
    ReportKind, TimeInForce, Verdict,
};
use tt_risk::{Limits, Mark};

use super::{REPORT, REPORT_FEE, REPORT_VERSION};
use crate::input::{Difference, StatedOrder, Statement};

pub(in crate::journal) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(in crate::journal) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(in crate::journal) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(in crate::journal) fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Adds `N` bytes to the end of `out`, to be set.
pub(in crate::journal) fn added<const N: usize>(out: &mut Vec<u8>) -> &mut [u8; N] {
    out.extend_from_slice(&[0; N]);
    out.last_chunk_mut().expect("they were added")
}

#[inline(always)]
pub(in crate::journal) fn set_intent(bytes: &mut [u8; 64], intent: &OrderIntent) {
    let OrderIntent { seq, ts_ns, client_id, limit_px, qty, trigger_px, account, strategy, instrument, .. } = *intent;
    let OrderIntent { kind, side, tif, flags, ttl_ms, .. } = *intent;
    put_words(bytes, [seq, ts_ns, client_id, word(limit_px.0), word(qty.0), word(trigger_px.0)]);
    bytes[48..50].copy_from_slice(&account.to_le_bytes());
    bytes[50..52].copy_from_slice(&strategy.to_le_bytes());
    bytes[52..56].copy_from_slice(&instrument.0.to_le_bytes());
    bytes[56..60].copy_from_slice(&[kind.0, side as u8, tif.0, flags.0]);
    bytes[60..].copy_from_slice(&ttl_ms.to_le_bytes());
}

/// Writes words to the beginning of `bytes`.
#[inline(always)]
fn put_words<const WORDS: usize>(bytes: &mut [u8], words: [u64; WORDS]) {
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

const fn word(value: i64) -> u64 {
    value.cast_unsigned()
}

#[inline(always)]
pub(in crate::journal) fn set_verdict(bytes: &mut [u8; 64], verdict: &Verdict) {
    let Verdict { seq, intent_seq, client_id, reasons, now_ns, worst_pos, generation, limits_version, .. } = *verdict;
    let Verdict { first_bit, first_level, accept, notes, producer, zero, .. } = *verdict;
    put_words(bytes, [seq, intent_seq, client_id, reasons.0, now_ns, word(worst_pos)]);
    bytes[48..52].copy_from_slice(&generation.to_le_bytes());
    bytes[52..56].copy_from_slice(&limits_version.to_le_bytes());
    bytes[56..60].copy_from_slice(&[first_bit, first_level, accept, notes.0]);
    bytes[60..62].copy_from_slice(&producer.to_le_bytes());
    bytes[62..].copy_from_slice(&zero.to_le_bytes());
}

/// Writes the fee and the version of a report, if it has one; returns the record's kind.
pub(in crate::journal) fn put_late_fields(out: &mut Vec<u8>, report: &Report) -> u16 {
    let Report { fee, version, .. } = *report;
    if (fee, version) == (0, 0) {
        return REPORT;
    }
    put_i64(out, fee);
    if version == 0 {
        return REPORT_FEE;
    }
    put_u64(out, version);
    REPORT_VERSION
}

#[inline(always)]
pub(in crate::journal) fn set_report(bytes: &mut [u8; 96], report: &Report) {
    let Report { kind, side, account, instrument, client_id, execution_id, undone_id, .. } = *report;
    let Report { qty, px, executed, order_qty, limit_px, trigger_px, .. } = *report;
    bytes[..2].copy_from_slice(&[kind.0, side as u8]);
    bytes[2..4].copy_from_slice(&account.to_le_bytes());
    bytes[4..8].copy_from_slice(&instrument.0.to_le_bytes());
    put_words(&mut bytes[8..16], [client_id]);
    bytes[16..32].copy_from_slice(&execution_id.to_le_bytes());
    bytes[32..48].copy_from_slice(&undone_id.to_le_bytes());
    put_words(&mut bytes[48..], [qty.0, px.0, executed.0, order_qty.0, limit_px.0, trigger_px.0].map(word));
}

pub(in crate::journal) fn put_statement(out: &mut Vec<u8>, statement: &Statement) {
    let Statement { account, orders, positions } = statement;
    put_u16(out, *account);
    put_u32(out, orders.len() as u32);
    for StatedOrder { client_id, instrument, side, qty, executed } in orders {
        put_u64(out, *client_id);
        put_u32(out, instrument.0);
        out.push(*side as u8);
        put_i64(out, qty.0);
        put_i64(out, executed.0);
    }
    put_u32(out, positions.len() as u32);
    for (instrument, qty) in positions {
        put_u32(out, instrument.0);
        put_i64(out, qty.0);
    }
}

pub(in crate::journal) fn put_difference(out: &mut Vec<u8>, difference: Difference) {
    match difference {
        Difference::Missing(client_id) => {
            out.push(0);
            put_u64(out, client_id);
        }
        Difference::Unknown(client_id) => {
            out.push(1);
            put_u64(out, client_id);
        }
        Difference::Terms(client_id) => {
            out.push(2);
            put_u64(out, client_id);
        }
        Difference::Position { instrument, ours, venue } => {
            out.push(3);
            put_u32(out, instrument.0);
            put_i64(out, ours.0);
            put_i64(out, venue.0);
        }
        Difference::Awaited(instrument) => {
            out.push(4);
            put_u32(out, instrument.0);
        }
    }
}

#[inline(always)]
pub(in crate::journal) fn set_mark(bytes: &mut [u8; 33], mark: &Mark) {
    let Mark { ref_px, bid_px, ask_px, ts_ns, is_verified, proof_ns: _ } = *mark;
    put_words(bytes, [word(ref_px.0), word(bid_px.0), word(ask_px.0), ts_ns]);
    bytes[32] = u8::from(is_verified);
}

pub(in crate::journal) fn put_limits(out: &mut Vec<u8>, limits: &Limits) {
    let Limits { px_step, qty_step, qty_min, qty_max, notional_min, notional_max, .. } = *limits;
    let Limits { position_long_max, position_short_max, open_qty_max, open_orders_max, enabled, .. } = *limits;
    let quantities = [qty_step, qty_min, qty_max, position_long_max, position_short_max, open_qty_max];
    put_i64(out, px_step.0);
    quantities.into_iter().for_each(|qty| put_i64(out, qty.0));
    [notional_min, notional_max].into_iter().for_each(|value| out.extend_from_slice(&value.0.to_le_bytes()));
    put_u32(out, open_orders_max);
    put_u64(out, enabled.0);
}

/// Takes values from the front of a body.
pub(in crate::journal) struct Take<'a>(pub(in crate::journal) &'a [u8]);

impl<'a> Take<'a> {
    pub(in crate::journal) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(in crate::journal) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(in crate::journal) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(in crate::journal) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(in crate::journal) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(in crate::journal) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(in crate::journal) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(in crate::journal) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(in crate::journal) fn side(&mut self) -> Option<OrderSide> {
        Some(if self.bool()? { OrderSide::Sell } else { OrderSide::Buy })
    }

    pub(in crate::journal) fn intent(&mut self) -> Option<OrderIntent> {
        Some(OrderIntent {
            seq: self.u64()?,
            ts_ns: self.u64()?,
            client_id: self.u64()?,
            limit_px: Price(self.i64()?),
            qty: Qty(self.i64()?),
            trigger_px: Price(self.i64()?),
            account: self.u16()?,
            strategy: self.u16()?,
            instrument: InstrumentId(self.u32()?),
            kind: IntentKind(self.u8()?),
            side: self.side()?,
            tif: TimeInForce(self.u8()?),
            flags: IntentFlags(self.u8()?),
            ttl_ms: self.u32()?,
        })
    }

    pub(in crate::journal) fn verdict(&mut self) -> Option<Verdict> {
        Some(Verdict {
            seq: self.u64()?,
            intent_seq: self.u64()?,
            client_id: self.u64()?,
            reasons: Breach(self.u64()?),
            now_ns: self.u64()?,
            worst_pos: self.i64()?,
            generation: self.u32()?,
            limits_version: self.u32()?,
            first_bit: self.u8()?,
            first_level: self.u8()?,
            accept: self.u8()?,
            notes: Notes(self.u8()?),
            producer: self.u16()?,
            zero: self.u16()?,
        })
    }

    pub(in crate::journal) fn report(&mut self) -> Option<Report> {
        Some(Report {
            kind: ReportKind(self.u8()?),
            side: self.side()?,
            account: self.u16()?,
            instrument: InstrumentId(self.u32()?),
            client_id: self.u64()?,
            execution_id: u128::from_le_bytes(self.array()?),
            undone_id: u128::from_le_bytes(self.array()?),
            qty: Qty(self.i64()?),
            px: Price(self.i64()?),
            executed: Qty(self.i64()?),
            order_qty: Qty(self.i64()?),
            limit_px: Price(self.i64()?),
            trigger_px: Price(self.i64()?),
            fee: 0,
            version: 0,
        })
    }

    pub(in crate::journal) fn statement(&mut self) -> Option<Statement> {
        let (account, orders) = (self.u16()?, self.u32()?);
        let order = |from: &mut Self| {
            Some(StatedOrder {
                client_id: from.u64()?,
                instrument: InstrumentId(from.u32()?),
                side: from.side()?,
                qty: Qty(from.i64()?),
                executed: Qty(from.i64()?),
            })
        };
        let orders = (0..orders).map(|_| order(self)).collect::<Option<_>>()?;
        let positions = self.u32()?;
        let positions =
            (0..positions).map(|_| Some((InstrumentId(self.u32()?), Qty(self.i64()?)))).collect::<Option<_>>()?;
        Some(Statement { account, orders, positions })
    }

    pub(in crate::journal) fn difference(&mut self) -> Option<Difference> {
        Some(match self.u8()? {
            0 => Difference::Missing(self.u64()?),
            1 => Difference::Unknown(self.u64()?),
            2 => Difference::Terms(self.u64()?),
            3 => {
                let instrument = InstrumentId(self.u32()?);
                Difference::Position { instrument, ours: Qty(self.i64()?), venue: Qty(self.i64()?) }
            }
            4 => Difference::Awaited(InstrumentId(self.u32()?)),
            _ => return None,
        })
    }

    pub(in crate::journal) fn mark(&mut self) -> Option<Mark> {
        let [ref_px, bid_px, ask_px] = [Price(self.i64()?), Price(self.i64()?), Price(self.i64()?)];
        Some(Mark { ref_px, bid_px, ask_px, ts_ns: self.u64()?, is_verified: self.bool()?, proof_ns: 0 })
    }

    pub(in crate::journal) fn limits(&mut self) -> Option<Limits> {
        let px_step = Price(self.i64()?);
        let mut qty = || self.i64().map(Qty);
        let [qty_step, qty_min, qty_max] = [qty()?, qty()?, qty()?];
        let [position_long_max, position_short_max, open_qty_max] = [qty()?, qty()?, qty()?];
        Some(Limits {
            px_step,
            qty_step,
            qty_min,
            qty_max,
            position_long_max,
            position_short_max,
            open_qty_max,
            notional_min: Notional(i128::from_le_bytes(self.array()?)),
            notional_max: Notional(i128::from_le_bytes(self.array()?)),
            open_orders_max: self.u32()?,
            enabled: Breach(self.u64()?),
        })
    }
}
