//! Listeners that come and go while the worker runs.

use tt_net::IoFault;

use super::Worker;
use crate::listeners::ListenerChange;
use crate::ready::Ready;

impl Worker {
    /// Adds and removes listeners.
    pub(super) fn change_listeners(&mut self, change: ListenerChange) {
        let ListenerChange { udp, streams, removed } = change;
        let parts = &mut self.parts;
        let udp = udp.into_iter().map(|(id, socket)| parts.listeners.add(id, socket, &parts.poller));
        let streams = streams.into_iter().map(|listener| parts.streams.add_listener(listener, &parts.poller));
        for added in udp.chain(streams) {
            match added {
                Ok(key) => self.ready.push(Ready::first(key)),
                Err(error) => {
                    self.counts.receive_faults.record(IoFault::of(&error));
                    tracing::error!(%error, "cannot poll a listener");
                }
            }
        }
        for (id, share) in removed {
            match parts.streams.remove_listener(id, &share) {
                Some(key) => self.ready.push(Ready::first(key)),
                None => parts.listeners.remove(id, share),
            }
        }
        self.close_listeners();
    }

    /// Closes listeners that are not needed any more.
    pub(super) fn close_listeners(&mut self) {
        if self.parts.listeners.is_any_closing() {
            let left = self.parts.listeners.close_unused(&self.parts.server, &self.parts.poller);
            left.into_iter().for_each(|key| self.ready.push(Ready::first(key)));
        }
    }

    /// Gives up all listeners. The kernel gives what arrives to the other workers, which hand it off to this one while
    /// it has the allocation.
    pub(super) fn retire(&mut self) {
        self.parts.is_retiring = true;
        let keys = self.parts.listeners.retire();
        keys.into_iter()
            .chain(self.parts.streams.remove_listeners())
            .for_each(|key| self.ready.push(Ready::first(key)));
        self.close_listeners();
    }

    /// Whether it retires and has nothing more to serve.
    pub(super) fn has_retired(&mut self) -> bool {
        let parts = &mut self.parts;
        parts.is_retiring
            && parts.server.allocations() == 0
            && parts.relays.counts.bound == 0
            && parts.listeners.is_empty()
            && parts.streams.is_empty()
            && parts.inbound.is_empty()
            && self.unsent.is_none()
    }
}
