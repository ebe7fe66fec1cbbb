//! The newest trades of an instrument, so that what a new subscription repeats counts once.

use tt_model::Nanos;

/// Trades that are remembered: a venue repeats at most fifty to a new subscription.
const TRADES: usize = 64;

/// Order of a trade relative to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TradeOrder {
    /// It is the newest.
    Next,
    /// It is new, but older than one that came before.
    Late,
    /// It came before.
    Repeated,
}

/// Numbers of the newest trades in a ring.
#[derive(Debug)]
pub(crate) struct SeenTrades {
    ring: [u64; TRADES],
    next: usize,
    id_max: u64,
    ts_newest: Nanos,
}

impl Default for SeenTrades {
    fn default() -> Self {
        Self { ring: [0; TRADES], next: 0, id_max: 0, ts_newest: Nanos(0) }
    }
}

impl SeenTrades {
    /// Takes note of a trade. Most venues number upwards, some at random; without a number (zero), a repetition cannot be
    /// detected.
    #[inline]
    pub(crate) fn note(&mut self, trade_id: u64, ts_event: Nanos) -> TradeOrder {
        if trade_id <= self.id_max && trade_id != 0 && self.ring.contains(&trade_id) {
            return TradeOrder::Repeated;
        }
        self.ring[self.next % TRADES] = trade_id;
        self.next = self.next.wrapping_add(1);
        self.id_max = self.id_max.max(trade_id);
        if ts_event < self.ts_newest {
            return TradeOrder::Late;
        }
        self.ts_newest = ts_event;
        TradeOrder::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_repeated_and_late_trades() {
        let mut seen = SeenTrades::default();
        for (id, ts, order) in [
            (10, 100, TradeOrder::Next),
            (11, 100, TradeOrder::Next),
            (10, 100, TradeOrder::Repeated),
            (9, 90, TradeOrder::Late),
            (9, 90, TradeOrder::Repeated),
            (7, 120, TradeOrder::Next),
            (0, 120, TradeOrder::Next),
            (0, 120, TradeOrder::Next),
        ] {
            assert_eq!(seen.note(id, Nanos(ts)), order, "{id} {ts}");
        }
        for id in 12..12 + TRADES as u64 {
            assert_eq!(seen.note(id, Nanos(id * 1000)), TradeOrder::Next);
        }
        assert_eq!(seen.note(11, Nanos(100)), TradeOrder::Late, "beyond what is remembered");
    }
}
