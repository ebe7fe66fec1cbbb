//! Senders without a permission: datagrams to every relayed address in turn, while a client probes the server.
//!
//! A datagram without a permission goes nowhere, so what the server handled is what was sent less what the kernel
//! dropped at full sockets. The latencies are those of Binding requests on a fixed schedule.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::drive::Tally;
use crate::stage::Generator;
use crate::stun::{self, Request, Response, Transaction};

/// Setting: time from one Binding request to the next.
const PROBE_EVERY_NS: u64 = 5_000_000;
/// Setting: a Binding request that has no answer for so long is counted with this time.
const PATIENCE_NS: u64 = 500_000_000;
/// Setting: length of a datagram, bytes.
const LEN: usize = 32;
/// Datagrams between two looks at the clock and the client's socket.
const BATCH: usize = 16;

/// Sends to `relays` in turn for `duration`, and asks `server` on a schedule.
///
/// # Errors
/// The sockets do not work, or the kernel does not report what it dropped.
pub(crate) fn run(
    generator: &mut Generator,
    server: SocketAddrV4,
    relays: &[SocketAddrV4],
    duration: Duration,
) -> anyhow::Result<Tally> {
    let (source, probe_ip) = (generator.address(), generator.address());
    let bytes = [0; LEN];
    let dropped_before = dropped()?;
    let (start, end_ns) = (Instant::now(), duration.as_nanos() as u64);
    let now_ns = || start.elapsed().as_nanos() as u64;
    let mut tally = Tally::default();
    let mut probes = Probes { next: 0, asked_ns: None };
    let mut relays = relays.iter().cycle();
    while now_ns() < end_ns {
        for relay in relays.by_ref().take(BATCH) {
            match generator.faces.peer.send(source, *relay, &bytes) {
                Ok(()) => tally.sent += 1,
                Err(_) => tally.refused += 1,
            }
        }
        if let Some(id) = probes.due(now_ns()) {
            let request = Request::new(stun::BINDING, id).unsigned();
            generator.faces.client.send(probe_ip, server, &request).context("cannot send")?;
        }
        while let Some(arrival) = generator.faces.client.receive().context("cannot receive")? {
            let answer = Response::parse(arrival.bytes).filter(|_| arrival.from == server && arrival.at == probe_ip);
            match answer.and_then(|answer| probes.answered(answer.transaction, now_ns())) {
                Some(waited_ns) => tally.latency.record(waited_ns),
                None => tally.late += 1,
            }
        }
        if let Some(waited_ns) = probes.given_up(now_ns()) {
            tally.latency.record(waited_ns);
        }
    }
    tally.elapsed_ns = now_ns();
    tally.sending_ns = tally.elapsed_ns;
    tally.lost = (dropped()? - dropped_before).min(tally.sent);
    tally.delivered = tally.sent - tally.lost;
    Ok(tally)
}

/// Binding requests, one at a time.
struct Probes {
    /// The number of the next one; it is due at this number times the interval.
    next: u64,
    asked_ns: Option<u64>,
}

impl Probes {
    fn id(number: u64) -> Transaction {
        let mut id = [0x5a; 12];
        id[4..].copy_from_slice(&number.to_be_bytes());
        id
    }

    /// Whether a request is due; its wait counts from when it was due.
    fn due(&mut self, now_ns: u64) -> Option<Transaction> {
        let due_ns = self.next * PROBE_EVERY_NS;
        if self.asked_ns.is_some() || now_ns < due_ns {
            return None;
        }
        // Those that were due while another was awaited are left out: their waits overlap with it.
        self.next = now_ns / PROBE_EVERY_NS + 1;
        self.asked_ns = Some(now_ns);
        Some(Self::id(self.next))
    }

    fn answered(&mut self, id: Transaction, now_ns: u64) -> Option<u64> {
        if id != Self::id(self.next) {
            return None;
        }
        self.asked_ns.take().map(|asked_ns| now_ns - asked_ns)
    }

    fn given_up(&mut self, now_ns: u64) -> Option<u64> {
        let waited_ns = self.asked_ns.map(|asked_ns| now_ns - asked_ns).filter(|waited_ns| *waited_ns > PATIENCE_NS)?;
        self.asked_ns = None;
        Some(waited_ns)
    }
}

/// Datagrams that the kernel dropped at full sockets of this network namespace, over IPv4 (proc_net(5), `Udp` of
/// `/proc/net/snmp`).
fn dropped() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp").context("/proc/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next(), lines.next());
    let pairs = names.unwrap_or_default().split(' ').zip(values.unwrap_or_default().split(' '));
    let dropped = pairs.into_iter().find_map(|(name, value)| (name == "RcvbufErrors").then_some(value));
    dropped.and_then(|value| value.parse().ok()).context("/proc/net/snmp has no RcvbufErrors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_due_on_the_schedule_and_answered_once() {
        let mut probes = Probes { next: 0, asked_ns: None };
        let first = probes.due(0).unwrap();
        assert_eq!(probes.due(PROBE_EVERY_NS), None);
        assert_eq!(probes.answered([0; 12], 10), None);
        assert_eq!(probes.answered(first, 10), Some(10));
        assert_eq!(probes.answered(first, 20), None);
        assert_eq!(probes.due(PROBE_EVERY_NS - 1), None);
        let second = probes.due(PROBE_EVERY_NS).unwrap();
        assert_eq!(probes.given_up(PROBE_EVERY_NS + PATIENCE_NS), None);
        assert_eq!(probes.given_up(PROBE_EVERY_NS + PATIENCE_NS + 1), Some(PATIENCE_NS + 1));
        assert_eq!(probes.answered(second, PROBE_EVERY_NS + PATIENCE_NS + 2), None);
    }

    #[test]
    fn the_kernel_reports_what_it_dropped() {
        assert!(dropped().is_ok());
    }
}
