//! Mixed load in memory on every core, each core with a separate server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Barrier;
use std::thread;

use crate::report::{Bootstrap, Published, Row, RowText, Samples, Statistic, Unit};
use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Off};
use tt_model::{FiveTuple, SplitMix64};
use tt_turn::config::Capacity;
use tt_turn::relay::{PeerPath, RelayId};

use super::ENGINE;
use super::rig::{Rig, five_tuple, transaction_id};
use super::wire::{self, INPUTS, Packed};
use crate::harness::cpus;
use crate::harness::operation::{Bench, Finished};
use crate::harness::plan::Plan;

/// Live allocations of each core.
const CLIENTS: u32 = 5_000;
const CHANNEL: u16 = 0x4000;
/// Numbers of cores below all of them, and the rows of the mixed load on so many.
const FEWER: [(usize, &str); 8] = [
    (1, "sustained_on_1"),
    (2, "sustained_on_2"),
    (4, "sustained_on_4"),
    (8, "sustained_on_8"),
    (16, "sustained_on_16"),
    (32, "sustained_on_32"),
    (64, "sustained_on_64"),
    (128, "sustained_on_128"),
];
/// Payload of relayed packets: a voice packet.
const PAYLOAD: usize = 160;

/// The load of a core: datagrams of clients and packets of peers in random order.
struct Core {
    rig: Rig,
    steps: Vec<Step>,
    datagrams: Packed,
    next: usize,
}

#[derive(Clone, Copy)]
enum Step {
    Client(FiveTuple),
    Peer(PeerPath),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// 20 % Binding, 35 % ChannelData to peers, 35 % packets from peers, 5 % Send indications, 5 % signed Refresh.
    Mixed,
    /// Binding alone.
    Binding,
}

fn peer(client: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(0x0800_0000 | client.wrapping_mul(0x9e37_79b1) >> 8), 6_000))
}

impl Core {
    fn new(load: Load, seed: u64) -> anyhow::Result<Self> {
        let mut rig = Rig::with_allocations(Capacity::for_allocations(CLIENTS), false, CLIENTS)?;
        let mut nonces = Vec::new();
        let mut relays = Vec::new();
        for client in 0..CLIENTS {
            let nonce = rig.nonce(client)?;
            let number = [&CHANNEL.to_be_bytes()[..], &[0, 0]].concat();
            let address = wire::xor_value(peer(client), &transaction_id(client));
            let bind = rig.signed(0x0009, client, &nonce, &[(0x000c, &number), (0x0012, &address)]);
            let reply = rig.reply_to(client, &bind)?;
            ensure!(reply[..2] == [0x01, 0x09], "ChannelBind was refused: {reply:x?}");
            relays.push(rig.relay_of(client, CHANNEL)?);
            nonces.push(nonce);
        }
        let mut random = SplitMix64::new(seed);
        let mut core = Self { rig, steps: Vec::new(), datagrams: Packed::default(), next: 0 };
        for _ in 0..INPUTS {
            let client = random.index(CLIENTS as usize) as u32;
            let kind = if load == Load::Binding { 0 } else { random.index(100) };
            core.add(kind, client, &nonces[client as usize], relays[client as usize], &mut random);
        }
        Ok(core)
    }

    fn add(&mut self, kind: usize, client: u32, nonce: &[u8], relay: RelayId, random: &mut SplitMix64) {
        let payload: [u8; PAYLOAD] = random.bytes();
        let id = random.bytes();
        let (step, datagram) = match kind {
            0..20 => (Step::Client(five_tuple(client)), wire::message(0x0001, &id, &[])),
            20..55 => {
                let head = [CHANNEL.to_be_bytes(), (PAYLOAD as u16).to_be_bytes()].concat();
                (Step::Client(five_tuple(client)), [&head[..], &payload].concat())
            }
            55..90 => (Step::Peer(PeerPath { relay, peer: peer(client) }), payload.to_vec()),
            90..95 => {
                let address = wire::xor_value(peer(client), &id);
                let send = wire::message(0x0016, &id, &[(0x0012, &address), (0x0013, &payload)]);
                (Step::Client(five_tuple(client)), send)
            }
            _ => {
                let refresh = self.rig.signed(0x0004, client, nonce, &[(0x000d, &3_600u32.to_be_bytes())]);
                (Step::Client(five_tuple(client)), refresh)
            }
        };
        self.steps.push(step);
        self.datagrams.push(&datagram);
    }

    /// Passes for `span_ns`, and how many they were.
    fn run(&mut self, calibration: &Calibration, span_ns: u64) -> u64 {
        let begin = calibration.clock.end();
        let mut passes = 0;
        while calibration.scale.ns(calibration.clock.end().since(begin)) < span_ns {
            for index in self.next..self.next + 256 {
                let datagram = self.datagrams.get(index);
                std::hint::black_box(match &self.steps[index] {
                    Step::Client(from) => self.rig.pass(from, datagram, &mut Off),
                    Step::Peer(from) => self.rig.pass_peer(*from, datagram, &mut Off),
                });
            }
            self.next = (self.next + 256) % INPUTS;
            passes += 256;
        }
        passes
    }

    /// Every pass is answered or relayed: nothing is dropped.
    fn check(&self) -> anyhow::Result<()> {
        let counters = self.rig.server.counters();
        ensure!(counters.is_balanced(), "datagrams in are not datagrams out and drops");
        let dropped: u64 = counters.drops.iter().sum();
        ensure!(dropped == 0, "{dropped} datagrams of the load were dropped");
        Ok(())
    }
}

