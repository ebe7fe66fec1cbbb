//! Traffic against the limits of the operator.

use tt_turn::DropReason;

use super::host::Done;
use super::invariants::Failure;
use super::model::Expected;
use super::world::World;

/// Whether a datagram was dropped for a limit of traffic.
pub(super) fn is_limit(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::UserBandwidth
            | DropReason::UserPackets
            | DropReason::SourceBandwidth
            | DropReason::SourcePackets
            | DropReason::AllocationBandwidth
            | DropReason::TotalBandwidth
            | DropReason::TotalShare
    )
}

impl World<'_> {
    /// Adds what left to the limits, none of which it may exceed. Returns whether it was dropped for one that may be
    /// reached; `second` is where it goes from the relay, if that is of the same worker.
    pub(super) fn meter(
        &mut self,
        expected: &Expected<'_>,
        second: Option<&Expected<'_>>,
        (done, len): (&[Done], usize),
    ) -> Result<bool, Failure> {
        let fail = |what: String| Err(Failure { invariant: 11, what, at: self.now });
        let [done] = done else { return Ok(false) };
        let first = self.model.leaving(expected, len);
        let has_second = second.is_some();
        let second = second.and_then(|second| self.model.leaving(second, len));
        let exact = match done {
            Done::ToClient { bytes, .. } => Some(bytes.len()),
            Done::Reply { .. } | Done::ToPeer { .. } | Done::HandOver(_) | Done::Drop(_) => None,
        };
        let leaving: Vec<_> = [first, second].into_iter().flatten().collect();
        match done {
            Done::Drop(reason) if is_limit(*reason) => {
                let meter = &mut self.model.meter;
                let at_first = first.is_some_and(|first| meter.may_drop(self.now, &first, *reason));
                if let Some(first) = first.filter(|_| has_second) {
                    // It may have paid on its way to the second.
                    meter.left(self.now, &first, false);
                }
                let at_second = second.is_some_and(|second| meter.may_drop(self.now, &second, *reason));
                if !at_first && !at_second {
                    return fail(format!("{reason:?} below the limit, of {leaving:?}"));
                }
                if self.is_healed {
                    self.limited.extend(leaving.iter().map(|leaving| leaving.user));
                }
                Ok(true)
            }
            Done::ToPeer { .. } | Done::ToClient { .. } => {
                let last = leaving.len().saturating_sub(1);
                for (at, leaving) in leaving.iter().enumerate() {
                    let leaving = exact.filter(|_| at == last).map_or(*leaving, |len| leaving.with_message(len));
                    if let Some(broken) = self.model.meter.left(self.now, &leaving, true) {
                        return fail(broken);
                    }
                }
                Ok(false)
            }
            Done::Drop(_) => {
                if let Some(first) = first.filter(|_| has_second) {
                    self.model.meter.left(self.now, &first, false);
                }
                Ok(false)
            }
            Done::Reply { .. } | Done::HandOver(_) => Ok(false),
        }
    }
}
