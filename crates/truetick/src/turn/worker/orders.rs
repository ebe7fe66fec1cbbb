//! What a worker answers the control plane, between two rounds.

use std::net::SocketAddr;

use tt_model::{Nanos, Transport};
use tt_turn::LiveAllocation as Live;

use super::Worker;
use crate::http::snapshot::LiveAllocation;
use crate::turn::orders::Order;

impl Worker {
    pub(super) fn take_orders(&mut self, now: Nanos) {
        while let Ok(order) = self.parts.orders.try_recv() {
            let server = &mut self.parts.server;
            let worker = usize::from(server.worker().0);
            // Whoever has asked may be gone by now; that is no matter here.
            match order {
                Order::Reload { secrets, policy } => {
                    server.replace_secrets(&secrets);
                    server.replace_policy(*policy);
                }
                Order::List { from, max, answer } => {
                    let rows = server.live_allocations().filter(|live| live.place >= from && live.expires > now);
                    let _ = answer.send(rows.take(max).map(|live| row(worker, &live, now)).collect());
                }
                Order::Find { relayed, answer } => {
                    let found = server.live_allocations().find(|live| relays_on(live, relayed) && live.expires > now);
                    let _ = answer.send(found.map(|live| row(worker, &live, now)));
                }
                Order::End { relayed, answer } => {
                    let found = server.live_allocations().find(|live| relays_on(live, relayed));
                    let flow = found.map(|live| live.flow);
                    let _ = answer.send(flow.is_some_and(|flow| server.close_flow(now, &flow)));
                }
                #[cfg(test)]
                Order::Panic => panic!("as the test asked"),
            }
            self.is_dirty = true;
        }
    }
}

fn relays_on(live: &Live<'_>, relayed: SocketAddr) -> bool {
    live.relayed == relayed || live.relayed_second == Some(relayed)
}

fn row(worker: usize, live: &Live<'_>, now: Nanos) -> LiveAllocation {
    let transport = match live.flow.transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
    };
    LiveAllocation {
        worker,
        place: live.place,
        client: live.flow.client,
        server: live.flow.server,
        transport,
        relayed: live.relayed,
        relayed_second: live.relayed_second,
        user: String::from_utf8_lossy(live.user).into_owned(),
        age_s: now.saturating_sub(live.made).0 / Nanos::PER_SECOND,
        expires_s: live.expires.saturating_sub(now).0.div_ceil(Nanos::PER_SECOND),
        permissions: live.permissions,
        channels: live.channels,
        to_peers_bytes: live.bytes_to_peers,
        to_client_bytes: live.bytes_to_client,
    }
}
