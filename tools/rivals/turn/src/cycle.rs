//! Allocation cycles: 401, Allocate, Refresh with lifetime 0, each from a new address.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use anyhow::Context as _;

use crate::client::{Challenge, allocate_request, release_request};
use crate::drive::Tally;
use crate::stage::Generator;
use crate::stun::{Request, Response, Transaction};

/// Setting: a cycle that waits so long for an answer is lost.
const PATIENCE_NS: u64 = 500_000_000;

/// A cycle that is under way.
struct Cycle {
    ip: Ipv4Addr,
    /// 0: asked for a challenge; 1: allocating; 2: releasing.
    step: usize,
    transaction: Transaction,
    challenge: Option<Challenge>,
    began_ns: u64,
    asked_ns: u64,
}

struct Cycles<'a> {
    generator: &'a mut Generator,
    server: SocketAddrV4,
    start: Instant,
    serial: u64,
    under_way: Vec<Option<Cycle>>,
    tally: Tally,
}

/// Runs `count` cycles, at most `window` at once.
///
/// # Errors
/// The sockets do not work.
pub(crate) fn run(generator: &mut Generator, server: SocketAddrV4, window: usize, count: u64) -> anyhow::Result<Tally> {
    let under_way = std::iter::repeat_with(|| None).take(window).collect();
    let (start, tally) = (Instant::now(), Tally::default());
    let mut cycles = Cycles { generator, server, start, serial: 0, under_way, tally };
    loop {
        for slot in 0..window {
            if cycles.under_way[slot].is_none() && cycles.tally.sent < count {
                cycles.begin(slot)?;
            }
        }
        cycles.read()?;
        cycles.give_up();
        if cycles.tally.sent == count && cycles.under_way.iter().all(Option::is_none) {
            return Ok(cycles.tally);
        }
    }
}

impl Cycles<'_> {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn begin(&mut self, slot: usize) -> anyhow::Result<()> {
        let ip = self.generator.address();
        let transaction = self.transaction(slot);
        let now_ns = self.now_ns();
        self.under_way[slot] =
            Some(Cycle { ip, step: 0, transaction, challenge: None, began_ns: now_ns, asked_ns: now_ns });
        self.tally.sent += 1;
        self.send(ip, &allocate_request(transaction).unsigned())
    }

    fn transaction(&mut self, slot: usize) -> Transaction {
        self.serial += 1;
        let mut id = [0; 12];
        id[..4].copy_from_slice(&(slot as u32).to_le_bytes());
        id[4..].copy_from_slice(&self.serial.to_le_bytes());
        id
    }

    fn send(&mut self, ip: Ipv4Addr, request: &[u8]) -> anyhow::Result<()> {
        self.generator.faces.client.send(ip, self.server, request).context("cannot send")
    }

    fn read(&mut self) -> anyhow::Result<()> {
        while let Some(arrival) = self.generator.faces.client.receive().context("cannot receive")? {
            if arrival.from != self.server {
                self.tally.astray += 1;
                continue;
            }
            let Some(response) = Response::parse(arrival.bytes) else {
                self.tally.corrupt += 1;
                continue;
            };
            let [a, b, c, d, ..] = response.transaction;
            let slot = u32::from_le_bytes([a, b, c, d]) as usize;
            let cycle = self.under_way.get_mut(slot).and_then(Option::as_mut);
            let is_awaited = |cycle: &&mut Cycle| cycle.transaction == response.transaction && cycle.ip == arrival.at;
            let Some(cycle) = cycle.filter(is_awaited) else {
                self.tally.late += 1;
                continue;
            };
            let code = response.error_code();
            let goes_on = match cycle.step {
                0 => {
                    cycle.challenge = Challenge::of(&response);
                    code == 401 && cycle.challenge.is_some()
                }
                _ => code == 0,
            };
            cycle.step += 1;
            if goes_on {
                self.proceed(slot)?;
            } else {
                self.under_way[slot] = None;
                self.tally.lost += 1;
                self.tally.corrupt += 1;
            }
        }
        Ok(())
    }

    /// The next request of the cycle in `slot`, or its end.
    fn proceed(&mut self, slot: usize) -> anyhow::Result<()> {
        let (transaction, now_ns) = (self.transaction(slot), self.now_ns());
        let Some(cycle) = self.under_way[slot].as_mut() else { return Ok(()) };
        let request: fn(Transaction) -> Request = match cycle.step {
            1 => allocate_request,
            2 => release_request,
            _ => {
                self.tally.latency.record(now_ns - cycle.began_ns);
                self.tally.delivered += 1;
                self.tally.elapsed_ns = now_ns;
                self.under_way[slot] = None;
                return Ok(());
            }
        };
        (cycle.transaction, cycle.asked_ns) = (transaction, now_ns);
        let signed = cycle.challenge.as_ref().map(|challenge| challenge.sign(request(transaction)));
        let ip = cycle.ip;
        self.send(ip, &signed.context("a step without a challenge")?)
    }

    fn give_up(&mut self) {
        let now_ns = self.now_ns();
        for cycle in &mut self.under_way {
            if cycle.as_ref().is_some_and(|cycle| now_ns - cycle.asked_ns > PATIENCE_NS) {
                *cycle = None;
                self.tally.lost += 1;
            }
        }
    }
}
