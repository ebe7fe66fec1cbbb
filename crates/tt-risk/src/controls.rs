//! Kill switches and the version of the limits, shared with other threads.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use tt_model::{Breach, InstrumentId, OrderIntent};

use crate::instrument::Mark;

/// Every `u16` has a switch, so that no lookup of an account or a strategy can fail.
const EVERY_U16: usize = 1 << 16;

/// The orders that a kill switch stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KillSwitch {
    /// All orders.
    #[default]
    Global,
    /// Orders of an account.
    Account(u16),
    /// Orders of a strategy.
    Strategy(u16),
    /// Orders in an instrument.
    Instrument(InstrumentId),
}

/// What a [`KillSwitch`] lets pass. Cancels pass in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Every order.
    #[default]
    Active,
    /// Orders that reduce a position.
    Reduce,
    /// No order.
    Kill,
}

/// In a switch's word: reduce mode.
const REDUCE: u8 = Breach::REDUCE_ONLY_STATE.0 as u8;

/// Kill switches, which any thread can set and clear, and what senders need of the limits, which the gate writes.
///
/// An evaluation sees every switch that was set before it began.
#[derive(Debug)]
pub struct Controls {
    limits_version: AtomicU32,
    /// The most that the limits allow an intent to be old.
    intent_age_max_ns: AtomicU64,
    /// Number of changes of switches.
    generation: AtomicU32,
    // A switch contains the bit of its reason, `REDUCE`, or zero if it is active.
    global: AtomicU8,
    accounts: Box<[AtomicU8; EVERY_U16]>,
    strategies: Box<[AtomicU8; EVERY_U16]>,
    instruments: Box<[AtomicU8]>,
}

