//! The way of a connection to the threads of TLS handshakes and back.

use tt_model::{Nanos, Transport};
use tt_net::stream::Resumption;
use tt_net::{IoFault, Poller};

use super::handshakes::{Outcome, Ticket};
use super::{End, Entry, Stage, Streams};
use crate::poll_key::connection_key;

impl Streams {
    /// Moves a connection to the threads of handshakes. This worker has read no byte of it.
    pub(super) fn begin_handshake(&mut self, now: Nanos, slot: u32, poller: &Poller) {
        let deadline = now.saturating_add(Nanos::from_secs(self.plan.limits.handshake_s));
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let Some(connection) = entry.connection.take() else { return };
        if connection.has_whole_greeting() {
            // Else a flood of connections that say nothing would displace it before its handshake gets CPU time.
            self.half_open.remove(&(entry.source, entry.serial, slot));
        }
        if let Err(error) = poller.remove_stream(&connection) {
            self.counts.faults.record(IoFault::of(&error));
        }
        entry.stage = Stage::Handshake;
        entry.flow.transport = Transport::Tls;
        self.counts.open_tls += 1;
        self.counts.handshakes_in_progress += 1;
        let ticket = Ticket { serial: entry.serial, worker: self.worker.0, slot };
        self.handshakes.begin(ticket, connection, entry.source);
        self.set_deadline(slot, deadline);
    }

    /// Takes back the connections whose handshakes have ended, and returns the keys of those to be read.
    pub(crate) fn take_handshakes(&mut self, now: Nanos, poller: &Poller) -> Vec<u64> {
        let mut ready = Vec::new();
        while let Some(Outcome { ticket, result }) = self.handshakes.next_outcome() {
            // A connection that was closed meanwhile is dropped here.
            let entry = self.slots.get_mut(ticket.slot as usize).and_then(Option::as_mut);
            let is_expected = |entry: &&mut Entry| entry.serial == ticket.serial && entry.stage == Stage::Handshake;
            let Some(entry) = entry.filter(is_expected) else { continue };
            let key = connection_key(ticket.slot);
            let (connection, resumption) = match result {
                Ok(complete) => complete,
                Err(end) => {
                    self.end_later(ticket.slot, end);
                    continue;
                }
            };
            if let Err(error) = poller.add_stream(&connection, key) {
                self.counts.faults.record(IoFault::of(&error));
                self.end_later(ticket.slot, End::Failed);
                continue;
            }
            entry.connection = Some(connection);
            entry.stage = Stage::TlsReady;
            self.counts.handshakes += 1;
            self.counts.handshakes_resumed += u64::from(resumption == Resumption::Resumed);
            self.counts.handshakes_in_progress -= 1;
            self.set_deadline(ticket.slot, now.saturating_add(Nanos::from_secs(self.plan.limits.first_message_s)));
            ready.push(key);
        }
        ready
    }
}
