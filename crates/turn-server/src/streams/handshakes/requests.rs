//! What workers request of a thread of handshakes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Begin, Limits, Ticket};

/// Cancelled tickets that may be left in the order of the others.
const STALE_MAX: usize = 64;

/// Requests that the thread has not taken. A connection that is cancelled leaves them at once, so that they are bounded by
/// the open connections, however late the thread is.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    begins: HashMap<Ticket, Begin>,
    /// Tickets of `begins` as they came, and of some that have left.
    order: VecDeque<Ticket>,
    /// Handshakes that the thread has.
    cancels: Vec<Ticket>,
    limits: Option<Limits>,
}

/// What a thread has to do, in this order.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) limits: Option<Limits>,
    pub(super) begins: Vec<Begin>,
    pub(super) cancels: Vec<Ticket>,
}

impl Requests {
    pub(super) fn begin(&self, begin: Begin) {
        let mut waiting = self.waiting();
        waiting.order.push_back(begin.ticket);
        waiting.begins.insert(begin.ticket, begin);
    }

    pub(super) fn cancel(&self, ticket: Ticket) {
        let mut waiting = self.waiting();
        match waiting.begins.remove(&ticket) {
            Some(_) if waiting.order.len() > 2 * waiting.begins.len() + STALE_MAX => {
                let Waiting { begins, order, .. } = &mut *waiting;
                order.retain(|ticket| begins.contains_key(ticket));
            }
            Some(_) => {}
            None => waiting.cancels.push(ticket),
        }
    }

    pub(super) fn set_limits(&self, limits: Limits) {
        self.waiting().limits = Some(limits);
    }

    pub(super) fn take(&self) -> Taken {
        let mut waiting = self.waiting();
        let Waiting { begins, order, .. } = &mut *waiting;
        let begins = order.drain(..).filter_map(|ticket| begins.remove(&ticket)).collect();
        Taken { limits: waiting.limits.take(), begins, cancels: std::mem::take(&mut waiting.cancels) }
    }

    /// Returns how many are kept: connections, and their order.
    #[cfg(test)]
    pub(super) fn len(&self) -> [usize; 2] {
        let waiting = self.waiting();
        [waiting.begins.len(), waiting.order.len()]
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
