//! The topology `veth`: generator and server in network namespaces, with a pair of veth devices for clients and one for
//! peers. Every server, the echo servers among them, is at the same place, and one at a time.
//!
//! The CPU time of a run is that of the server's threads and of the kernel's threads that receive for it (threaded NAPI
//! of the two devices), both on one core. An XDP program runs in the latter.

mod ground;
mod subject;
mod table;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bench::harness::notes::Stamp;
use bench::harness::random::shuffled;
use tt_model::SplitMix64;

use crate::campaign::Cores;
use crate::drive::{Pace, Tally, drive};
use crate::process;
use crate::record::{self, Record, Runs};
use crate::rivals::Places;
use crate::rows::{WINDOW, Way};
use crate::stage::{Generator, Running};
use crate::trial::{SETTLE, WARM_UP, of_tally};
use ground::{ADDRESSES, Ground, programs};
use subject::{ALL, Subject};

/// Setting: how long a kernel path may take to relay.
const PROOF_MAX: Duration = Duration::from_secs(60);
/// Setting: bytes of a payload.
const PAYLOAD_LEN: usize = 160;
/// Setting: many allocations.
const MANY: usize = 10_000;
/// Setting: a run of many allocations lasts so long at least: truetick asks the kernel about every next hop once in it.
const MANY_FOR: Duration = Duration::from_secs(15);
/// The share of payloads that the kernel must have relayed for a run of the kernel path.
const SHARE_MIN: f64 = 0.99;

/// What is run, and how long.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: u64,
    pub(crate) duration: Duration,
    /// Leave out 10,000 allocations.
    pub(crate) is_quick: bool,
    pub(crate) seed: u64,
    pub(crate) out: PathBuf,
    pub(crate) time_max: Duration,
    pub(crate) forced: Option<String>,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    way: Way,
    flows: usize,
}

impl Row {
    fn name(self) -> String {
        let word = if self.way == Way::ToPeer { "to_peer" } else { "from_peer" };
        format!("veth_{word}_{PAYLOAD_LEN}_{}", self.flows)
    }
}

fn rows(is_quick: bool) -> Vec<Row> {
    let many: &[usize] = if is_quick { &[] } else { &[MANY] };
    let counts = [&[1, 100][..], many].concat();
    counts.into_iter().flat_map(|flows| [Way::ToPeer, Way::FromPeer].map(|way| Row { way, flows })).collect()
}

/// Runs it all; every run is in the file before the next begins. Needs root.
pub(crate) fn run(plan: &Plan, places: &Places, cores: Cores) -> anyhow::Result<()> {
    let (Some(own_cpu), Some(server_cpu)) = (cores.generator, cores.servers) else { bail!("two CPUs are needed") };
    process::hurry();
    process::raise_descriptors();
    let ground = Ground::make(places, [own_cpu, server_cpu])?;
    ground.enter()?;
    tt_os::cpu::pin(own_cpu).with_context(|| format!("cannot use CPU {own_cpu}"))?;
    let stamp = Stamp::now(&places.root);
    record::append(&plan.out, &notes(plan, places, &stamp), &[])?;
    let first = Runs::read(&plan.out)?.records.iter().map(|record| record.round + 1).max().unwrap_or(0);
    let mut order = SplitMix64::new(plan.seed ^ first);
    let began = Instant::now();
    for round in first..first + plan.rounds {
        for row in rows(plan.is_quick) {
            for subject in shuffled(&mut order, &ALL) {
                if began.elapsed() > plan.time_max {
                    println!("the time is up in round {round}");
                    return Ok(());
                }
                let records = one(plan, places, &ground, (row, subject)).unwrap_or_else(|error| {
                    vec![Record { kind: format!("none: {error:#}"), row: row.name(), ..Record::default() }]
                });
                let Stamp { date, commit } = stamp.clone();
                let stamped = |record: Record| {
                    let contestant = subject.name().to_owned();
                    Record { date: date.clone(), commit: commit.clone(), contestant, round, ..record }
                };
                let records: Vec<Record> = records.into_iter().map(stamped).collect();
                records.iter().for_each(say);
                record::append(&plan.out, &[], &records)?;
            }
        }
    }
    Ok(())
}

pub(crate) use table::print;

