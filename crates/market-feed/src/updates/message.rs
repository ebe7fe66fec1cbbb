//! Messages of the streams, as JSON text.

use std::fmt::Write as _;
use std::sync::Arc;

use tt_market::BookStatus;
use tt_market::board::TradePrint;
use tt_market::venue_state::LiquidationState;
use tt_model::{Decimal, Nanos};
use tt_status::decimal_text::steps_text;
use tt_status::market::Contract;
use tt_status::market_streams::KnownRange;
use tt_venue::event::AggressorSide;
use tt_venue::listing::ContractUnit;

use super::book::Known;

/// What each message of an instrument says of it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// `"venue":..,"symbol":..,"instrument":..,"simulated":..`
    members: String,
    pub(super) tick_size: Decimal,
    pub(super) lot_size: Decimal,
    pub(super) unit: ContractUnit,
}

/// The state of a book in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) update_id: u64,
    pub(super) ts_event: Nanos,
    pub(super) ts_recv: Nanos,
    pub(super) status: BookStatus,
}

/// A level in a message: price, quantity, and the quantity before where it is a change.
pub(super) type Row = (i64, i64, Option<i64>);

impl Subject {
    pub(super) fn new(
        venue: &str,
        name: &str,
        instrument: u32,
        is_simulated: bool,
        steps: [Decimal; 2],
        unit: ContractUnit,
    ) -> Self {
        let (venue, name) = (serde_json::Value::from(venue), serde_json::Value::from(name));
        let members =
            format!("\"venue\":{venue},\"symbol\":{name},\"instrument\":{instrument},\"simulated\":{is_simulated}");
        let [tick_size, lot_size] = steps;
        Self { members, tick_size, lot_size, unit }
    }

    /// What each message of an account says of it.
    pub(super) fn of_account(venue: &str, is_simulated: bool) -> Self {
        let members = format!("\"venue\":{},\"simulated\":{is_simulated}", serde_json::Value::from(venue));
        Self { members, tick_size: Decimal::default(), lot_size: Decimal::default(), unit: ContractUnit::Base }
    }

    /// All levels of a view.
    pub(super) fn snapshot(
        &self,
        seq: u64,
        stamp: &Stamp,
        known: Known,
        sides: [&mut dyn Iterator<Item = Row>; 2],
    ) -> Arc<str> {
        let mut out = self.begin("snapshot", seq);
        self.push_stamp(&mut out, stamp);
        let contract = contract(self.unit);
        let (tick, lot) = (steps_text(1, self.tick_size), steps_text(1, self.lot_size));
        let _ = write!(
            out,
            ",\"tick_size\":\"{tick}\",\"lot_size\":\"{lot}\",\"contract\":{{\"kind\":\"{}\",\"size\":\"{}\"}}",
            contract.kind, contract.size
        );
        let range = serde_json::to_string(&known_range(known, self.tick_size)).unwrap_or_default();
        let _ = write!(out, ",\"known_range\":{range}");
        self.push_sides(&mut out, sides);
        out.into()
    }

    /// Levels of a view that changed since the message before.
    pub(super) fn delta(
        &self,
        seq: u64,
        previous_id: u64,
        stamp: &Stamp,
        sides: [&mut dyn Iterator<Item = Row>; 2],
    ) -> Arc<str> {
        let mut out = self.begin("delta", seq);
        let _ = write!(out, ",\"previous_id\":{previous_id}");
        self.push_stamp(&mut out, stamp);
        self.push_sides(&mut out, sides);
        out.into()
    }

    /// A proof that changed.
    pub(super) fn status(&self, seq: u64, stamp: &Stamp) -> Arc<str> {
        let mut out = self.begin("status", seq);
        self.push_stamp(&mut out, stamp);
        out.push('}');
        out.into()
    }

    /// Messages that this reader lost.
    pub(super) fn gap(&self, lost: u64) -> Arc<str> {
        format!("{{\"type\":\"gap\",{},\"lost\":{lost}}}", self.members).into()
    }

