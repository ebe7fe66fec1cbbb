//! The dead man's switch: what happens when the producer of intents is silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tt_risk::{KillSwitch, Mode};

/// Puts scopes into a stricter mode once the producer has been silent for a time: it has sent no intent, and has not called
/// [`IntentSender::beat`](crate::IntentSender::beat). The switch is armed by the first sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadMan {
    /// Maximum silence.
    pub silent_for: Duration,
    /// The mode: reduce, or kill.
    pub mode: Mode,
    /// The scopes of the producer.
    pub scopes: Vec<KillSwitch>,
    /// Whether the open orders of the scopes are cancelled, protective stops among them.
    pub cancels: bool,
}

impl Default for DeadMan {
    /// Reduce mode for all orders after 1 s, and open orders are cancelled.
    fn default() -> Self {
        Self { silent_for: Duration::from_secs(1), mode: Mode::Reduce, scopes: vec![KillSwitch::Global], cancels: true }
    }
}

/// Signs of life of a producer, counted.
pub(crate) type Beats = Arc<AtomicU64>;

/// Watches the signs of life.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) dead_man: DeadMan,
    beats: Beats,
    seen: u64,
    /// When the latest new sign was seen; `None` once the switch has acted, and before the first sign.
    since: Option<Instant>,
}

impl Watch {
    pub(crate) const fn new(dead_man: DeadMan, beats: Beats) -> Self {
        Self { dead_man, beats, seen: 0, since: None }
    }

    /// Returns whether the producer has now been silent for too long, once for each silence.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let beats = self.beats.load(Ordering::Relaxed);
        if beats != self.seen {
            (self.seen, self.since) = (beats, Some(now));
        }
        let is_over = self.since.is_some_and(|since| now.duration_since(since) > self.dead_man.silent_for);
        if is_over {
            self.since = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_silence_is_over_once_and_never_before_the_first_sign() {
        let (beats, start) = (Beats::default(), Instant::now());
        let mut watch = Watch::new(DeadMan::default(), Arc::clone(&beats));
        let mut at = |ms: u64, beat: u64| {
            beats.fetch_add(beat, Ordering::Relaxed);
            watch.is_over(start + Duration::from_millis(ms))
        };
        assert!(!at(0, 0) && !at(5_000, 0), "not armed");
        assert!(!at(5_001, 1) && !at(6_001, 0), "exactly 1 s");
        assert!(at(6_002, 0) && !at(6_003, 0) && !at(9_000, 0), "once");
        assert!(!at(9_001, 1) && !at(10_001, 3) && !at(11_001, 0) && at(11_002, 0), "again after the next sign");
    }
}
