//! Connections that a balancer makes for a client (PROXY protocol).

use std::net::IpAddr;

use tt_model::{FiveTuple, Nanos};
use tt_net::stream::HeaderProgress;
use tt_turn::Server;

use super::{End, Stage, Streams};

impl Streams {
    /// Returns whether connections of `ip` begin with a PROXY header.
    pub(super) fn is_balancer(&self, ip: IpAddr) -> bool {
        self.plan.balancers.load().iter().any(|balancers| balancers.contain(ip))
    }

    /// Reads the PROXY header of a balancer's connection. From then on the connection is one of the client that the
    /// header names: for limits, responses, logs and records. The listener still selects the realm.
    pub(super) fn take_proxy_header(&mut self, now: Nanos, slot: u32, server: &mut Server) {
        let Some(entry) = self.slots[slot as usize].as_mut().filter(|entry| !entry.is_ending) else { return };
        let Some(connection) = entry.connection.as_mut() else { return };
        match connection.read_proxy_header(&mut self.scratch) {
            Ok(HeaderProgress::Waiting) => return,
            Ok(HeaderProgress::Done) => {}
            Err(end) => return self.end_later(slot, End::of(end)),
        }
        let (client, destination) = (connection.client(), connection.server());
        let (balancer, serial, deadline) = (entry.source, entry.serial, entry.deadline);
        let (source, limits) = (self.plan.sources.key(client.ip()), self.plan.limits);
        if source != balancer {
            // It may displace another connection, and never itself.
            self.half_open.remove(&(balancer, serial, slot));
            self.deadlines.remove(&(deadline, slot));
            self.plan.sources.leave(balancer, true);
            if self.find_room(now, source, &limits, server).is_err() {
                self.plan.sources.restore(balancer);
                return self.end_later(slot, End::ProxiedSourceLimit);
            }
        }
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        entry.source = source;
        entry.listener = Some(entry.flow.server);
        entry.flow = FiveTuple { client, server: destination, ..entry.flow };
        entry.stage = Stage::New;
        self.half_open.insert((source, serial, slot));
        self.set_deadline(slot, now.saturating_add(Nanos::from_secs(self.plan.limits.first_message_s)));
    }
}
