//! Follows the proofs of interfaces, and begins those again that failed.
//!
//! One packet is enough to fail a proof, and a client with a channel can send it. So a failure does not last: the
//! packets of an interface are looked at again after a while, and the sockets relay meanwhile.

use tt_model::Nanos;
use tt_path::Proof;

/// Time until a failed proof begins again. It doubles with each failure.
const AGAIN_AFTER: Nanos = Nanos::from_millis(4_000);
/// The longest time.
const AGAIN_AFTER_MAX: Nanos = Nanos::from_millis(3_600_000);

/// The proof of one interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProofWatch {
    known: Proof,
    failures: u32,
    again_at: Nanos,
}

/// What the caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofChange {
    /// The interface is used.
    Proven,
    /// The proof has failed for the first time.
    Failed,
    /// Begin the proof again.
    Again,
}

impl ProofWatch {
    pub(super) const fn new() -> Self {
        Self { known: Proof::Proving, failures: 0, again_at: Nanos(0) }
    }

    pub(super) fn follow(&mut self, proof: Proof, now: Nanos) -> Option<ProofChange> {
        let before = std::mem::replace(&mut self.known, proof);
        match proof {
            Proof::Proven => (before != proof).then_some(ProofChange::Proven),
            Proof::Unproven if before != proof => {
                let wait = AGAIN_AFTER.0.saturating_mul(1 << self.failures.min(20)).min(AGAIN_AFTER_MAX.0);
                self.again_at = now.saturating_add(Nanos(wait));
                self.failures += 1;
                (self.failures == 1).then_some(ProofChange::Failed)
            }
            Proof::Unproven if now >= self.again_at => {
                self.known = Proof::Proving;
                Some(ProofChange::Again)
            }
            Proof::Unproven | Proof::Proving | Proof::Off => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_proof_begins_again_later_and_later() {
        let mut watch = ProofWatch::new();
        assert_eq!(watch.follow(Proof::Proving, Nanos(0)), None);
        let mut now = Nanos(0);
        for failure in 0..40_u32 {
            let expected = (failure == 0).then_some(ProofChange::Failed);
            assert_eq!(watch.follow(Proof::Unproven, now), expected, "{failure}");
            let wait = Nanos::from_millis((4_000 << failure.min(20)).min(3_600_000));
            assert_eq!(watch.follow(Proof::Unproven, now.saturating_add(Nanos(wait.0 - 1))), None, "{failure}");
            now = now.saturating_add(wait);
            assert_eq!(watch.follow(Proof::Unproven, now), Some(ProofChange::Again), "{failure}");
        }
        assert_eq!(watch.follow(Proof::Proving, now), None);
        assert_eq!(watch.follow(Proof::Proven, now), Some(ProofChange::Proven));
        assert_eq!(watch.follow(Proof::Proven, now), None);
    }
}
