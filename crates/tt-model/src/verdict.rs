//! The verdict: what the gate answers.

/// The reasons against an order intent, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Breach(pub u64);

macro_rules! breaches {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Breach {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            /// Every reason by bit, name first.
            pub const NAMES: &'static [(&'static str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

breaches! {
    /// Every order is stopped.
    KILL_GLOBAL = 0;
    /// The account's orders are stopped.
    KILL_ACCOUNT = 1;
    /// The strategy's orders are stopped.
    KILL_STRATEGY = 2;
    /// The instrument's orders are stopped.
    KILL_INSTRUMENT = 3;
    /// Only reducing orders are allowed.
    REDUCE_ONLY_STATE = 4;
    /// A reduce-only order would turn the position over.
    REDUCE_ONLY_FLIP = 5;
    /// The instrument is not in the table.
    INSTRUMENT_UNKNOWN = 6;
    /// The account may not trade the instrument.
    NOT_PERMITTED = 7;
    /// The instrument is halted.
    INSTRUMENT_HALTED = 8;
    /// The price is no multiple of the tick size.
    PRICE_TICK = 9;
    /// The price is zero or negative.
    PRICE_NONPOS = 10;
    /// The quantity is no multiple of the lot step.
    QTY_STEP = 11;
    /// The quantity is below the least allowed.
    QTY_MIN = 12;
    /// The quantity is above the most allowed.
    QTY_MAX = 13;
    /// The notional is below the least allowed.
    NOTIONAL_MIN = 14;
    /// The notional is above the most allowed.
    NOTIONAL_MAX = 15;
    /// The price is too far from the reference price.
    COLLAR_REF = 16;
    /// The price is too aggressive against the best opposite price.
    COLLAR_TOUCH = 17;
    /// The market state is too old, or its time is after the gate's.
    MD_STALE = 18;
    /// The book has no proof that the policy accepts.
    BOOK_UNVERIFIED = 19;
    /// The worst-case long position would exceed its limit.
    POS_LONG = 20;
    /// The worst-case short position would exceed its limit.
    POS_SHORT = 21;
    /// The gross exposure would exceed its limit.
    GROSS_EXPOSURE = 22;
    /// The net exposure would exceed its limit.
    NET_EXPOSURE = 23;
    /// Too many open orders.
    OPEN_ORDERS = 24;
    /// Too large an open quantity.
    OPEN_QTY = 25;
    /// Too large an open notional.
    OPEN_NOTIONAL = 26;
    /// The account sends too fast.
    RATE_ACCOUNT = 27;
    /// Orders for the instrument come too fast.
    RATE_INSTRUMENT = 28;
    /// Orders come too fast in total.
    RATE_GLOBAL = 29;
    /// Too many cancels for the orders sent.
    CANCEL_RATIO = 30;
    /// The client's identifier was used before.
    DUP_ID = 31;
    /// The same order was sent a moment ago.
    DUP_ORDER = 32;
    /// The order would match one of the account's own.
    SELF_MATCH = 33;
    /// The balance does not cover the order.
    BALANCE = 34;
    /// The margin does not cover the order.
    MARGIN = 35;
    /// The leverage would exceed its limit.
    LEVERAGE = 36;
    /// The day's loss limit is reached.
    DAILY_LOSS = 37;
    /// The drawdown limit is reached.
    DRAWDOWN = 38;
    /// The same order was executed too often.
    REPEAT_EXEC = 39;
    /// The intent's time to live is over.
    EXPIRED = 40;
    /// The producer's sequence number did not rise.
    SEQ_REPLAY = 41;
}

impl Breach {
    /// No reason.
    pub const NONE: Self = Self(0);

    /// Both masks together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the set bits, lowest first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(_, bit)| self.contains(*bit)).map(|(name, _)| *name)
    }
}

/// The gate's answer to one order intent: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Verdict {
    /// The gate's own sequence number.
    pub seq: u64,
    /// The intent's `client_id`.
    pub client_id: u64,
    /// Every reason that was found, enabled or not.
    pub reasons: Breach,
    /// The intent's `ts_ns`.
    pub ts_in: u64,
    /// When the verdict was made, on the same clock.
    pub ts_out: u64,
    /// The reference price that the collar used, in steps of `tick_size`.
    pub ref_px: i64,
    /// The worst-case position after the order, in lots.
    pub worst_pos: i64,
    /// The version of the limits that were read.
    pub limits_version: u32,
    /// The lowest set bit of `reasons & enabled`, 64 where there is none.
    pub first_bit: u8,
    /// 1 where the intent is accepted, 0 where it is refused.
    pub accept: u8,
    /// Zero.
    pub pad: u16,
}

const _: () = assert!(size_of::<Verdict>() == 64);