/// The sustained rows.
pub(super) struct Sustained {
    mixed: Vec<Core>,
    binding: Vec<Core>,
    cpus: Vec<usize>,
    mixed_rate: Samples,
    mixed_ns: Samples,
    binding_rate: Samples,
    /// The mixed load on fewer cores.
    fewer: Vec<Fewer>,
    /// Time of an operation with every core at work as a multiple of that with one, in the same block.
    slowdown: Samples,
}

struct Fewer {
    cores: usize,
    name: &'static str,
    rate: Samples,
}

impl Sustained {
    pub(super) fn new() -> anyhow::Result<Self> {
        // The runner has pinned this thread; the children of the first one may use all CPUs.
        let cpus = cpus::available();
        let cores =
            |load| (0..cpus.len()).map(|core| Core::new(load, core as u64 + 363)).collect::<anyhow::Result<_>>();
        let fewer = FEWER.into_iter().filter(|(cores, _)| *cores < cpus.len());
        let fewer = fewer.map(|(cores, name)| Fewer { cores, name, rate: Samples::new() }).collect();
        Ok(Self {
            mixed: cores(Load::Mixed)?,
            binding: cores(Load::Binding)?,
            cpus,
            mixed_rate: Samples::new(),
            mixed_ns: Samples::new(),
            binding_rate: Samples::new(),
            fewer,
            slowdown: Samples::new(),
        })
    }
}

/// Runs every core on its CPU at once; operations a nanosecond of all together, nanoseconds an operation of one.
fn together(cores: &mut [Core], cpus: &[usize], calibration: &Calibration, span_ns: u64) -> anyhow::Result<(f64, f64)> {
    let start = Barrier::new(cores.len());
    let count = cores.len() as f64;
    let run = |core: &mut Core, cpu: usize| -> anyhow::Result<f64> {
        let pinned = tt_os::cpu::pin(cpu);
        start.wait();
        pinned.with_context(|| format!("cannot pin to CPU {cpu}"))?;
        let begin = calibration.clock.end();
        let passes = core.run(calibration, span_ns);
        let ns = calibration.scale.ns_f64(calibration.clock.end().since(begin) as f64);
        Ok(passes as f64 / ns)
    };
    let run = &run;
    let rates: Vec<anyhow::Result<f64>> = thread::scope(|scope| {
        let threads: Vec<_> =
            cores.iter_mut().zip(cpus).map(|(core, cpu)| scope.spawn(move || run(core, *cpu))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let rate: f64 = rates.into_iter().sum::<anyhow::Result<f64>>()?;
    Ok((rate, count / rate))
}

impl Bench for Sustained {
    fn name(&self) -> &'static str {
        "sustained"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        let calibration = tt_os::clock::calibration();
        for core in self.mixed.iter_mut().chain(&mut self.binding) {
            core.run(calibration, 1_000_000);
            core.check()?;
        }
        Ok(())
    }

    fn warm_up(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        together(&mut self.mixed, &self.cpus, calibration, plan.warmup_ns / 2)?;
        together(&mut self.binding, &self.cpus, calibration, plan.warmup_ns / 2)?;
        Ok(())
    }

    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        let (rate, ns) = together(&mut self.mixed, &self.cpus, calibration, plan.block_ns)?;
        self.mixed_rate.push_block(vec![rate * 1e3]);
        self.mixed_ns.push_block(vec![ns]);
        for Fewer { cores, rate: on_fewer, .. } in &mut self.fewer {
            let (fewer, _) = together(&mut self.mixed[..*cores], &self.cpus, calibration, plan.block_ns)?;
            on_fewer.push_block(vec![fewer * 1e3]);
            if *cores == 1 {
                self.slowdown.push_block(vec![self.cpus.len() as f64 * fewer / rate]);
            }
        }
        let (rate, _) = together(&mut self.binding, &self.cpus, calibration, plan.block_ns)?;
        self.binding_rate.push_block(vec![rate * 1e3]);
        self.mixed.iter().chain(&self.binding).try_for_each(Core::check)
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let own = |name, what, unit, samples: &Samples| {
            let mut row = Row::of(RowText { name, engine: ENGINE, what, unit }, samples, 2, bootstrap)?;
            row.batch = 1;
            row.n = samples.len() as u64;
            Some(Finished { row, samples: samples.clone() })
        };
        let row = |name, what, unit, samples: &Samples, theirs: f64| {
            let mut finished = own(name, what, unit, samples)?;
            finished.row.published = vec![Published {
                value: theirs,
                unit,
                statistic: Statistic::Mean,
                what: "V100 on Graviton4, 64 vCPU".to_owned(),
            }];
            finished.row.notes.push(format!("{} cores here, 64 there", self.cpus.len()));
            Some(finished)
        };
        let mixed = "20 % Binding, 70 % relayed packets of 160 bytes both ways, 5 % Send indications, 5 % signed Refresh, \
                     5,000 allocations a core, in memory";
        let binding = "Binding alone on all cores, in memory";
        let fewer = "the mixed load on so many cores, one after the other with that on all";
        let slowdown = "time of an operation of the mixed load with every core at work, as a multiple of that with one";
        let on_fewer = self.fewer.iter().map(|it| own(it.name, fewer, Unit::MillionPerS, &it.rate));
        let of_all = [
            row("sustained", mixed, Unit::MillionPerS, &self.mixed_rate, 3.63),
            row("sustained_pipeline", binding, Unit::MillionPerS, &self.binding_rate, 3.61),
            row("sustained_ns", "one operation of the mixed load on one core", Unit::Ns, &self.mixed_ns, 300.0),
        ];
        let slowdown = own("sustained_slowdown", slowdown, Unit::Times, &self.slowdown);
        of_all.into_iter().chain(on_fewer).chain([slowdown]).flatten().collect()
    }
}
