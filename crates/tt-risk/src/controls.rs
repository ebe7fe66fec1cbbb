//! What other threads may change while the gate runs.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use tt_model::{Breach, InstrumentId};

/// Every `u16` has a switch, so no look-up of an account or a strategy can miss.
const EVERY_U16: usize = 1 << 16;

/// Which orders a kill switch stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillSwitch {
    /// All of them.
    Global,
    /// Those of an account.
    Account(u16),
    /// Those of a strategy.
    Strategy(u16),
    /// Those for an instrument.
    Instrument(InstrumentId),
}

/// Kill switches, set and cleared by any thread, and the version of the limits in force, written by the gate's.
///
/// A switch that is set before an evaluation begins is seen by it.
#[derive(Debug)]
pub struct Controls {
    limits_version: AtomicU32,
    // A switch that is set holds the bit of its reason.
    global: AtomicU8,
    accounts: Box<[AtomicU8; EVERY_U16]>,
    strategies: Box<[AtomicU8; EVERY_U16]>,
    instruments: Box<[AtomicU8]>,
}

impl Controls {
    /// With switches for `instruments` and one more, which stands for all unknown ones.
    pub(crate) fn new(instruments: u32) -> Self {
        let every_u16 = || Box::new([const { AtomicU8::new(0) }; EVERY_U16]);
        Self {
            limits_version: AtomicU32::new(0),
            global: AtomicU8::new(0),
            accounts: every_u16(),
            strategies: every_u16(),
            instruments: (0..=instruments).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// Sets `switch`: from the next evaluation on its orders are refused. Cancels still pass. Returns whether it was
    /// clear before; `false`, too, for an instrument outside of the table, whose orders are refused anyway.
    pub fn kill(&self, switch: KillSwitch) -> bool {
        self.word(switch).is_some_and(|(word, bit)| word.swap(bit, Ordering::SeqCst) == 0)
    }

    /// Clears `switch`, returns whether it was set.
    pub fn revive(&self, switch: KillSwitch) -> bool {
        self.word(switch).is_some_and(|(word, _)| word.swap(0, Ordering::SeqCst) != 0)
    }

    /// Whether `switch` is set.
    #[must_use]
    pub fn is_killed(&self, switch: KillSwitch) -> bool {
        self.word(switch).is_some_and(|(word, _)| word.load(Ordering::SeqCst) != 0)
    }

    /// How often the limits have been changed.
    #[must_use]
    pub fn limits_version(&self) -> u32 {
        self.limits_version.load(Ordering::Acquire)
    }

    pub(crate) fn publish_limits_version(&self, version: u32) {
        self.limits_version.store(version, Ordering::Release);
    }

    /// The reasons that the four switches of an order give. `instrument` is within the table or one beyond.
    #[inline(always)]
    pub(crate) fn kill_bits(&self, account: u16, strategy: u16, instrument: usize) -> u64 {
        let read = |word: &AtomicU8| u64::from(word.load(Ordering::Acquire));
        read(&self.global)
            | read(&self.accounts[usize::from(account)])
            | read(&self.strategies[usize::from(strategy)])
            | read(&self.instruments[instrument])
    }

    /// The switch, and the bit that it holds when it is set.
    fn word(&self, switch: KillSwitch) -> Option<(&AtomicU8, u8)> {
        match switch {
            KillSwitch::Global => Some((&self.global, Breach::KILL_GLOBAL)),
            KillSwitch::Account(account) => Some((&self.accounts[usize::from(account)], Breach::KILL_ACCOUNT)),
            KillSwitch::Strategy(strategy) => Some((&self.strategies[usize::from(strategy)], Breach::KILL_STRATEGY)),
            KillSwitch::Instrument(InstrumentId(id)) => {
                // The last one belongs to no instrument.
                let known = self.instruments.split_last()?.1;
                known.get(id as usize).map(|word| (word, Breach::KILL_INSTRUMENT))
            }
        }
        .map(|(word, reason)| (word, reason.0 as u8))
    }
}
