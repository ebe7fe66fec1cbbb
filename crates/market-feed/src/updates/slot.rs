//! Events as slots of a ring.

use tt_market::board::TradePrint;
use tt_market::venue_state::LiquidationState;
use tt_market::{BookSide, BookStatus};
use tt_model::{Decimal, Nanos, Price, Qty};
use tt_venue::event::AggressorSide;

/// One slot: a cache line with its sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot([u64; 7]);

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Levels that changed follow.
    Delta,
    /// All levels follow.
    Snapshot,
    /// The proof changed.
    Status,
}

/// The first slot of a book's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(super) kind: Kind,
    /// The feed's own number of the instrument.
    pub(super) instrument: u32,
    /// Levels that follow.
    pub(super) levels: usize,
    pub(super) update_id: u64,
    pub(super) previous_id: u64,
    pub(super) ts_event: Nanos,
    pub(super) ts_recv: Nanos,
    pub(super) status: BookStatus,
    /// Events of this book that found no room before.
    pub(super) lost: u64,
}

/// An event's first slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Book(Head),
    Trade(u32, TradePrint),
    Liquidation(u32, LiquidationState),
    /// The instrument's steps from here on.
    Steps(u32, Decimal, Decimal),
    /// The worst bid and offer between which every level is known, of the snapshot that follows.
    Known(u32, [Option<i64>; 2]),
}

/// A level: its side, price, and quantity before and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) side: BookSide,
    pub(super) px: i64,
    pub(super) old: i64,
    pub(super) new: i64,
}

/// Levels in a slot of a delta.
pub(super) const CHANGES_PER_SLOT: usize = 2;
/// Levels in a slot of a snapshot.
pub(super) const LEVELS_PER_SLOT: usize = 3;

const DELTA: u64 = 1;
const SNAPSHOT: u64 = 2;
const STATUS: u64 = 3;
const TRADE: u64 = 4;
const STEPS: u64 = 5;
const KNOWN: u64 = 6;
const LIQUIDATION: u64 = 7;

const LEVELS_SHIFT: u32 = 40;
const SELL: u64 = 1 << 40;
const LATE: u64 = 1 << 41;
const HISTORY: u64 = 1 << 42;
const PX_DECIMALS_SHIFT: u32 = 43;
const QTY_DECIMALS_SHIFT: u32 = 51;

impl Slot {
    pub(super) fn of(first: &First) -> Self {
        match *first {
            First::Book(head) => {
                let kind = match head.kind {
                    Kind::Delta => DELTA,
                    Kind::Snapshot => SNAPSHOT,
                    Kind::Status => STATUS,
                };
                let word = kind | u64::from(head.instrument) << 8 | (head.levels as u64) << LEVELS_SHIFT;
                let (ts_event, ts_recv) = (head.ts_event.0, head.ts_recv.0);
                Self([word, head.update_id, head.previous_id, ts_event, ts_recv, head.status.to_bits(), head.lost])
            }
            First::Trade(instrument, print) => {
                let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
                let flags = flag(print.aggressor == AggressorSide::Sell, SELL)
                    | flag(print.is_late, LATE)
                    | flag(print.is_history, HISTORY);
                let word = TRADE | u64::from(instrument) << 8 | flags;
                let (px, qty) = (print.px.0 as u64, print.qty.0 as u64);
                Self([word, print.number, print.trade_id, px, qty, print.ts_event.0, print.ts_recv.0])
            }
            First::Liquidation(instrument, LiquidationState { side, px, qty, ts_event, ts_recv, count }) => {
                let word = LIQUIDATION
                    | u64::from(instrument) << 8
                    | if side == AggressorSide::Sell { SELL } else { 0 }
                    | u64::from(px.decimals) << PX_DECIMALS_SHIFT
                    | u64::from(qty.decimals) << QTY_DECIMALS_SHIFT;
                Self([word, px.mantissa as u64, qty.mantissa as u64, ts_event.0, ts_recv.0, count, 0])
            }
            First::Steps(instrument, tick_size, lot_size) => {
                let word = STEPS | u64::from(instrument) << 8;
                let (tick, lot) = (tick_size.mantissa as u64, lot_size.mantissa as u64);
                Self([word, tick, u64::from(tick_size.decimals), lot, u64::from(lot_size.decimals), 0, 0])
            }
            First::Known(instrument, [bid, ask]) => {
                let word = KNOWN | u64::from(instrument) << 8;
                let px = |px: Option<i64>| [u64::from(px.is_some()), px.unwrap_or_default() as u64];
                let ([has_bid, bid], [has_ask, ask]) = (px(bid), px(ask));
                Self([word, has_bid, bid, has_ask, ask, 0, 0])
            }
        }
    }

