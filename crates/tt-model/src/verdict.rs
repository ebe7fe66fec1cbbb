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
    /// The intent is too old, its time to live is over, or its time is after the gate's.
    EXPIRED = 40;
    /// The producer's sequence number is not its last one plus 1.
    SEQ_REPLAY = 41;
    /// The account's orders, executions or positions are in doubt.
    UNRECONCILED = 42;
    /// A field has a value without a meaning.
    MALFORMED = 43;
    /// A table of the gate has no room for the order.
    CAPACITY = 44;
    /// The clock went back or stood still, and no later mark has been received since.
    CLOCK_FAULT = 45;
    /// The journal cannot be written.
    JOURNAL = 46;
    /// A replace of an order that is not open.
    ORDER_UNKNOWN = 47;
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
    /// The number of this verdict, from 1; 0 if the intent was answered without a judgement: its record had no room.
    pub seq: u64,
    /// The intent's `seq`.
    pub intent_seq: u64,
    /// The intent's `client_id`.
    pub client_id: u64,
    /// Every reason that was found, enabled or not.
    pub reasons: Breach,
    /// When the verdict was made, on the gate's clock.
    pub now_ns: u64,
    /// The worst-case position after the order, in lots.
    pub worst_pos: i64,
    /// The generation of the kill switches that were read.
    pub generation: u32,
    /// The version of the limits that were read.
    pub limits_version: u32,
    /// The lowest set bit of `reasons & enabled`, 64 if there is none.
    pub first_bit: u8,
    /// Level of the first reason: 1 firm, 2 account, 3 strategy, 4 instrument; 0 for a reason that has no level.
    pub first_level: u8,
    /// 1 if the intent is accepted, 0 if it is rejected.
    pub accept: u8,
    /// Remarks that do not reject.
    pub notes: Notes,
    /// The producer of the intent.
    pub producer: u16,
    /// Zero.
    pub zero: u16,
}

const _: () = assert!(size_of::<Verdict>() == 64);

/// Remarks of a verdict, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Notes(pub u8);

impl Notes {
    /// A cancel of an order that the gate does not know as open; it passes, for the venue may know it.
    pub const ORDER_UNKNOWN: Self = Self(1);
    /// A cancel that passed although an order would have been rejected: killed, in reduce mode, unreconciled, or before
    /// the account's state is restored.
    pub const FORCED: Self = Self(2);
    /// With the order, 70 % of a limit of positions, open orders, exposures, margin or losses is used.
    pub const NEAR_LIMIT: Self = Self(4);
    /// As [`Notes::NEAR_LIMIT`], 90 %.
    pub const AT_LIMIT: Self = Self(8);

    /// Returns whether every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the names of the set bits, lowest first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = [
            ("ORDER_UNKNOWN", Self::ORDER_UNKNOWN),
            ("FORCED", Self::FORCED),
            ("NEAR_LIMIT", Self::NEAR_LIMIT),
            ("AT_LIMIT", Self::AT_LIMIT),
        ];
        names.into_iter().filter(move |(_, note)| self.contains(*note)).map(|(name, _)| name)
    }
}
