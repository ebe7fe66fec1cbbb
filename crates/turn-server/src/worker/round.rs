//! One round: the engine handles every received datagram, and the results are sent.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos, Transport};
use tt_net::{Datagram, Outgoing, RawOutgoing};
use tt_turn::relay::{PeerPath, RelayId};
use tt_turn::{Fragmentation, Output, WorkerId};

use super::{HEAD_LEN_MAX, Parts, Worker};
use crate::counters::WorkerCounters;
use crate::hand_off::{HandOff, Target, WorkerLinks};
use crate::poll_key::{relay_key, relay_of, stream_of};
use crate::streams::Sent;
use crate::udp_listeners::UdpListeners;

/// The longest padding of ChannelData on a stream.
const ZEROS: [u8; 3] = [0; 3];
/// How many datagrams before its own what a relay's datagram looks up is loaded.
const AHEAD: usize = 3;

impl Worker {
    /// Passes every datagram of the inbox to the engine and sends the results.
    pub(super) fn round(&mut self) {
        let now = self.now();
        for index in 0..self.inbox.len() {
            if self.outbox.room() == 0 || self.raw.room() == 0 || self.outbox.head().len() < HEAD_LEN_MAX {
                self.flush();
            }
            self.handled = index;
            self.prefetch(index + AHEAD);
            self.handle(now, index);
        }
        self.handled = self.inbox.len();
        self.flush();
        self.parts.links.wake();
        self.is_dirty = true;
    }

    fn prefetch(&self, index: usize) {
        if index < self.inbox.len() {
            let datagram = self.inbox.datagram(index);
            if let Some(relay) = relay_of(datagram.key) {
                self.parts.server.prefetch_peer_tables(PeerPath { relay, peer: datagram.from });
            }
        }
    }

    pub(super) fn flush(&mut self) {
        self.follow_paths();
        let Parts { listeners, relays, .. } = &mut self.parts;
        let sent = self.outbox.flush(&self.inbox, |key| match relay_of(key) {
            Some(_) => relays.socket_of(key),
            None => listeners.get(key),
        });
        for sent in [sent, relays.flush_shared(&mut self.raw, &self.inbox)] {
            self.counts.sent += sent.datagrams;
            self.counts.sent_relayed += sent.quoting;
            self.counts.refused.merge(&sent.refused);
            self.counts.orphaned += sent.orphaned;
            self.counts.gso_batches_rejected += sent.gso_batches_rejected;
        }
        // Between two batches of replies the queue of events has room.
        self.pass_events();
    }

    /// Whether a client without an allocation has sent to an address that is not listened on any more.
    fn is_for_closed(&self, now: Nanos, from: &FiveTuple, key: u64) -> bool {
        let Parts { listeners, server, .. } = &self.parts;
        listeners.is_any_closing()
            && relay_of(key).is_none()
            && from.transport == Transport::Udp
            && !listeners.is_open(key, from.server)
            && !server.knows_flow(now, from)
    }

    fn handle(&mut self, now: Nanos, index: usize) {
        let datagram = self.inbox.datagram(index);
        if datagram.truncated {
            self.counts.truncated += 1;
            return;
        }
        let streams = &self.parts.streams;
        let transport = stream_of(datagram.key).map_or(Transport::Udp, |key| streams.transport(key));
        let from = FiveTuple { client: datagram.from, server: datagram.to, transport };
        if self.is_for_closed(now, &from, datagram.key) {
            self.counts.listener_closed += 1;
            return;
        }
        let head = self.outbox.head();
        let output = pass_to_engine(&mut self.parts, now, &from, &datagram, head);
        let Parts { listeners, streams, links, settings, relays, .. } = &mut self.parts;
        if let Some((client, pieces)) = of_stream(from, &output, head, datagram.bytes) {
            self.counts.sent_by_stream(streams.send(&client, &pieces), &output);
            return;
        }
        // RFC 8656 section 13: a relayed datagram keeps ECN, and DSCP as far as the operator lets it.
        let traffic_class = settings.dscp_allow.apply(datagram.traffic_class);
        let Some(hop_limit) = hops_left(&output, &datagram) else {
            self.counts.hop_limit += 1;
            return;
        };
        let outgoing = match output {
            Output::Reply { len, .. } => to_client(listeners, &from).map(|to| Outgoing { head_len: len, ..to }),
            Output::ToPeer { relay, peer, payload, ip } => {
                let dont_fragment = ip.fragmentation == Fragmentation::Forbidden && df_applies(&from, peer);
                let to_peer = Outgoing::quoting(relay_key(relay), peer, index, payload);
                let to_peer = Outgoing { traffic_class, hop_limit, dont_fragment, ..to_peer };
                if relays.is_shared() {
                    return self.push_raw(relay, &to_peer);
                }
                Some(to_peer)
            }
            Output::ToClient { client, header_len: head_len, payload, padding_len: padding } => {
                let quote = Some((index, payload));
                to_client(listeners, &client).map(|to| Outgoing {
                    traffic_class,
                    hop_limit,
                    head_len,
                    quote,
                    padding,
                    ..to
                })
            }
            Output::ToWorker { worker, path, payload } => {
                let (to, from) = (Target::Relay(path.relay), path.peer);
                let hand_off =
                    HandOff { to, from, traffic_class, hop_limit, bytes: &datagram.bytes[payload.to_range()] };
                return send_hand_off(&mut self.counts, links, worker, &hand_off);
            }
            // Only the worker that owns a connection can reply on it.
            Output::HandOff(_) if transport != Transport::Udp => {
                self.counts.hand_offs_lost += 1;
                return;
            }
            Output::HandOff(worker) => {
                let (to, from, bytes) = (Target::Flow(from.server), from.client, datagram.bytes);
                let hand_off = HandOff { to, from, traffic_class, hop_limit, bytes };
                return send_hand_off(&mut self.counts, links, worker, &hand_off);
            }
            Output::Drop(_) => return,
        };
        // The outbox has room, so the listener is missing.
        if !outgoing.is_some_and(|outgoing| self.outbox.push(outgoing)) {
            self.counts.orphaned += 1;
        }
    }
}