    /// Trades in the order of their numbers.
    pub(super) fn trades(&self, prints: &[TradePrint]) -> Arc<str> {
        let mut out = format!("{{\"type\":\"trades\",{},\"trades\":[", self.members);
        for (index, print) in prints.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let (px, qty) = (steps_text(print.px.0, self.tick_size), steps_text(print.qty.0, self.lot_size));
            let aggressor = aggressor(print.aggressor);
            // Writing to a String cannot fail.
            let _ = write!(
                out,
                "{comma}{{\"number\":{},\"trade_id\":{},\"px\":\"{px}\",\"qty\":\"{qty}\",\"aggressor\":\"{aggressor}\",\
                 \"is_late\":{},\"is_history\":{},\"event_unix_ns\":{},\"recv_unix_ns\":{}}}",
                print.number, print.trade_id, print.is_late, print.is_history, print.ts_event.0, print.ts_recv.0
            );
        }
        out.push_str("]}");
        out.into()
    }

    /// A liquidation, or none yet.
    pub(super) fn liquidations(&self, last: Option<LiquidationState>) -> Arc<str> {
        let mut out = format!("{{\"type\":\"liquidations\",{},\"liquidations\":[", self.members);
        if let Some(LiquidationState { side, px, qty, ts_event, ts_recv, count }) = last {
            // Writing to a String cannot fail.
            let _ = write!(
                out,
                "{{\"number\":{count},\"side\":\"{}\",\"px\":\"{px}\",\"qty\":\"{qty}\",\"ts_event\":{},\"ts_recv\":{}}}",
                aggressor(side),
                ts_event.0,
                ts_recv.0
            );
        }
        out.push_str("]}");
        out.into()
    }

    fn begin(&self, kind: &str, seq: u64) -> String {
        format!("{{\"type\":\"{kind}\",{},\"seq\":{seq}", self.members)
    }

    fn push_stamp(&self, out: &mut String, stamp: &Stamp) {
        let Stamp { update_id, ts_event, ts_recv, status } = *stamp;
        let time = |at: Nanos| if at.0 == 0 { "null".to_owned() } else { at.0.to_string() };
        let proof_id = status.proof_ids_ago.map(|ago| update_id.wrapping_sub(u64::from(ago)));
        let (proof_id, age) = match proof_id {
            Some(id) => (id.to_string(), format!("{:.3}", f64::from(status.proof_age_us) / 1e3)),
            None => ("null".to_owned(), "null".to_owned()),
        };
        let _ = write!(
            out,
            ",\"update_id\":{update_id},\"ts_event\":{},\"ts_recv\":{},\"proof\":\"{}\",\"proof_update_id\":{proof_id},\
             \"proof_age_ms\":{age},\"is_truncated\":{}",
            time(ts_event),
            time(ts_recv),
            status.proof.name(),
            status.is_truncated
        );
    }

    fn push_sides(&self, out: &mut String, sides: [&mut dyn Iterator<Item = Row>; 2]) {
        let (tick, lot) = (StepText::new(self.tick_size), StepText::new(self.lot_size));
        for (name, side) in ["bids", "asks"].into_iter().zip(sides) {
            let _ = write!(out, ",\"{name}\":[");
            for (index, (px, qty, old)) in side.enumerate() {
                out.push_str(if index == 0 { "{\"px\":\"" } else { ",{\"px\":\"" });
                tick.push(out, px);
                out.push_str("\",\"qty\":\"");
                lot.push(out, qty);
                if let Some(old) = old {
                    out.push_str("\",\"old_qty\":\"");
                    lot.push(out, old);
                }
                out.push_str("\"}");
            }
            out.push(']');
        }
        out.push('}');
    }
}

const fn aggressor(side: AggressorSide) -> &'static str {
    match side {
        AggressorSide::Buy => "buy",
        AggressorSide::Sell => "sell",
    }
}

/// The range as text; `None` for a book that is known whole.
pub(super) fn known_range(known: Known, tick_size: Decimal) -> Option<KnownRange> {
    let [bid_px, ask_px] = known.map(|px| px.map(|px| steps_text(px, tick_size)));
    (bid_px.is_some() || ask_px.is_some()).then_some(KnownRange { bid_px, ask_px })
}

/// Writes whole steps as exact decimal text, as `steps_text` does.
struct StepText {
    mantissa: i64,
    decimals: usize,
}

impl StepText {
    fn new(step: Decimal) -> Self {
        let (mut mantissa, mut decimals) = (step.mantissa, usize::from(step.decimals));
        while decimals > 0 && mantissa % 10 == 0 && mantissa != 0 {
            mantissa /= 10;
            decimals -= 1;
        }
        Self { mantissa, decimals }
    }

    fn push(&self, out: &mut String, steps: i64) {
        let whole = i128::from(steps) * i128::from(self.mantissa);
        if whole < 0 {
            out.push('-');
        }
        let start = out.len();
        match u64::try_from(whole.unsigned_abs()) {
            Ok(whole) => drop(write!(out, "{whole:0width$}", width = self.decimals + 1)),
            Err(_) => drop(write!(out, "{:0width$}", whole.unsigned_abs(), width = self.decimals + 1)),
        }
        let point = out.len() - self.decimals;
        if self.decimals > 0 && point > start {
            out.insert(point, '.');
        }
    }
}

/// What quantities count.
pub(crate) fn contract(unit: ContractUnit) -> Contract {
    let (kind, size) = match unit {
        ContractUnit::Base => ("base", Decimal::new(1, 0)),
        ContractUnit::Linear(size) => ("linear", size),
        ContractUnit::Inverse(size) => ("inverse", size),
    };
    Contract { kind, size: steps_text(1, size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_the_text_that_other_answers_have() {
        for step in [
            Decimal::new(1, 8),
            Decimal::new(5, 1),
            Decimal::new(100, 2),
            Decimal::new(1_000_000, 8),
            Decimal::new(25, 0),
        ] {
            for steps in [0, 1, -7, 5, 123_456_789, i64::MAX, i64::MIN] {
                let mut text = String::new();
                StepText::new(step).push(&mut text, steps);
                assert_eq!(text, steps_text(steps, step), "{steps} of {step:?}");
            }
        }
    }
}
