//! What the server reports of allocations that ended: whose they were, and how much they relayed.

use tt_model::Nanos;
use tt_turn::event::AllocationEvent;

use super::host::Done;
use super::invariants::Failure;
use super::metering::is_limit;
use super::model::{Alive, Expected, Flow};
use super::world::World;

impl World<'_> {
    /// Adds what was done with a client's datagram to what its allocation must report.
    pub(super) fn count(&mut self, worker: u16, expected: &Expected<'_>, done: &Done) {
        if let Expected::ToPeer { sure, relay, peer, payload } = expected {
            let is_hairpin = self.host.relay_on(*peer).is_some_and(|end| self.host.worker_of(end) == worker);
            let sure = match done {
                Done::ToPeer { .. } | Done::ToClient { .. } => Alive::Yes,
                // It left one allocation, and the other one had no permission for it.
                Done::Drop(reason) if is_hairpin && !is_limit(*reason) => *sure,
                Done::Drop(_) | Done::Reply { .. } | Done::HandOver(_) => Alive::Maybe.min(*sure),
            };
            self.model.sent_to_peer(*relay, payload.len(), sure);
        }
        self.count_to_client(done);
    }

    /// The same for what goes to a client.
    pub(super) fn count_to_client(&mut self, done: &Done) {
        if let Done::ToClient { client, payload_len, .. } = done {
            self.model.sent_to_client(&Flow::of(client), *payload_len);
        }
    }

    /// Compares the server's reports with the model's allocations that ended.
    pub(super) fn hear_reports(&mut self, worker: u16) -> Result<(), Failure> {
        while let Some(event) = self.host.event(worker) {
            self.hear_report(self.now, &event)?;
        }
        if self.host.has_lost_events(worker) {
            self.model.ended.retain(|ended| ended.worker != worker);
        }
        match self.model.ended.iter().find(|ended| ended.worker == worker) {
            None => Ok(()),
            Some(ended) => fail(self.now, format!("the end of {ended:?} was not reported")),
        }
    }

    fn hear_report(&mut self, now: Nanos, event: &AllocationEvent) -> Result<(), Failure> {
        let (start, Some(end)) = (&event.start, &event.end) else { return Ok(()) };
        let Some(ended) = self.model.take_ended(&Flow::of(&start.flow)) else {
            return fail(now, format!("{event:?} of what lives"));
        };
        let is_right = start.first_relayed() == Some(ended.relayed)
            && start.user.as_bytes() == ended.name
            && ended.to_peers.allow(end.bytes_to_peers)
            && ended.to_client.allow(end.bytes_to_client);
        if is_right { Ok(()) } else { fail(now, format!("{event:?} is not {ended:?}")) }
    }
}

fn fail(at: Nanos, what: String) -> Result<(), Failure> {
    Err(Failure { invariant: 3, what, at })
}
