//! ICMP errors about datagrams to peers (RFC 8656 section 11.5).

use tt_model::{IpFamily, Nanos, Transport};
use tt_net::{IcmpReport, IoFault, Outgoing};
use tt_turn::Output;
use tt_turn::relay::{IcmpError, RelayId};

use super::round::to_client;
use super::{HEAD_LEN_MAX, Parts, ROUND, Worker};

impl Worker {
    /// Passes the ICMP errors of relay sockets to the engine and sends the results.
    pub(super) fn take_icmp(&mut self, now: Nanos) {
        if self.faulted.is_empty() && self.faulted_families == [false; 2] {
            return;
        }
        let Self { parts: Parts { relays, .. }, icmp, raw_icmp, faulted, faulted_families, reports, counts, .. } = self;
        for (family, has_more) in IpFamily::ALL.into_iter().zip(faulted_families) {
            if *has_more {
                let are_all = relays.receive_icmp(family, raw_icmp, |id, report| reports.push((id, report)));
                *has_more = !are_all.unwrap_or_else(|error| {
                    counts.receive_faults.record(IoFault::of(&error));
                    true
                });
            }
        }
        while reports.len() < ROUND
            && let Some(&id) = faulted.last()
        {
            let Some(socket) = relays.socket(id) else {
                faulted.pop();
                continue;
            };
            match icmp.receive(socket, |report| reports.push((id, report))) {
                Ok(false) => {}
                Ok(true) => {
                    faulted.pop();
                }
                Err(error) => {
                    counts.receive_faults.record(IoFault::of(&error));
                    faulted.pop();
                }
            }
        }
        let mut reports = std::mem::take(&mut self.reports);
        for (relay, report) in reports.drain(..) {
            if self.outbox.room() == 0 || self.outbox.head().len() < HEAD_LEN_MAX {
                self.flush();
            }
            self.handle_icmp(now, relay, report);
        }
        self.reports = reports;
        self.flush();
        self.is_dirty = true;
    }

    fn handle_icmp(&mut self, now: Nanos, relay: RelayId, report: IcmpReport) {
        self.counts.received += 1;
        let IcmpReport { destination: peer, kind, code, mtu } = report;
        let Parts { server, listeners, streams, sampler, .. } = &mut self.parts;
        let error = IcmpError { relay, peer, kind, code, mtu };
        let output = server.handle_icmp(now, error, self.outbox.head(), sampler);
        let Output::ToClient { client, header_len: head_len, .. } = output else { return };
        if client.transport != Transport::Udp {
            let header = &self.outbox.head()[..head_len];
            self.counts.sent_by_stream(streams.send(&client, &[header, &[], &[]]), &output);
            return;
        }
        let outgoing = to_client(listeners, &client).map(|to| Outgoing { head_len, ..to });
        if !outgoing.is_some_and(|outgoing| self.outbox.push(outgoing)) {
            self.counts.orphaned += 1;
        }
    }
}
