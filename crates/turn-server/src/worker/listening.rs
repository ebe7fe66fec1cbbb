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
        for (id, workers) in removed {
            match parts.streams.remove_listener(id, &workers) {
                Some(key) => self.ready.push(Ready::first(key)),
                None => parts.listeners.remove(id, workers),
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
}
