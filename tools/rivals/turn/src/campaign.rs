//! Rounds: every row against every server, servers in a new order each time, each round in fresh processes.

use bench::harness::random::shuffled;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_model::SplitMix64;

use crate::environment;
use crate::process;
use crate::record::{self, Record, Runs};
use crate::rivals::{Contestant, Places};
use crate::rows::{Room, Row, WINDOW, Work};
use crate::stage::{Generator, LOOPBACK, Running};
use crate::trial::{self, Plan};
use bench::harness::notes::Stamp;

/// What is run, and how long.
#[derive(Clone, Debug)]
pub(crate) struct Campaign {
    pub(crate) rows: Vec<Row>,
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) rounds: u64,
    pub(crate) duration: Duration,
    /// Runs that count system calls come before the rounds.
    pub(crate) counts_calls: bool,
    /// Rounds that have the memory row, which hardly varies and takes long.
    pub(crate) memory_rounds: u64,
    /// No round begins after this.
    pub(crate) time_max: Duration,
    pub(crate) seed: u64,
    pub(crate) out: PathBuf,
    /// Note of a run on a busy machine.
    pub(crate) forced: Option<String>,
}

/// The cores of the generator and of the servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) generator: Option<usize>,
    pub(crate) servers: Option<usize>,
    /// How many there are.
    pub(crate) count: usize,
}

impl Cores {
    /// The first and the last that this process may use.
    pub(crate) fn choose() -> Self {
        let cpus = tt_os::cpu::available().unwrap_or_default();
        let (generator, servers) = match cpus.as_slice() {
            [first, .., last] => (Some(*first), Some(*last)),
            _ => (None, None),
        };
        Self { generator, servers, count: cpus.len() }
    }
}

/// Runs it all; every run is in the file before the next begins.
pub(crate) fn run(campaign: &Campaign, places: &Places, cores: Cores) -> anyhow::Result<()> {
    if let Some(cpu) = cores.generator {
        tt_os::cpu::pin(cpu).with_context(|| format!("cannot use CPU {cpu}"))?;
    }
    process::hurry();
    process::raise_descriptors();
    let mut generator = Generator::new(campaign.seed, LOOPBACK)?;
    let stamp = Stamp::now(&places.root);
    let mut notes = environment::notes(&stamp, campaign, places, cores);
    notes.extend(campaign.forced.clone());
    notes.extend(alone(campaign, &mut generator)?);
    record::append(&campaign.out, &notes, &[])?;
    let first = first_round(&campaign.out)?;
    let order = SplitMix64::new(campaign.seed ^ first);
    let mut rounds = Rounds { campaign, places, cores, generator, stamp, order };
    let began = Instant::now();
    if campaign.counts_calls {
        rounds.round(first, true, false)?;
    }
    for number in 0..campaign.rounds {
        if began.elapsed() > campaign.time_max {
            println!("the time is up after {number} rounds");
            break;
        }
        rounds.round(first + number, false, number < campaign.memory_rounds)?;
    }
    Ok(())
}

/// What the generator does without a server, for each size of the rows: none of their rates can be above it.
fn alone(campaign: &Campaign, generator: &mut Generator) -> anyhow::Result<Vec<String>> {
    let mut sizes: Vec<(usize, usize)> = Vec::new();
    for row in &campaign.rows {
        if let Work::Traffic { payload_len, train, .. } = row.work
            && payload_len > 0
            && !sizes.contains(&(payload_len, train))
        {
            sizes.push((payload_len, train));
        }
    }
    let note = |(len, train): (usize, usize)| {
        let rate = trial::alone(generator, len, train, WINDOW)?;
        Ok(format!("generator without a server: {rate:.0} a second of {len} bytes in trains of {train}"))
    };
    sizes.into_iter().map(note).collect()
}

/// What stays the same from round to round.
struct Rounds<'a> {
    campaign: &'a Campaign,
    places: &'a Places,
    cores: Cores,
    generator: Generator,
    stamp: Stamp,
    order: SplitMix64,
}

