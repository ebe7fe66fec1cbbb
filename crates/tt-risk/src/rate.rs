//! Message rates.

/// A message rate: `per_second` on average and `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages per second on average; zero rejects every message.
    pub per_second: u32,
    /// Messages at once after a pause; zero rejects every message.
    pub burst: u32,
}

impl Rate {
    /// Practically no limit: 1e9 per second, 4e9 at once.
    pub const UNLIMITED: Self = Self { per_second: 1_000_000_000, burst: u32::MAX };
}

/// The generic cell rate algorithm: a message is due one `interval_ns` after its predecessor, and may be early by the
/// burst. At `due_ns` the full burst is available again.
///
/// If the clock steps back, `due_ns` is further ahead and the rate becomes stricter. Times are below 2^63 (the gate
/// rejects later ones), an interval is at most 1 s and a burst 2^32 intervals, so that no sum exceeds 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    due_ns: u64,
    interval_ns: u64,
    /// A message that is this early, or earlier, is rejected.
    early_ns: u64,
}

impl Bucket {
    /// Rejects every message.
    pub(crate) const CLOSED: Self = Self { due_ns: 0, interval_ns: 1, early_ns: 0 };

    /// Sets a new rate; earlier messages still count.
    pub(crate) fn set(&mut self, rate: Rate) {
        let due_ns = self.due_ns;
        *self = match (u64::from(rate.per_second), u64::from(rate.burst)) {
            (0, _) | (_, 0) => Self { due_ns, ..Self::CLOSED },
            (per_second, burst) => {
                let interval_ns = 1_000_000_000_u64.div_ceil(per_second);
                Self { due_ns, interval_ns, early_ns: interval_ns * (burst - 1) + 1 }
            }
        };
    }

    /// When the full burst is available again.
    pub(crate) const fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The same rate, with the full burst at `due_ns`.
    pub(crate) const fn due_at(self, due_ns: u64) -> Self {
        Self { due_ns, ..self }
    }

    /// Returns whether a message at `now_ns` exceeds the rate.
    #[inline(always)]
    pub(crate) const fn is_early(&self, now_ns: u64) -> bool {
        self.due_ns.saturating_sub(now_ns) >= self.early_ns
    }

    /// Counts a message at `now_ns` if `pass` is all ones; does nothing if `pass` is zero.
    #[inline(always)]
    pub(crate) const fn count(&mut self, now_ns: u64, pass: u64) {
        let ahead_ns = self.due_ns.saturating_sub(now_ns);
        let due_ns = now_ns.wrapping_add(ahead_ns).wrapping_add(self.interval_ns);
        self.due_ns ^= (self.due_ns ^ due_ns) & pass;
    }
}

crate::fields::visit!(Rate: per_second, burst);
crate::fields::visit!(Bucket: due_ns, interval_ns, early_ns);