impl Worker {
    /// Queues a datagram to a peer of a relay without a socket.
    fn push_raw(&mut self, relay: RelayId, to_peer: &Outgoing) {
        let Outgoing { to, traffic_class, hop_limit, dont_fragment, quote, .. } = *to_peer;
        let outgoing = self.parts.relays.exit(relay).zip(quote).map(|((exit, from), quote)| RawOutgoing {
            exit,
            from,
            to,
            traffic_class,
            hop_limit,
            dont_fragment,
            quote,
        });
        if !outgoing.is_some_and(|outgoing| self.raw.push(outgoing)) {
            self.counts.orphaned += 1;
        }
    }
}

impl WorkerCounters {
    /// Counts the result of sending `output` over TCP or TLS. It counts as sent once the connection's queue holds it.
    pub(super) fn sent_by_stream(&mut self, sent: Sent, output: &Output) {
        let (is_out, is_relayed) = (sent == Sent::Queued, matches!(output, Output::ToClient { .. }));
        self.sent += u64::from(is_out);
        self.sent_relayed += u64::from(is_out && is_relayed);
        self.queue_full += u64::from(sent == Sent::Full);
        self.connection_gone += u64::from(sent == Sent::Gone);
    }
}

/// Passes a datagram to the engine. An Allocate gets the relay sockets that it needs from the pool of the process.
fn pass_to_engine(parts: &mut Parts, now: Nanos, from: &FiveTuple, datagram: &Datagram<'_>, head: &mut [u8]) -> Output {
    let Parts { server, relays, streams, sampler, poller, .. } = parts;
    if let Some(relay) = relay_of(datagram.key) {
        return server.handle_peer(now, PeerPath { relay, peer: datagram.from }, datagram.bytes, head, sampler);
    }
    let need = server.relay_need(now, from, datagram.bytes);
    if let Some(need) = need {
        relays.lend(now, need, server, poller);
    }
    let output = match stream_of(datagram.key).and_then(|key| streams.listener_of_balancer(key)) {
        Some(listener) => server.handle_proxied(now, (from, listener), datagram.bytes, head, sampler),
        None => server.handle_client(now, from, datagram.bytes, head, sampler),
    };
    if need.is_some() {
        relays.settle(server, poller);
    }
    output
}

/// Returns the client over TCP or TLS that `output` is for, and the bytes; `None` if it is not for a connection.
fn of_stream<'a>(
    from: FiveTuple,
    output: &Output,
    head: &'a [u8],
    datagram: &'a [u8],
) -> Option<(FiveTuple, [&'a [u8]; 3])> {
    let (client, pieces): (_, [&[u8]; 3]) = match *output {
        Output::Reply { len, .. } => (from, [&head[..len], &[], &[]]),
        Output::ToClient { client, header_len, payload, padding_len } => {
            let padding = &ZEROS[..usize::from(padding_len)];
            (client, [&head[..header_len], &datagram[payload.to_range()], padding])
        }
        Output::ToPeer { .. } | Output::ToWorker { .. } | Output::HandOff(_) | Output::Drop(_) => return None,
    };
    (client.transport != Transport::Udp).then_some((client, pieces))
}

/// Returns the hop limit of a relayed payload: one less per relay (RFC 8656 section 14), `None` if it is used up, zero for
/// the system's default.
fn hops_left(output: &Output, datagram: &Datagram<'_>) -> Option<u8> {
    let relays_passed = match (output, relay_of(datagram.key)) {
        // From a client to a client it passes two.
        (Output::ToClient { .. }, None) => 2,
        (Output::ToPeer { .. } | Output::ToClient { .. } | Output::ToWorker { .. }, _) => 1,
        (Output::Reply { .. } | Output::HandOff(_) | Output::Drop(_), _) => 0,
    };
    match (datagram.hop_limit, datagram.hop_limit.saturating_sub(relays_passed)) {
        (1.., 0) => None,
        (_, left) => Some(left),
    }
}

/// Returns whether DONT-FRAGMENT applies: from IPv4 to IPv4, and for clients over TCP or TLS (RFC 8656 sections 13 to
/// 15).
fn df_applies(from: &FiveTuple, peer: SocketAddr) -> bool {
    from.transport != Transport::Udp || (from.client.is_ipv4() && peer.is_ipv4())
}

fn send_hand_off(counts: &mut WorkerCounters, links: &mut WorkerLinks, worker: WorkerId, hand_off: &HandOff<'_>) {
    let is_sent = links.push(worker, hand_off);
    let count = if is_sent { &mut counts.hand_offs_out } else { &mut counts.hand_offs_lost };
    *count += 1;
}

/// Returns an empty datagram to a client from the address that it uses (RFC 8489 section 6.3.1.2).
pub(super) fn to_client(listeners: &UdpListeners, client: &FiveTuple) -> Option<Outgoing> {
    let key = listeners.find(client.server)?;
    let is_wildcard = listeners.get(key)?.local_addr().ip().is_unspecified();
    let mut outgoing = Outgoing::of_head(key, client.client, 0);
    outgoing.source = is_wildcard.then_some(client.server.ip());
    Some(outgoing)
}
