//! The listeners of one worker's connections, in places that they keep.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tt_model::Nanos;
use tt_net::stream::{Progress, StreamListener};
use tt_net::{IoFault, Poller};
use tt_turn::Server;
use turn_config::StreamLimits;

use super::{RejectReason, Streams, Takes};
use crate::listener_id::{ListenerId, ListenerUse};
use crate::poll_key::listener_key;

/// Connections accepted from one listener in one turn.
const ACCEPTS: usize = 32;
/// Delay before connections are accepted again after a failure (no descriptors, no memory).
const RETRY: Nanos = Nanos::from_secs(1);

/// A listener.
#[derive(Debug)]
pub(super) struct Place {
    id: ListenerId,
    socket: StreamListener,
    takes: Takes,
    /// It closes once the connections that wait have been accepted.
    is_leaving: bool,
    /// Lives as long as the socket, if the address is not listened on any more.
    former: Option<Arc<AtomicUsize>>,
}

impl Streams {
    /// Goes by `limits` from here on. Connections beyond them stay, and keep the deadlines that they have.
    pub(crate) const fn replace_limits(&mut self, limits: StreamLimits) {
        self.plan.limits = limits;
    }

    /// Adds a listener to `poller`, and returns its key: connections may wait already.
    ///
    /// # Errors
    /// As [`Poller::add_stream`].
    pub(crate) fn add_listener(
        &mut self,
        (id, socket, takes): (ListenerId, StreamListener, Takes),
        poller: &Poller,
    ) -> io::Result<u64> {
        let index = self.listeners.iter().position(Option::is_none).unwrap_or(self.listeners.len());
        let key = listener_key(index as u32);
        poller.add_stream(&socket, key)?;
        let place = Some(Place { id, socket, takes, is_leaving: false, former: None });
        if index == self.listeners.len() {
            self.listeners.push(place);
        } else {
            self.listeners[index] = place;
        }
        Ok(key)
    }

    /// Closes a listener once the connections that wait have been accepted. Returns its key, which must be served.
    pub(crate) fn remove_listener(&mut self, id: ListenerId, share: &ListenerUse) -> Option<u64> {
        let has_id = |place: &Option<Place>| place.as_ref().is_some_and(|place| place.id == id);
        let index = self.listeners.iter().position(has_id)?;
        let place = self.listeners[index].as_mut()?;
        (place.is_leaving, place.former) = (true, Some(share.workers()));
        Some(listener_key(index as u32))
    }

    /// The same for all listeners.
    pub(crate) fn remove_listeners(&mut self) -> impl Iterator<Item = u64> {
        self.listeners.iter_mut().flatten().for_each(|place| place.is_leaving = true);
        (0..self.listeners.len() as u32).map(listener_key)
    }

    /// Returns whether there is no listener and no connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.open == 0 && self.listeners.iter().all(Option::is_none)
    }

    /// Returns the keys of the listeners to be tried again.
    pub(super) fn listeners_again(&mut self, now: Nanos) -> impl Iterator<Item = u64> {
        let again = self.accept_again_at.take_if(|at| *at <= now).is_some();
        let listeners = if again { self.listeners.len() } else { 0 };
        (0..listeners as u32).map(listener_key)
    }

    pub(super) fn accept(&mut self, now: Nanos, index: u32, server: &mut Server, poller: &Poller) -> Progress {
        for _ in 0..ACCEPTS {
            let Some(Some(Place { socket, takes, is_leaving, .. })) = self.listeners.get(index as usize) else {
                return Progress::Drained;
            };
            let (takes, is_leaving) = (*takes, *is_leaving);
            match socket.accept() {
                Ok(None) => {
                    if is_leaving && let Some(closed) = self.listeners[index as usize].take() {
                        // The kernel removes it when it is closed, unless another process has it too.
                        let _ = poller.remove_stream(&closed.socket);
                    }
                    return Progress::Drained;
                }
                Ok(Some(connection)) => {
                    let client = connection.client().ip();
                    // Limits of a source are for the client that the header of a balancer names.
                    let limits = if self.is_balancer(client) { self.plan.limits.of_all() } else { self.plan.limits };
                    if server.is_banned(client, now) {
                        self.counts.rejected[RejectReason::Banned as usize] += 1;
                        continue;
                    }
                    match self.find_room(now, self.plan.sources.key(client), &limits, server) {
                        Ok(()) => self.admit(now, connection, takes, poller),
                        Err(reason) => self.counts.rejected[reason as usize] += 1,
                    }
                }
                Err(error) => {
                    // The connection still waits, and the poller does not report it again.
                    self.counts.faults.record(IoFault::of(&error));
                    self.accept_again_at = Some(now.saturating_add(RETRY));
                    return Progress::Drained;
                }
            }
        }
        Progress::More
    }
}