impl Rounds<'_> {
    /// Every row once against every server, all of them started afresh.
    fn round(&mut self, round: u64, counts_calls: bool, with_memory: bool) -> anyhow::Result<()> {
        let Campaign { rows, contestants, duration, .. } = self.campaign;
        let plan = Plan { duration: *duration, counts_calls, server_cpu: self.cores.servers };
        let mut servers = Servers::new();
        for &contestant in contestants {
            let server = self.start(contestant, Room::Usual);
            servers.insert(contestant.name(), server);
        }
        for row in rows.iter().filter(|row| !row.work.needs_a_fresh_server()) {
            for contestant in shuffled(&mut self.order, contestants) {
                let record = one(&mut self.generator, row, contestant, &servers[contestant.name()], plan);
                self.keep(row, contestant, round, record)?;
            }
        }
        drop(servers);
        let is_memory = |row: &Row| matches!(row.work, Work::Memory | Work::Crowd { .. });
        let is_due = |row: &&Row| !is_memory(row) || (with_memory && !counts_calls);
        for row in rows.iter().filter(|row| row.work.needs_a_fresh_server()).filter(is_due) {
            for contestant in shuffled(&mut self.order, contestants) {
                let server = self.start(contestant, row.work.room());
                let record = one(&mut self.generator, row, contestant, &server, plan);
                self.keep(row, contestant, round, record)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, contestant: Contestant, room: Room) -> Result<Running, String> {
        contestant.version(self.places)?;
        let started = self.generator.start((contestant, room), self.places, self.cores.servers);
        started.map_err(|error| format!("{error:#}"))
    }

    fn keep(&self, row: &Row, contestant: Contestant, round: u64, record: Record) -> anyhow::Result<()> {
        let Stamp { date, commit } = self.stamp.clone();
        let (row, contestant) = (row.name.clone(), contestant.name().to_owned());
        let record = Record { date, commit, row, contestant, round, ..record };
        say(&record);
        record::append(&self.campaign.out, &[], &[record])
    }
}

type Servers = BTreeMap<&'static str, Result<Running, String>>;

/// A run, or a record that says why there is none.
fn one(
    generator: &mut Generator,
    row: &Row,
    contestant: Contestant,
    server: &Result<Running, String>,
    plan: Plan,
) -> Record {
    let refused = |reason: String| Record { kind: format!("none: {reason}"), ..Record::default() };
    if let Some(reason) = trial::refusal(contestant, row.work) {
        return refused(reason.to_owned());
    }
    match server {
        Err(reason) => refused(reason.clone()),
        Ok(server) => {
            let record = trial::run(generator, server, row.work, plan);
            record.unwrap_or_else(|error| {
                // What is left of it must not be taken for the next run's.
                let _ = generator.forget();
                refused(format!("{error:#}"))
            })
        }
    }
}

fn say(record: &Record) {
    let Record { row, contestant, round, kind, delivered, lost, cpu_ns, elapsed_ns, calls, .. } = record;
    let each = |sum: u64| sum as f64 / (*delivered).max(1) as f64;
    match kind.as_str() {
        "traffic" => println!(
            "{round:3} {row:18} {contestant:13} {:9.0}/s  {:6.0} ns CPU each  {:.2} of the core  {lost} lost",
            *delivered as f64 * 1e9 / (*elapsed_ns).max(1) as f64,
            each(*cpu_ns),
            *cpu_ns as f64 / (*elapsed_ns).max(1) as f64,
        ),
        "memory" => println!(
            "{round:3} {row:18} {contestant:13} {:.0} bytes an allocation",
            (record.resident_all - record.resident_one) as f64 / (record.allocations - 1) as f64
        ),
        "calls" => println!("{round:3} {row:18} {contestant:13} {:.2} system calls each", each(*calls)),
        reason => println!("{round:3} {row:18} {contestant:13} {reason}"),
    }
}

/// Rounds of a file that already holds some go on from there.
fn first_round(path: &Path) -> anyhow::Result<u64> {
    let runs = Runs::read(path)?;
    Ok(runs.records.iter().map(|record| record.round + 1).max().unwrap_or(0))
}
