//! Message rates.

/// How many messages may pass: `burst` at once, and `per_second` on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages a second on average; zero lets nothing pass.
    pub per_second: u32,
    /// Messages at once after a rest; zero lets nothing pass.
    pub burst: u32,
}

impl Rate {
    /// As good as no limit: a billion a second, four billion at once.
    pub const UNLIMITED: Self = Self { per_second: 1_000_000_000, burst: u32::MAX };
}

/// The generic cell rate algorithm: a message is due one `interval` after the one before, and may be early by what the
/// burst allows. `due_ns` is when the bucket will be as after a rest again.
///
/// A clock that steps back makes `due_ns` lie further ahead: it may refuse, never grant, more than the rate. Times are
/// below 2^63 (the gate refuses later ones), so no sum here leaves 64 bits: an interval is at most 1 s, a burst 2^32 of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    due_ns: u64,
    interval_ns: u64,
    /// A message that would be this early, or earlier, does not pass.
    early_ns: u64,
}

impl Bucket {
    /// Lets nothing pass.
    pub(crate) const CLOSED: Self = Self { due_ns: 0, interval_ns: 1, early_ns: 0 };

    /// Takes a new rate; what has been sent already still counts.
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

    /// Whether a message at `now_ns` comes too fast.
    #[inline(always)]
    pub(crate) const fn is_early(&self, now_ns: u64) -> bool {
        self.due_ns.saturating_sub(now_ns) >= self.early_ns
    }

    /// Counts a message at `now_ns`, which [`is_early`](Self::is_early) lets pass, if `pass` is all ones; nothing if it
    /// is zero.
    #[inline(always)]
    pub(crate) const fn count(&mut self, now_ns: u64, pass: u64) {
        let ahead_ns = self.due_ns.saturating_sub(now_ns);
        let due_ns = now_ns.wrapping_add(ahead_ns).wrapping_add(self.interval_ns);
        self.due_ns ^= (self.due_ns ^ due_ns) & pass;
    }
}
