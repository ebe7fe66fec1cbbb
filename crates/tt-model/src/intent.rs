//! The order intent: what a strategy asks the gate.

use crate::{InstrumentId, Price, Qty};

/// One order intent as it travels through the ring: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct OrderIntent {
    /// The producer's own sequence number, rising by one.
    pub seq: u64,
    /// When the producer made it, nanoseconds or cycles on the gate's clock.
    pub ts_ns: u64,
    /// The strategy's own identifier of the order.
    pub client_id: u64,
    /// The limit price in steps of `tick_size`.
    pub limit_px: Price,
    /// The quantity in lots, positive.
    pub qty: Qty,
    /// The trigger price in steps of `tick_size`, zero where there is none.
    pub trigger_px: Price,
    /// The account's number.
    pub account: u16,
    /// The strategy's number.
    pub strategy: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// What is requested: an order of some kind, a cancel, a replace.
    pub kind: IntentKind,
    /// Buy or sell.
    pub side: OrderSide,
    /// The time in force.
    pub tif: TimeInForce,
    /// Reduce-only, post-only, close-position.
    pub flags: IntentFlags,
    /// Milliseconds after `ts_ns` at which the intent is void; zero for never.
    pub ttl_ms: u32,
}

const _: () = assert!(size_of::<OrderIntent>() == 64);

/// An order intent without its sequence number: 56 bytes, so that in a ring it shares its cache line with the number
/// that the ring keeps for every event anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OrderTerms {
    /// As [`OrderIntent::ts_ns`].
    pub ts_ns: u64,
    /// As [`OrderIntent::client_id`].
    pub client_id: u64,
    /// As [`OrderIntent::limit_px`].
    pub limit_px: Price,
    /// As [`OrderIntent::qty`].
    pub qty: Qty,
    /// As [`OrderIntent::trigger_px`].
    pub trigger_px: Price,
    /// As [`OrderIntent::account`].
    pub account: u16,
    /// As [`OrderIntent::strategy`].
    pub strategy: u16,
    /// As [`OrderIntent::instrument`].
    pub instrument: InstrumentId,
    /// As [`OrderIntent::kind`].
    pub kind: IntentKind,
    /// As [`OrderIntent::side`].
    pub side: OrderSide,
    /// As [`OrderIntent::tif`].
    pub tif: TimeInForce,
    /// As [`OrderIntent::flags`].
    pub flags: IntentFlags,
    /// As [`OrderIntent::ttl_ms`].
    pub ttl_ms: u32,
}

const _: () = assert!(size_of::<OrderTerms>() == 56);

impl OrderTerms {
    /// The intent with these terms and the sequence number `seq`.
    #[must_use]
    #[inline(always)]
    pub const fn numbered(self, seq: u64) -> OrderIntent {
        let Self { ts_ns, client_id, limit_px, qty, trigger_px, account, strategy, instrument, .. } = self;
        let Self { kind, side, tif, flags, ttl_ms, .. } = self;
        OrderIntent {
            seq,
            ts_ns,
            client_id,
            limit_px,
            qty,
            trigger_px,
            account,
            strategy,
            instrument,
            kind,
            side,
            tif,
            flags,
            ttl_ms,
        }
    }
}

impl OrderIntent {
    /// All but the sequence number.
    #[must_use]
    #[inline(always)]
    pub const fn terms(&self) -> OrderTerms {
        let Self { ts_ns, client_id, limit_px, qty, trigger_px, account, strategy, instrument, .. } = *self;
        let Self { kind, side, tif, flags, ttl_ms, .. } = *self;
        OrderTerms {
            ts_ns,
            client_id,
            limit_px,
            qty,
            trigger_px,
            account,
            strategy,
            instrument,
            kind,
            side,
            tif,
            flags,
            ttl_ms,
        }
    }
}

/// The kind of an order intent. Any byte may arrive; the gate rejects those without a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct IntentKind(pub u8);

impl IntentKind {
    /// A limit order.
    pub const LIMIT: Self = Self(0);
    /// A market order.
    pub const MARKET: Self = Self(1);
    /// A request to cancel the order `client_id`.
    pub const CANCEL: Self = Self(2);
    /// A request to replace price, quantity and trigger of the order `client_id`; `qty` is the order's new total.
    pub const REPLACE: Self = Self(3);
    /// A market order that waits for its trigger price.
    pub const STOP_MARKET: Self = Self(4);
    /// A limit order that waits for its trigger price.
    pub const STOP_LIMIT: Self = Self(5);

    /// Returns whether the kind has a name.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 <= Self::STOP_LIMIT.0
    }

    /// Returns whether the order waits for a trigger price.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        self.0 == Self::STOP_MARKET.0 || self.0 == Self::STOP_LIMIT.0
    }

    /// Returns whether the order has no limit price.
    #[must_use]
    pub const fn is_market(self) -> bool {
        self.0 == Self::MARKET.0 || self.0 == Self::STOP_MARKET.0
    }
}

/// The side of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OrderSide {
    /// Buy.
    #[default]
    Buy = 0,
    /// Sell.
    Sell = 1,
}

/// The time in force of an order. Any byte may arrive; the gate rejects those without a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct TimeInForce(pub u8);

impl TimeInForce {
    /// Until cancelled.
    pub const GOOD_TILL_CANCEL: Self = Self(0);
    /// Fill what is there, cancel the rest.
    pub const IMMEDIATE_OR_CANCEL: Self = Self(1);
    /// All or nothing.
    pub const FILL_OR_KILL: Self = Self(2);

    /// Returns whether the time in force has a name.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 <= Self::FILL_OR_KILL.0
    }
}

/// Bits of an intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct IntentFlags(pub u8);

impl IntentFlags {
    /// The order may only reduce a position.
    pub const REDUCE_ONLY: Self = Self(1);
    /// The order may only add liquidity.
    pub const POST_ONLY: Self = Self(2);
    /// The order closes a position; minimum sizes do not apply.
    pub const CLOSE_POSITION: Self = Self(4);
    /// Every bit that has a name.
    pub const ALL: Self = Self(7);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