    /// The event that begins with this slot; `None` if none does.
    pub(super) fn first(&self) -> Option<First> {
        let Self([word, a, b, c, d, e, f]) = *self;
        let instrument = (word >> 8) as u32;
        let kind = match word & 0xff {
            DELTA => Kind::Delta,
            SNAPSHOT => Kind::Snapshot,
            STATUS => Kind::Status,
            TRADE => {
                let print = TradePrint {
                    number: a,
                    trade_id: b,
                    px: Price(c as i64),
                    qty: Qty(d as i64),
                    aggressor: aggressor(word),
                    is_late: word & LATE != 0,
                    is_history: word & HISTORY != 0,
                    ts_event: Nanos(e),
                    ts_recv: Nanos(f),
                };
                return Some(First::Trade(instrument, print));
            }
            LIQUIDATION => {
                let liquidation = LiquidationState {
                    side: aggressor(word),
                    px: Decimal::new(a as i64, (word >> PX_DECIMALS_SHIFT) as u8),
                    qty: Decimal::new(b as i64, (word >> QTY_DECIMALS_SHIFT) as u8),
                    ts_event: Nanos(c),
                    ts_recv: Nanos(d),
                    count: e,
                };
                return Some(First::Liquidation(instrument, liquidation));
            }
            STEPS => {
                let (tick_size, lot_size) = (Decimal::new(a as i64, b as u8), Decimal::new(c as i64, d as u8));
                return Some(First::Steps(instrument, tick_size, lot_size));
            }
            KNOWN => {
                let px = |has: u64, px: u64| (has == 1).then_some(px as i64);
                return Some(First::Known(instrument, [px(a, b), px(c, d)]));
            }
            _ => return None,
        };
        Some(First::Book(Head {
            kind,
            instrument,
            levels: (word >> LEVELS_SHIFT) as usize,
            update_id: a,
            previous_id: b,
            ts_event: Nanos(c),
            ts_recv: Nanos(d),
            status: BookStatus::from_bits(e),
            lost: f,
        }))
    }

    /// Up to [`CHANGES_PER_SLOT`] changes.
    pub(super) fn of_changes(changes: &[Change]) -> Self {
        let mut words = [0; 7];
        for (index, change) in changes.iter().take(CHANGES_PER_SLOT).enumerate() {
            words[3 * index] = change.px as u64;
            words[3 * index + 1] = change.old as u64;
            words[3 * index + 2] = change.new as u64;
            words[6] |= (change.side as u64) << index;
        }
        Self(words)
    }

    pub(super) fn change(&self, index: usize) -> Change {
        let word = |at: usize| self.0[3 * index + at] as i64;
        Change { side: side(self.0[6] >> index), px: word(0), old: word(1), new: word(2) }
    }

    /// Sets one of [`LEVELS_PER_SLOT`] levels of a snapshot.
    pub(super) fn set_level(&mut self, index: usize, side: BookSide, px: i64, qty: i64) {
        (self.0[2 * index], self.0[2 * index + 1]) = (px as u64, qty as u64);
        self.0[6] |= (side as u64) << index;
    }

    pub(super) fn level(&self, index: usize) -> (BookSide, i64, i64) {
        (side(self.0[6] >> index), self.0[2 * index] as i64, self.0[2 * index + 1] as i64)
    }
}

const fn aggressor(word: u64) -> AggressorSide {
    if word & SELL == 0 { AggressorSide::Buy } else { AggressorSide::Sell }
}

const fn side(bits: u64) -> BookSide {
    if bits & 1 == BookSide::Bid as u64 { BookSide::Bid } else { BookSide::Ask }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_market::Proof;

    #[test]
    fn events_come_out_as_they_went_in() {
        let status = BookStatus { proof: Proof::Oracle, is_truncated: true, proof_age_us: 77, ..BookStatus::default() };
        for (kind, lost) in [(Kind::Delta, 0), (Kind::Snapshot, u64::MAX), (Kind::Status, 9)] {
            let head = Head {
                kind,
                instrument: u32::MAX,
                levels: 139_264,
                update_id: u64::MAX,
                previous_id: 3,
                ts_event: Nanos(4),
                ts_recv: Nanos(5),
                status,
                lost,
            };
            assert_eq!(Slot::of(&First::Book(head)).first(), Some(First::Book(head)));
        }
        for (aggressor, is_late, is_history) in
            [(AggressorSide::Buy, true, false), (AggressorSide::Sell, false, true), (AggressorSide::Buy, false, false)]
        {
            let print = TradePrint {
                number: 1,
                trade_id: u64::MAX,
                px: Price(-3),
                qty: Qty(4),
                aggressor,
                is_late,
                is_history,
                ts_event: Nanos(5),
                ts_recv: Nanos(6),
            };
            assert_eq!(Slot::of(&First::Trade(8, print)).first(), Some(First::Trade(8, print)));
        }
        for side in [AggressorSide::Buy, AggressorSide::Sell] {
            let (px, qty) = (Decimal::new(i64::MAX, 18), Decimal::new(-7, 3));
            let liquidation =
                LiquidationState { side, px, qty, ts_event: Nanos(4), ts_recv: Nanos(5), count: u64::MAX };
            let first = First::Liquidation(u32::MAX, liquidation);
            assert_eq!(Slot::of(&first).first(), Some(first));
        }
        let steps = First::Steps(2, Decimal::new(5, 3), Decimal::new(1, 8));
        assert_eq!(Slot::of(&steps).first(), Some(steps));
        for range in [[None, None], [Some(-7), None], [None, Some(0)], [Some(i64::MAX), Some(9)]] {
            let known = First::Known(3, range);
            assert_eq!(Slot::of(&known).first(), Some(known));
        }
        assert_eq!(Slot::default().first(), None);
        let changes = [
            Change { side: BookSide::Ask, px: -1, old: 2, new: 0 },
            Change { side: BookSide::Bid, px: i64::MAX, old: 0, new: 7 },
        ];
        let slot = Slot::of_changes(&changes);
        assert_eq!([slot.change(0), slot.change(1)], changes);
        let mut slot = Slot::default();
        let levels = [(BookSide::Bid, 1, 2), (BookSide::Ask, -3, 4), (BookSide::Ask, 5, 6)];
        levels.iter().enumerate().for_each(|(index, (side, px, qty))| slot.set_level(index, *side, *px, *qty));
        assert_eq!([0, 1, 2].map(|index| slot.level(index)), levels);
    }
}