impl Controls {
    /// Creates switches for `instruments`, all active.
    ///
    /// A driver that records what its gate reads gives these to other threads, and lets the gate's own follow them
    /// ([`follow`](Self::follow)).
    #[must_use]
    pub fn new(instruments: u32) -> Self {
        let every_u16 = || Box::new([const { AtomicU8::new(0) }; EVERY_U16]);
        Self {
            limits_version: AtomicU32::new(0),
            intent_age_max_ns: AtomicU64::new(u64::MAX),
            generation: AtomicU32::new(0),
            global: AtomicU8::new(0),
            accounts: every_u16(),
            strategies: every_u16(),
            instruments: (0..=instruments).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// Sets `switch` to `mode` from the next evaluation on; returns the mode before.
    ///
    /// Returns `None` for an instrument outside the capacity, whose orders are rejected anyway.
    pub fn set_mode(&self, switch: KillSwitch, mode: Mode) -> Option<Mode> {
        let (word, kill) = self.word(switch)?;
        let value = match mode {
            Mode::Active => 0,
            Mode::Reduce => REDUCE,
            Mode::Kill => kill,
        };
        let before = mode_of(word.swap(value, Ordering::SeqCst));
        if before != mode {
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        Some(before)
    }

    /// Sets `switch` to reduce mode unless it is killed; returns whether it was active.
    pub fn reduce(&self, switch: KillSwitch) -> bool {
        let reduced = self
            .word(switch)
            .is_some_and(|(word, _)| word.compare_exchange(0, REDUCE, Ordering::SeqCst, Ordering::SeqCst).is_ok());
        if reduced {
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        reduced
    }

    /// Kills `switch`: the gate rejects its orders from the next evaluation on, and still accepts cancels.
    ///
    /// Returns whether the switch was not killed. Also returns `false` for an instrument outside the capacity.
    pub fn kill(&self, switch: KillSwitch) -> bool {
        self.set_mode(switch, Mode::Kill).is_some_and(|before| before != Mode::Kill)
    }

    /// Sets `switch` to active; returns whether it was not.
    pub fn revive(&self, switch: KillSwitch) -> bool {
        self.set_mode(switch, Mode::Active).is_some_and(|before| before != Mode::Active)
    }

    /// Returns whether `switch` is killed.
    #[must_use]
    pub fn is_killed(&self, switch: KillSwitch) -> bool {
        self.mode(switch) == Mode::Kill
    }

    /// Returns the mode of `switch`; [`Mode::Active`] for an instrument outside the capacity.
    #[must_use]
    pub fn mode(&self, switch: KillSwitch) -> Mode {
        self.word(switch).map_or(Mode::Active, |(word, _)| mode_of(word.load(Ordering::SeqCst)))
    }

    /// Returns the number of instruments that have a switch.
    #[must_use]
    pub fn instruments(&self) -> u32 {
        self.instruments.len() as u32 - 1
    }

    /// Sets every switch to its mode in `other`, and calls `see` with each that changes.
    pub fn follow(&self, other: &Self, mut see: impl FnMut(KillSwitch, Mode)) {
        let mut follow = |own: &AtomicU8, other: &AtomicU8, switch: KillSwitch| {
            let value = other.load(Ordering::SeqCst);
            if own.load(Ordering::SeqCst) != value {
                own.store(value, Ordering::SeqCst);
                self.generation.fetch_add(1, Ordering::SeqCst);
                see(switch, mode_of(value));
            }
        };
        follow(&self.global, &other.global, KillSwitch::Global);
        for (number, (own, other)) in (0..=u16::MAX).zip(self.accounts.iter().zip(&other.accounts[..])) {
            follow(own, other, KillSwitch::Account(number));
        }
        for (number, (own, other)) in (0..=u16::MAX).zip(self.strategies.iter().zip(&other.strategies[..])) {
            follow(own, other, KillSwitch::Strategy(number));
        }
        let known = self.instruments.len() - 1;
        for (number, (own, other)) in (0..).zip(self.instruments[..known].iter().zip(&other.instruments)) {
            follow(own, other, KillSwitch::Instrument(InstrumentId(number)));
        }
    }

    /// Calls `see` with each switch that is not active.
    pub fn each_mode(&self, mut see: impl FnMut(KillSwitch, Mode)) {
        let mut look = |word: &AtomicU8, switch: KillSwitch| match mode_of(word.load(Ordering::SeqCst)) {
            Mode::Active => {}
            mode @ (Mode::Reduce | Mode::Kill) => see(switch, mode),
        };
        look(&self.global, KillSwitch::Global);
        for (number, word) in (0..=u16::MAX).zip(&self.accounts[..]) {
            look(word, KillSwitch::Account(number));
        }
        for (number, word) in (0..=u16::MAX).zip(&self.strategies[..]) {
            look(word, KillSwitch::Strategy(number));
        }
        let known = self.instruments.len() - 1;
        for (number, word) in (0..).zip(&self.instruments[..known]) {
            look(word, KillSwitch::Instrument(InstrumentId(number)));
        }
    }

    /// Returns the number of changes of switches, as in [`Verdict::generation`](tt_model::Verdict::generation).
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Returns the number of changes of limits, as in [`Verdict::limits_version`](tt_model::Verdict::limits_version).
    #[must_use]
    pub fn limits_version(&self) -> u32 {
        self.limits_version.load(Ordering::Acquire)
    }

    /// Publishes the number of changes of limits. The gate does so on its own switches.
    pub fn publish_limits_version(&self, version: u32) {
        self.limits_version.store(version, Ordering::Release);
    }

    /// Publishes how old an intent may be, in nanoseconds, for [`is_expired`](Self::is_expired).
    pub fn publish_intent_age_max(&self, age_max_ns: u64) {
        self.intent_age_max_ns.store(age_max_ns, Ordering::Release);
    }

    /// Returns whether an intent is [`EXPIRED`](Breach::EXPIRED) at `now_ns` by the limits in force: its time to live is
    /// over, it is too old, or it is made in the future.
    #[must_use]
    pub fn is_expired(&self, now_ns: u64, intent: &OrderIntent) -> bool {
        is_expired(now_ns, intent, self.intent_age_max_ns.load(Ordering::Acquire))
    }

    /// Returns the reasons from the four switches of an order. `instrument` is at most the table's last index.
    #[inline(always)]
    pub(crate) fn kill_bits(&self, account: u16, strategy: u16, instrument: usize) -> u64 {
        let read = |word: &AtomicU8| u64::from(word.load(Ordering::Acquire));
        read(&self.global)
            | read(&self.accounts[usize::from(account)])
            | read(&self.strategies[usize::from(strategy)])
            | read(&self.instruments[instrument])
    }

    /// Asks for the switch of an instrument, which is at most the table's last index.
    #[inline(always)]
    pub(crate) fn prefetch(&self, instrument: usize) {
        tt_simd::prefetch(&self.instruments[instrument]);
    }

    /// Returns the switch and its bit.
    fn word(&self, switch: KillSwitch) -> Option<(&AtomicU8, u8)> {
        match switch {
            KillSwitch::Global => Some((&self.global, Breach::KILL_GLOBAL)),
            KillSwitch::Account(account) => Some((&self.accounts[usize::from(account)], Breach::KILL_ACCOUNT)),
            KillSwitch::Strategy(strategy) => Some((&self.strategies[usize::from(strategy)], Breach::KILL_STRATEGY)),
            KillSwitch::Instrument(InstrumentId(id)) => {
                // The last switch is for unknown instruments.
                let known = self.instruments.split_last()?.1;
                known.get(id as usize).map(|word| (word, Breach::KILL_INSTRUMENT))
            }
        }
        .map(|(word, reason)| (word, reason.0 as u8))
    }
}

const fn mode_of(word: u8) -> Mode {
    match word {
        0 => Mode::Active,
        REDUCE => Mode::Reduce,
        _ => Mode::Kill,
    }
}

/// Returns whether an intent is too old at `now_ns`, or from the future.
pub(crate) fn is_expired(now_ns: u64, intent: &OrderIntent, age_max_ns: u64) -> bool {
    let ttl_ns = u64::from(intent.ttl_ms) * 1_000_000;
    let is_over = intent.ttl_ms != 0 && now_ns >= intent.ts_ns.saturating_add(ttl_ns);
    let is_ahead = intent.ts_ns > now_ns.saturating_add(Mark::AHEAD_MAX_NS);
    is_over || is_ahead || now_ns.saturating_sub(intent.ts_ns) > age_max_ns
}

crate::fields::visit_variants!(Mode: Active, Reduce, Kill);

impl crate::fields::Visit for alloc::sync::Arc<Controls> {
    fn visit(&mut self, fields: &mut crate::fields::Fields<'_>) {
        // How old an intent may be follows from the gate's rules.
        let Controls { limits_version, intent_age_max_ns: _, generation, global, accounts, strategies, instruments } =
            &**self;
        for counter in [limits_version, generation] {
            let mut value = counter.load(Ordering::SeqCst);
            crate::fields::Visit::visit(&mut value, fields);
            counter.store(value, Ordering::SeqCst);
        }
        let switches = [global].into_iter().chain(&accounts[..]).chain(&strategies[..]).chain(instruments);
        fields.rows(switches, |fields, switch| {
            let mut value = switch.load(Ordering::SeqCst);
            crate::fields::Visit::visit(&mut value, fields);
            switch.store(value, Ordering::SeqCst);
        });
    }
}

impl crate::fields::Visit for KillSwitch {
    fn visit(&mut self, fields: &mut crate::fields::Fields<'_>) {
        let (level, number) = match *self {
            Self::Global => (0, 0),
            Self::Account(account) => (1, u32::from(account)),
            Self::Strategy(strategy) => (2, u32::from(strategy)),
            Self::Instrument(InstrumentId(number)) => (3, number),
        };
        fields.narrow(self, level << 32 | u64::from(number), |word| {
            let number = word as u32;
            match word >> 32 {
                0 => Some(Self::Global),
                1 => number.try_into().ok().map(Self::Account),
                2 => number.try_into().ok().map(Self::Strategy),
                3 => Some(Self::Instrument(InstrumentId(number))),
                _ => None,
            }
        });
    }
}
