//! Orders of the same terms.

use super::{Bits, Orders, Record};
use crate::index::hash;
use tt_model::{InstrumentId, IntentKind, OrderIntent, OrderSide};

/// Price and quantity that an intent asked for, and when it was accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(super) px: i64,
    pub(super) qty: i64,
    pub(super) accepted_ns: u64,
}

impl Asked {
    /// Returns the hash of these terms of an order with this route, side and kind.
    pub(super) fn hash(&self, of: &Way) -> u64 {
        let route = u64::from(of.account) | u64::from(of.strategy) << 16 | u64::from(of.instrument.0) << 32;
        let way = (of.side as u64) << 8 | u64::from(of.kind.0);
        let terms = hash(self.px.cast_unsigned(), self.qty.cast_unsigned());
        hash(terms, route ^ way.rotate_left(52))
    }
}

/// Route, side and kind of an order.
#[derive(PartialEq, Eq)]
pub(super) struct Way {
    account: u16,
    strategy: u16,
    instrument: InstrumentId,
    side: OrderSide,
    kind: IntentKind,
}

impl Way {
    #[inline(always)]
    pub(super) const fn of(record: &Record) -> Self {
        let Record { account, strategy, instrument, side, kind, .. } = *record;
        Self { account, strategy, instrument, side, kind }
    }

    #[inline(always)]
    const fn asked(order: &OrderIntent) -> Self {
        let OrderIntent { account, strategy, instrument, side, kind, .. } = *order;
        Self { account, strategy, instrument, side, kind }
    }
}

impl Orders {
    /// Returns the hash of the terms that `order` asks for.
    #[inline(always)]
    pub(crate) fn terms_hash(order: &OrderIntent) -> u64 {
        let asked = Asked { px: order.limit_px.0, qty: order.qty.0, accepted_ns: 0 };
        asked.hash(&Way::asked(order))
    }

    /// Keeps the terms that the order at `slot` was accepted with, whose hash is `hash`.
    pub(crate) fn keep_terms(&mut self, slot: u32, accepted_ns: u64, [px, qty]: [i64; 2], hash: u64) {
        let asked = Asked { px, qty, accepted_ns };
        let record = &mut self.records[slot as usize];
        debug_assert_eq!(hash, asked.hash(&Way::of(record)), "a record has the terms of its intent");
        record.bits.set(Bits::TERMS_KEPT);
        self.asked[slot as usize] = asked;
        self.terms.insert(hash, slot);
    }

    /// Returns the number of orders with the terms of `order`, whose hash is `hash`, that were accepted less than
    /// `window_ns` before `now_ns`, at most `most`.
    pub(crate) fn count_same(
        &self,
        now_ns: u64,
        (window_ns, most): (u64, u32),
        (order, hash): (&OrderIntent, u64),
    ) -> u32 {
        let way = Way::asked(order);
        let is_same = |slot: &u32| {
            let (record, other) = (&self.records[*slot as usize], &self.asked[*slot as usize]);
            (other.px, other.qty) == (order.limit_px.0, order.qty.0) && Way::of(record) == way
        };
        let is_recent = |slot: &u32| now_ns - self.asked[*slot as usize].accepted_ns < window_ns;
        // The chain has the latest first.
        let same = self.terms.chain(hash).filter(is_same).take_while(is_recent);
        same.take(most as usize).count() as u32
    }
}
