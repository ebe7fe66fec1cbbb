//! What comes of the datagrams of one round.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos, Transport};
use tt_net::{Datagram, Outgoing, UdpSocket};
use tt_turn::relay::PeerPath;
use tt_turn::{Fragmentation, Output};

use super::hand_over::{Addressee, Parcel};
use super::{HEAD_LEN_MAX, Parts, Worker};
use crate::turn::ledger::Counts;
use crate::turn::relays::{relay_key, relay_of};
use crate::turn::streams::{Sent, stream_of};

impl Worker {
    /// Gives every datagram of the inbox to the engine, then sends what came of it.
    pub(super) fn round(&mut self) {
        let now = self.now();
        for index in 0..self.inbox.len() {
            if self.outbox.room() == 0 || self.outbox.head().len() < HEAD_LEN_MAX {
                self.flush();
            }
            self.handled = index;
            self.handle(now, index);
        }
        self.handled = self.inbox.len();
        self.flush();
        self.parts.ways.wake();
        self.is_dirty = true;
    }

    pub(super) fn flush(&mut self) {
        let Parts { listeners, relays, .. } = &self.parts;
        let sent = self.outbox.flush(&self.inbox, |key| match relay_of(key) {
            Some(_) => relays.socket_of(key),
            None => listeners.get(key as usize),
        });
        self.counts.sent += sent.datagrams;
        self.counts.sent_relayed += sent.quoting;
        self.counts.refused.merge(&sent.refused);
        self.counts.orphaned += sent.orphaned;
        self.counts.trains_refused += sent.trains_refused;
    }

    fn handle(&mut self, now: Nanos, index: usize) {
        let datagram = self.inbox.datagram(index);
        if datagram.truncated {
            self.counts.truncated += 1;
            return;
        }
        let Parts { server, listeners, relays, streams, sampler, ways, .. } = &mut self.parts;
        let head = self.outbox.head();
        let transport = stream_of(datagram.key).map_or(Transport::Udp, |key| streams.transport(key));
        let from = FiveTuple { client: datagram.from, server: datagram.to, transport };
        let output = match relay_of(datagram.key) {
            Some(relay) => {
                let path = PeerPath { relay, peer: datagram.from };
                server.handle_peer(now, path, datagram.bytes, head, sampler)
            }
            None => server.handle_client(now, &from, datagram.bytes, head, sampler),
        };
        if let Some((client, pieces)) = of_stream(from, output) {
            self.counts.sent_by_stream(streams.send(&client, &pieces), &output);
            return;
        }
        let quote = |payload: &[u8]| {
            let start = payload.as_ptr() as usize - datagram.bytes.as_ptr() as usize;
            Some((index, start..start + payload.len()))
        };
        // RFC 8656 section 13: DSCP and ECN of what is relayed are the incoming ones.
        let traffic_class = datagram.traffic_class;
        let Some(hop_limit) = hops_left(&output, &datagram) else {
            self.counts.hop_limit += 1;
            return;
        };
        let outgoing = match output {
            Output::Reply(bytes) => to_client(listeners, &from).map(|to| Outgoing { head_len: bytes.len(), ..to }),
            Output::ToPeer { relay, peer, payload, ip } => {
                let whole = ip.fragmentation == Fragmentation::Forbidden && heeds_df(&from, peer);
                let key =
                    if whole && peer.is_ipv4() { relays.whole_key(relay, &mut self.ready) } else { relay_key(relay) };
                let quote = quote(payload);
                Some(Outgoing { traffic_class, hop_limit, whole, quote, ..Outgoing::of_head(key, peer, 0) })
            }
            Output::ToClient { client, header, payload, padding } => to_client(listeners, &client).map(|to| {
                let (head_len, quote) = (header.len(), quote(payload));
                Outgoing { traffic_class, hop_limit, head_len, quote, padding: padding.len() as u8, ..to }
            }),
            Output::ToWorker { worker, path, payload } => {
                let (to, from) = (Addressee::Relay(path.relay), path.peer);
                let parcel = Parcel { to, from, traffic_class, hop_limit, bytes: payload };
                count_hand_over(&mut self.counts, ways.push(worker, &parcel));
                return;
            }
            // A connection's messages are its own worker's; another one could not answer.
            Output::HandOver(_) if transport != Transport::Udp => return count_hand_over(&mut self.counts, false),
            Output::HandOver(worker) => {
                let (to, from, bytes) = (Addressee::Flow(from.server), from.client, datagram.bytes);
                let parcel = Parcel { to, from, traffic_class, hop_limit, bytes };
                count_hand_over(&mut self.counts, ways.push(worker, &parcel));
                return;
            }
            Output::Drop(_) => return,
        };
        // The outbox has room, so only a listener that is gone is left.
        if !outgoing.is_some_and(|outgoing| self.outbox.push(outgoing)) {
            self.counts.orphaned += 1;
        }
    }
}