/// A run of a fresh server, and what its program took if the kernel says so.
fn one(plan: &Plan, places: &Places, ground: &Ground, (row, subject): (Row, Subject)) -> anyhow::Result<Vec<Record>> {
    let Row { way, flows } = row;
    if let Some(reason) = subject.refusal(flows) {
        bail!("{reason}");
    }
    let mut generator = Generator::new(plan.seed, ADDRESSES)?;
    let server = subject.start(places, ground, &mut generator)?;
    ground.pin_receivers()?;
    let paths = generator.paths(&server, way, flows)?;
    let mut traffic = generator.traffic(paths.flows, crate::traffic::Form::Payload { len: PAYLOAD_LEN }, 1);
    let mut next = 1;
    let mut go = |duration| -> anyhow::Result<Tally> {
        let tally = drive(&mut traffic, Pace::Closed { window: WINDOW }, duration, next)?;
        next += tally.sent + tally.refused;
        Ok(tally)
    };
    ensure!(go(WARM_UP)?.delivered > 0, "nothing arrives");
    if subject == Subject::Kernel {
        prove(ground, &mut go, flows)?;
    }
    let before = relayed_by_kernel(ground, subject)?;
    let programs_before = programs(subject.program());
    let duration = if flows == MANY { plan.duration.max(MANY_FOR) } else { plan.duration };
    let record = measure(&server, ground, || go(duration))?;
    let programs_after = programs(subject.program());
    let relayed = relayed_by_kernel(ground, subject)? - before;
    ensure!(
        subject != Subject::Kernel || relayed as f64 >= SHARE_MIN * record.delivered as f64,
        "the kernel relayed {relayed} of {}",
        record.delivered
    );
    let mut records = vec![Record { row: row.name(), ..record }];
    if let (Some(before), Some(after)) = (programs_before, programs_after) {
        let (cpu_ns, delivered) = (after.time_ns - before.time_ns, after.runs - before.runs);
        let kind = "program".to_owned();
        records.push(Record { row: row.name(), kind, cpu_ns, delivered, sent: delivered, ..Record::default() });
    }
    Ok(records)
}

/// Waits until the kernel has every path and relays.
fn prove(ground: &Ground, go: &mut impl FnMut(Duration) -> anyhow::Result<Tally>, flows: usize) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut before = relayed_by_kernel(ground, Subject::Kernel)?;
    loop {
        let tally = go(WARM_UP)?;
        thread::sleep(COUNTED);
        let [relayed, open] = ground.kernel_path()?;
        if open as usize >= flows && (relayed - before) as f64 >= SHARE_MIN * tally.delivered as f64 {
            return Ok(());
        }
        before = relayed;
        ensure!(started.elapsed() < PROOF_MAX, "the kernel has {open} of {flows} channels and does not relay them all");
    }
}

/// Setting: after so long what the kernel relays is counted.
const COUNTED: Duration = Duration::from_millis(1_500);

fn relayed_by_kernel(ground: &Ground, subject: Subject) -> anyhow::Result<u64> {
    if subject != Subject::Kernel {
        return Ok(0);
    }
    thread::sleep(COUNTED);
    ground.kernel_path().map(|[relayed, _]| relayed)
}

/// Runs `go` between two readings of server and receiving threads.
fn measure(server: &Running, ground: &Ground, go: impl FnOnce() -> anyhow::Result<Tally>) -> anyhow::Result<Record> {
    thread::sleep(SETTLE);
    let readings = tt_os::readings::Readings::take();
    let (cpu_before, received_before) = (server.process.cpu_ns()?, ground.receiving_ns()?);
    let tally = go()?;
    thread::sleep(SETTLE);
    let cpu_ns = server.process.cpu_ns()? - cpu_before;
    let deferred_ns = ground.receiving_ns()? - received_before;
    let steal_pct = tt_os::readings::Readings::take().since(&readings).steal_share() * 100.0;
    Ok(Record { kind: "traffic".into(), cpu_ns, deferred_ns, steal_pct, ..of_tally(tally) })
}

fn notes(plan: &Plan, places: &Places, stamp: &Stamp) -> Vec<String> {
    let mut notes = bench::harness::notes::notes(stamp, tt_os::clock::calibration(), plan.seed);
    notes.push("topology veth".to_owned());
    notes.push(format!("settings: {} rounds, {} ms a run, window {WINDOW}", plan.rounds, plan.duration.as_millis()));
    notes.extend(ALL.map(|subject| format!("{}: {}", subject.name(), subject.version(places))));
    notes.push("not measured: a network card or a wire, rates".into());
    notes.extend(plan.forced.clone());
    notes
}

fn say(record: &Record) {
    let Record { row, contestant, round, kind, delivered, lost, cpu_ns, deferred_ns, .. } = record;
    let each = |sum: u64| sum as f64 / (*delivered).max(1) as f64;
    match kind.as_str() {
        "traffic" => println!(
            "{round:3} {row:24} {contestant:16} {:6.0} ns each: server {:.0}, receiving {:.0}; {lost} lost of {delivered}",
            each(cpu_ns + deferred_ns),
            each(*cpu_ns),
            each(*deferred_ns),
        ),
        "program" => println!("{round:3} {row:24} {contestant:16} {:6.0} ns in the program", each(*cpu_ns)),
        reason => println!("{round:3} {row:24} {contestant:16} {reason}"),
    }
}
