//! What the model learns from a reply, and the budgets that replies cost.

use super::host::Done;
use super::invariants::{Delivery, Failure, Lesson};
use super::model::{Codes, Expected, Flow};
use super::wire::{self, Reading};
use super::world::World;

impl World<'_> {
    pub(super) fn learn_from(
        &mut self,
        delivery: &Delivery<'_>,
        (expected, done): (&Expected<'_>, &[Done]),
        lesson: Lesson,
    ) -> Result<(), Failure> {
        let Delivery { flow, bytes, .. } = *delivery;
        let place = Flow::of(flow);
        let serial = self.model.serial;
        let is_own_claim =
            matches!(&lesson, Lesson::Granted(user, Some(grant)) if self.model.pays_already(*user, grant));
        if let (Expected::Answer(Codes { user: Some(proven), .. }), [Done::Reply { bytes, .. }]) = (expected, done)
            && Reading::of(bytes).is_some_and(|reply| reply.method == wire::ALLOCATE && reply.code() == Some(508))
        {
            self.model.spend_allocation(self.now, proven.user, false);
        }
        match lesson {
            Lesson::Nothing => {}
            Lesson::Granted(user, grant) => {
                self.tally.granted += 1;
                if let Some(request) = Reading::of(bytes) {
                    self.model.learn(self.now, &place, user, &request, grant);
                }
                if self.model.serial > serial && !is_own_claim && !self.model.spend_allocation(self.now, user, true) {
                    let what = format!("user {user} has allocated faster than it may");
                    return Err(Failure { invariant: 11, what, at: self.now });
                }
            }
            Lesson::Refused(nonce) => {
                self.tally.refused += 1;
                if let Some(nonce) = nonce {
                    self.model.learn_nonce(self.now, flow.client, &nonce);
                }
                let answered = done.iter().map(Done::reply_len).sum();
                if !self.model.spend(self.now, &place, (bytes.len(), answered)) {
                    let what = format!("more error replies to {} than the budget has", flow.client.ip());
                    return Err(Failure { invariant: 4, what, at: self.now });
                }
            }
            Lesson::Guessed(user) => {
                self.tally.refused += 1;
                if !self.model.spend_guess(self.now, user) {
                    let what = format!("user {user} has guessed at more tokens than the budget has");
                    return Err(Failure { invariant: 4, what, at: self.now });
                }
            }
        }
        Ok(())
    }
}