impl Counts {
    /// Counts what became of `output` for a client over TCP or TLS. It is out when the connection's queue has it, as a
    /// datagram is when the kernel has it.
    pub(super) fn sent_by_stream(&mut self, sent: Sent, output: &Output<'_>) {
        let (is_out, is_relayed) = (sent == Sent::Queued, matches!(output, Output::ToClient { .. }));
        self.sent += u64::from(is_out);
        self.sent_relayed += u64::from(is_out && is_relayed);
        self.queue_full += u64::from(sent == Sent::Full);
        self.connection_gone += u64::from(sent == Sent::Gone);
    }
}

/// The client over TCP or TLS that `output` is for, and the bytes for it. `None`: it is for a socket, or for nobody.
fn of_stream<'a>(from: FiveTuple, output: Output<'a>) -> Option<(FiveTuple, [&'a [u8]; 3])> {
    let (client, pieces) = match output {
        Output::Reply(bytes) => (from, [bytes, &[], &[]]),
        Output::ToClient { client, header, payload, padding } => (client, [header, payload, padding]),
        Output::ToPeer { .. } | Output::ToWorker { .. } | Output::HandOver(_) | Output::Drop(_) => return None,
    };
    (client.transport != Transport::Udp).then_some((client, pieces))
}

/// RFC 8656 section 14: every relay that a payload passes takes a hop from it, as a router does; `None` where none is
/// left. Zero stands for the default.
fn hops_left(output: &Output<'_>, datagram: &Datagram<'_>) -> Option<u8> {
    let relays_passed = match (output, relay_of(datagram.key)) {
        // From a client to a client it passes two.
        (Output::ToClient { .. }, None) => 2,
        (Output::ToPeer { .. } | Output::ToClient { .. } | Output::ToWorker { .. }, _) => 1,
        (Output::Reply(_) | Output::HandOver(_) | Output::Drop(_), _) => 0,
    };
    match (datagram.hop_limit, datagram.hop_limit.saturating_sub(relays_passed)) {
        (1.., 0) => None,
        (_, left) => Some(left),
    }
}

/// Whether DONT-FRAGMENT counts: between datagrams of IPv4, and where the client's bytes come in a stream (RFC 8656
/// sections 13 to 15).
fn heeds_df(from: &FiveTuple, peer: SocketAddr) -> bool {
    from.transport != Transport::Udp || (from.client.is_ipv4() && peer.is_ipv4())
}

fn count_hand_over(counts: &mut Counts, taken: bool) {
    let count = if taken { &mut counts.given_over } else { &mut counts.hand_over_lost };
    *count += 1;
}

/// A datagram to a client from the address that it talks to (RFC 8489 section 6.3.1.2), yet without bytes.
pub(super) fn to_client(listeners: &[UdpSocket], client: &FiveTuple) -> Option<Outgoing> {
    let key = listener_of(listeners, client.server)?;
    let is_wildcard = listeners[key as usize].local_addr().ip().is_unspecified();
    let mut outgoing = Outgoing::of_head(key, client.client, 0);
    outgoing.source = is_wildcard.then_some(client.server.ip());
    Some(outgoing)
}

/// The listener that a client's datagrams to `server` arrive at: the one bound there, else the one bound to all.
pub(super) fn listener_of(listeners: &[UdpSocket], server: SocketAddr) -> Option<u64> {
    let takes_all = |local: SocketAddr| {
        local.ip().is_unspecified() && local.port() == server.port() && local.is_ipv4() == server.is_ipv4()
    };
    let position = |suits: &dyn Fn(SocketAddr) -> bool| listeners.iter().position(|socket| suits(socket.local_addr()));
    let found = position(&|local| local == server).or_else(|| position(&takes_all))?;
    Some(found as u64)
}
