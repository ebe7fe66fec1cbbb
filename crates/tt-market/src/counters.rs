//! What the engine counted, by venue.

use crate::drop_reason::DropReason;
use tt_model::Nanos;
use tt_venue::Venue;

macro_rules! venue_counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// One venue's counters. `frames` is `applied` plus the sum of `drops`, exactly.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct VenueCounters {
            $($(#[doc = $doc])+ pub $name: u64,)+
            /// Dropped frames by reason, in the order of [`DropReason::ALL`].
            pub drops: [u64; DropReason::COUNT],
        }

        const NAMED: usize = [$(stringify!($name)),+].len();
        pub(crate) const WORDS: usize = NAMED + DropReason::COUNT;

        impl VenueCounters {
            /// The counters' names and values, without the drops.
            #[must_use]
            pub const fn named(&self) -> [(&'static str, u64); NAMED] {
                [$((stringify!($name), self.$name)),+]
            }

            pub(crate) fn from_words(words: [u64; WORDS]) -> Self {
                let [$($name,)+ drops @ ..] = words;
                Self { $($name,)+ drops }
            }
        }
    };
}

venue_counters! {
    /// Frames and REST snapshots handed in.
    frames,
    /// Bytes of those.
    bytes,
    /// Frames that changed state, were kept for a join, or were control frames.
    applied,
    /// Tickers applied.
    tickers,
    /// Trades applied.
    trades,
    /// Trades made before a subscription that repeats them, and not seen yet; they are in their candles, and not in
    /// `trades`.
    history_trades,
    /// Trades that came before, as a new subscription repeats them; not applied again.
    duplicate_trades,
    /// Trades older than one that came before; they are in their candles' quantity and range, and set no last price.
    late_trades,
    /// Trades outside of the market, such as block trades: they are not in `trades`, and nothing shows them.
    off_market_trades,
    /// Book deltas applied, those from a backlog included.
    deltas,
    /// Book snapshots applied.
    snapshots,
    /// Levels applied, those of snapshots included.
    levels,
    /// Mark prices applied.
    mark_prices,
    /// Order updates applied.
    order_updates,
    /// Candles of the venue's own.
    candles,
    /// Liquidations.
    liquidations,
    /// Own executions, each once, however often the venue sends it.
    executions,
    /// Own executions that came before.
    duplicate_executions,
    /// Own orders that a list of all open ones no longer named.
    orders_ended,
    /// Balances applied.
    balances,
    /// Positions of the account applied.
    positions,
    /// Control frames.
    controls,
    /// Frames that the general path read because the scanner met something unexpected.
    general,
    /// Deltas kept for a join.
    kept,
    /// Kept deltas that the join applied.
    replayed,
    /// Kept deltas that the snapshot held already.
    superseded,
    /// Kept deltas that were thrown away with their backlog.
    discarded,
    /// Gaps found in a book's update ids.
    gaps,
    /// Deltas whose venue time was before that of the delta before; they count like any other.
    times_fell,
    /// Requests for a new snapshot.
    resyncs,
    /// Books that became valid.
    joins,
    /// Books that the venue itself restarted: numbers that fell, with a snapshot or along an unbroken chain.
    epochs,
    /// Checksums that fitted.
    crc_matches,
    /// Checksums that did not fit, including those that the engine no longer relies on.
    crc_mismatches,
    /// Tickers that fitted the book at the same update id.
    oracle_matches,
    /// REST snapshots that fitted the book at the same update id.
    snapshot_matches,
    /// REST snapshots that did not.
    snapshot_mismatches,
    /// Updates that followed the one before by number.
    sequence_matches,
    /// Frames after which best bid stood above best offer.
    crossed,
    /// Levels that were dropped at the level cap.
    levels_dropped,
    /// Prices too late for their candle.
    late_prices,
    /// Venue times more than [`CLOCKS_APART_MAX`] before or after the time of receipt: one of the two clocks is wrong, or
    /// the message is old. The message counts like any other.
    clocks_apart,
    /// Venue time to receive time of the last frame that has both, nanoseconds, negative where clocks disagree.
    lag_ns,
    /// The longest lag of a book's message so far, nanoseconds; zero while clocks disagree so that none was late.
    lag_max_ns,
}

/// How far a venue's time may be from the time of receipt before that is counted.
pub const CLOCKS_APART_MAX: Nanos = Nanos::from_secs(5);

impl Default for VenueCounters {
    fn default() -> Self {
        Self::from_words([0; WORDS])
    }
}

impl VenueCounters {
    /// Frames dropped for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// All dropped frames.
    #[must_use]
    pub fn drops_total(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Whether every frame is accounted for.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.frames == self.applied + self.drops_total()
    }

    /// Venue time to receive time of the last frame that has both, nanoseconds.
    #[must_use]
    pub const fn lag_signed_ns(&self) -> i64 {
        self.lag_ns as i64
    }

    /// Takes note of when a message was made and received; a time of zero is none.
    #[inline]
    pub(crate) fn note_lag(&mut self, ts_recv: Nanos, ts_event: Nanos) {
        if ts_event.0 != 0 {
            self.lag_ns = ts_recv.0.wrapping_sub(ts_event.0);
            // A lag that is negative is a large number here.
            if self.lag_ns > self.lag_max_ns.min(CLOCKS_APART_MAX.0) {
                self.note_unusual_lag();
            }
        }
    }

    /// The last lag is the longest, or beyond the bound in either direction.
    #[cold]
    fn note_unusual_lag(&mut self) {
        let apart = self.lag_ns.wrapping_add(CLOCKS_APART_MAX.0) > 2 * CLOCKS_APART_MAX.0;
        self.clocks_apart += u64::from(apart);
        self.lag_max_ns = self.lag_max_ns.max(self.lag_signed_ns().max(0).cast_unsigned());
    }

    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for (word, (_, value)) in words.iter_mut().zip(self.named()) {
            *word = value;
        }
        words[NAMED..].copy_from_slice(&self.drops);
        words
    }
}

/// Counters of all venues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    venues: [VenueCounters; Venue::COUNT],
}

impl Counters {
    /// One venue's counters.
    #[inline]
    #[must_use]
    pub const fn venue(&self, venue: Venue) -> &VenueCounters {
        &self.venues[venue as usize]
    }

    #[inline]
    pub(crate) fn venue_mut(&mut self, venue: Venue) -> &mut VenueCounters {
        &mut self.venues[venue as usize]
    }
}
