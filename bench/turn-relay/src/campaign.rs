//! Rounds: every row against every server, servers in a new order each time, each round in fresh processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::environment;
use crate::process;
use crate::record::{self, Record, Runs};
use crate::rivals::{Contestant, Places};
use crate::rows::{Row, Work};
use crate::stage::{Generator, Running};
use crate::trial::{self, Plan};

/// What is run, and how long.
#[derive(Clone, Debug)]
pub(crate) struct Campaign {
    pub(crate) rows: Vec<Row>,
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) rounds: u64,
    pub(crate) duration: Duration,
    /// Runs that count system calls come before the rounds.
    pub(crate) counts_calls: bool,
    /// No round begins after this.
    pub(crate) time_max: Duration,
    pub(crate) seed: u64,
    pub(crate) out: PathBuf,
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
    let began = Instant::now();
    let mut generator = Generator::new(campaign.seed)?;
    let stamp = environment::Stamp::now(places);
    record::append(&campaign.out, &environment::notes(&stamp, campaign, places, cores), &[])?;
    let first = first_round(&campaign.out)?;
    let mut order = Order(campaign.seed ^ first);
    let rounds = (0..campaign.rounds).map(|number| (first + number, false));
    for (round, counts_calls) in campaign.counts_calls.then_some((first, true)).into_iter().chain(rounds) {
        if began.elapsed() > campaign.time_max {
            println!("the time is up after {round} rounds");
            break;
        }
        let servers = start_all(campaign, places, cores, &mut generator);
        let plan = Plan { duration: campaign.duration, counts_calls, server_cpu: cores.servers };
        for row in campaign.rows.iter().filter(|row| !counts_calls || row.work != Work::Memory) {
            for contestant in order.shuffle(&campaign.contestants) {
                let server = servers.get(contestant.name());
                let record = one(&mut generator, row, contestant, server, plan);
                let record = Record {
                    date: stamp.date.clone(),
                    commit: stamp.commit.clone(),
                    row: row.name.clone(),
                    contestant: contestant.name().into(),
                    round,
                    ..record
                };
                say(&record);
                record::append(&campaign.out, &[], &[record])?;
            }
        }
    }
    Ok(())
}

type Servers = BTreeMap<&'static str, Result<Running, String>>;

fn start_all(campaign: &Campaign, places: &Places, cores: Cores, generator: &mut Generator) -> Servers {
    let mut servers = Servers::new();
    for &contestant in &campaign.contestants {
        let started = contestant
            .version(places)
            .and_then(|_| generator.start(contestant, places, cores.servers).map_err(|error| format!("{error:#}")));
        servers.insert(contestant.name(), started);
    }
    servers
}

/// A run, or a record that says why there is none.
fn one(
    generator: &mut Generator,
    row: &Row,
    contestant: Contestant,
    server: Option<&Result<Running, String>>,
    plan: Plan,
) -> Record {
    let refused = |reason: String| Record { kind: format!("none: {reason}"), ..Record::default() };
    if let Some(reason) = trial::refusal(contestant, row.work) {
        return refused(reason.to_owned());
    }
    match server {
        None => refused("not started".into()),
        Some(Err(reason)) => refused(reason.clone()),
        Some(Ok(server)) => {
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
        "calls" => println!("{round:3} {row:18} {contestant:13} {:.2} system calls each", each(*calls)),
        reason => println!("{round:3} {row:18} {contestant:13} {reason}"),
    }
}

/// Rounds of a file that already holds some go on from there.
fn first_round(path: &Path) -> anyhow::Result<u64> {
    let runs = Runs::read(path)?;
    Ok(runs.records.iter().map(|record| record.round + 1).max().unwrap_or(0))
}

/// splitmix64, for the order of the servers.
struct Order(u64);

impl Order {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn shuffle(&mut self, contestants: &[Contestant]) -> Vec<Contestant> {
        let mut shuffled = contestants.to_vec();
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
        shuffled
    }
}
