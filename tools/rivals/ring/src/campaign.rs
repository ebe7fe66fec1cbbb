//! Rounds: every row by every contestant, in a new random order.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bench::harness::notes::Stamp;
use bench::harness::random::shuffled;
use bench::loops::read_whole;
use bench::report::Runs;
use tt_meter::{Calibration, Off};
use tt_model::{OrderIntent, OrderTerms, SplitMix64};
use tt_os::readings::Readings;
use tt_risk::Limits;

use crate::distribution::median;
use crate::flow::{self, Batches, One};
use crate::hand_over::{self, HandOver};
use crate::judging::{self, JUDGES, Judge, Manner, Profile};
use crate::lines;
use crate::orders::{self, BEGIN_NS, SMALL, STEP_NS};
use crate::pace::{Plan, Probes};
use crate::queues::{self, Queue};
use crate::record::{COLUMNS, Record};
use crate::rows::{Contestant, LINES, NO_QUEUE, Row, Work};

/// Passes over all orders of one run of the gate alone.
const PASSES: usize = 12;

/// What is run, and how long.
pub(crate) struct Campaign {
    pub(crate) rows: Vec<Row>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) rounds: u64,
    pub(crate) run_ms: u64,
    /// No round begins after this.
    pub(crate) time_max: Duration,
    pub(crate) seed: u64,
    pub(crate) out: PathBuf,
    pub(crate) cpus: [usize; 2],
    /// Note of a run on a busy machine.
    pub(crate) forced: Option<String>,
}

/// Runs it all; every run is in the file before the next begins.
pub(crate) fn run(campaign: &Campaign, stamp: &Stamp, calibration: &Calibration) -> anyhow::Result<()> {
    let mut notes = bench::harness::notes::notes(stamp, calibration, campaign.seed);
    notes.extend(campaign.forced.clone());
    notes.push(format!(
        "sender on CPU {}, receiver on CPU {}; {} rounds, {} ms a run, queues of {} slots, batches of {} events",
        campaign.cpus[0],
        campaign.cpus[1],
        campaign.rounds,
        campaign.run_ms,
        queues::SLOTS,
        flow::BATCH
    ));
    notes.extend(campaign.queues.iter().map(|queue| format!("{}: {}", queue.name(), queue.what())));
    notes
        .push(format!("{NO_QUEUE}: both loops of flow_batches at once, each with a private buffer; the slower one"));
    notes.push(format!("{LINES}: no queue; one core fills 512 cache lines while the other reads the 512 before"));
    notes.extend(campaign.rows.iter().map(|row| format!("row {}: {}", row.name, row.what)));
    notes.push("not measured: hardware counters, more than two cores, energy".into());
    Runs::append(&campaign.out, &notes, &COLUMNS, &[])?;
    let first = Runs::read(&campaign.out)?.next_round();
    let mut course = Course {
        campaign,
        calibration,
        stamp,
        orders: orders::orders(142, orders::ORDERS, SMALL),
        near: judging::Bench::new(false),
        far: judging::Bench::new(true),
        order: SplitMix64::new(campaign.seed ^ first << 32),
    };
    course.near.verify()?;
    course.far.verify()?;
    let began = Instant::now();
    for number in 0..campaign.rounds {
        if began.elapsed() > campaign.time_max {
            println!("the time is up after {number} rounds");
            break;
        }
        course.round(first + number)?;
        println!("round {} of {} after {:.0} s", number + 1, campaign.rounds, began.elapsed().as_secs_f64());
    }
    Ok(())
}

/// What stays the same from round to round.
struct Course<'a> {
    campaign: &'a Campaign,
    calibration: &'a Calibration,
    stamp: &'a Stamp,
    orders: Vec<OrderTerms>,
    near: judging::Bench,
    far: judging::Bench,
    order: SplitMix64,
}

impl Course<'_> {
    fn round(&mut self, round: u64) -> anyhow::Result<()> {
        let mut records = Vec::new();
        for row in shuffled(&mut self.order, &self.campaign.rows) {
            let contestants = contestants(&row, &self.campaign.queues);
            for contestant in shuffled(&mut self.order, &contestants) {
                let before = Readings::take();
                let record = self
                    .one(&row, contestant)
                    .unwrap_or_else(|error| Record { kind: format!("void: {error:#}"), ..Record::default() });
                let (steal_pct, _) = bench::harness::notes::steal(&before);
                let Stamp { date, commit } = self.stamp.clone();
                let (row, contestant) = (row.name.to_owned(), contestant.name().to_owned());
                records.push(Record { date, commit, row, contestant, round, steal_pct, ..record }.line());
            }
        }
        Runs::append(&self.campaign.out, &[], &COLUMNS, &records)
    }

    fn one(&mut self, row: &Row, contestant: Contestant) -> anyhow::Result<Record> {
        match (row.work, contestant) {
            (Work::OneWay, Contestant::Queue(queue)) => self.one_way(queue),
            (Work::Judged, Contestant::Queue(queue)) => self.judged(queue),
            (Work::One | Work::Batches, Contestant::Queue(queue)) => self.flow(queue, row.work),
            (Work::One | Work::Batches, Contestant::NoQueue) => self.flow_without_queue(flow::without_queue),
            (Work::One | Work::Batches, Contestant::Lines) => self.flow_without_queue(lines::measure),
            (Work::Judge { profile, manner, is_far }, Contestant::Judge(judge)) => {
                Ok(self.judge(judge, profile, manner, is_far))
            }
            (Work::Judge { .. }, Contestant::Queue(_))
            | (Work::OneWay | Work::Judged | Work::Judge { .. }, Contestant::NoQueue | Contestant::Lines)
            | (_, Contestant::Judge(_)) => anyhow::bail!("no such contestant in this row"),
        }
    }

    fn plan<'a>(&'a self, orders: &'a [OrderTerms]) -> Plan<'a> {
        let Campaign { cpus, run_ms, .. } = self.campaign;
        let cycles = (self.calibration.scale.cycles_per_s() * *run_ms as f64 / 1e3) as u64;
        Plan { cpus: *cpus, orders, calibration: self.calibration, cycles }
    }

    fn one_way(&self, queue: Queue) -> anyhow::Result<Record> {
        let plan = self.plan(&self.orders);
        let consume = |intent: &OrderIntent| {
            std::hint::black_box(read_whole(intent));
            intent.client_id
        };
        let run = queue.measure(HandOver { plan, consume })?;
        let expected = (0..run.events).map(|number| plan.order(number).client_id).fold(0, u64::wrapping_add);
        self.hand_over(&run, expected)
    }

    fn judged(&self, queue: Queue) -> anyhow::Result<Record> {
        let plan = self.plan(&self.orders);
        let run = queue.measure(HandOver { plan, consume: verdicts() })?;
        let mut again = verdicts();
        let expected = (0..run.events).map(|number| again(&plan.order(number).numbered(number)));
        let expected = expected.fold(0, u64::wrapping_add);
        self.hand_over(&run, expected)
    }

    fn hand_over(&self, run: &hand_over::Run, expected: u64) -> anyhow::Result<Record> {
        anyhow::ensure!(run.faults == 0, "{} events out of order or torn", run.faults);
        anyhow::ensure!(run.checksum == expected, "the receiver's answers are not the expected ones");
        let cycles = run.times.counts();
        let ns = |cycles: u64| self.calibration.scale.ns_f64(cycles as f64);
        let p50 = median(&cycles).context("no event was timed")?;
        let events: u64 = cycles.iter().map(|(_, count)| count).sum();
        let sum: f64 = cycles.iter().map(|(cycles, count)| ns(*cycles) * *count as f64).sum();
        let counts = cycles.iter().map(|(cycles, count)| (ns(*cycles).round() as u64, *count)).collect();
        let (p50_ns, mean_ns) = (self.calibration.scale.ns_f64(p50), sum / events as f64);
        let record = Record { kind: "hand_over".into(), events, p50_ns, mean_ns, counts, ..Record::default() };
        Ok(placed(record, run.probes))
    }

    fn flow(&self, queue: Queue, work: Work) -> anyhow::Result<Record> {
        let plan = self.plan(&self.orders[..flow::ORDERS]);
        let run = match work {
            Work::Batches => queue.measure_batches(Batches(plan)).context("it has no batches")??,
            Work::OneWay | Work::Judged | Work::One | Work::Judge { .. } => queue.measure(One(plan))?,
        };
        anyhow::ensure!(run.faults == 0, "{} events out of order", run.faults);
        anyhow::ensure!(run.checksum == flow::expected(&plan, run.events), "not every event arrived whole");
        let ns_per_event = run.elapsed_ns / run.timed as f64;
        let record = Record { kind: "flow".into(), events: run.timed, ns_per_event, ..Record::default() };
        Ok(placed(record, run.probes))
    }

    fn flow_without_queue(
        &self,
        measure: fn(&Plan<'_>) -> anyhow::Result<flow::Alone>,
    ) -> anyhow::Result<Record> {
        let run = measure(&self.plan(&self.orders[..flow::ORDERS]))?;
        let flow::Alone { probes, events, ns_per_event, faults } = run;
        anyhow::ensure!(faults == 0, "{faults} events out of order or not whole");
        Ok(placed(Record { kind: "flow".into(), events, ns_per_event, ..Record::default() }, probes))
    }

    fn judge(&mut self, judge: Judge, profile: Profile, manner: Manner, is_far: bool) -> Record {
        let bench = if is_far { &mut self.far } else { &mut self.near };
        let passes: f64 = (0..PASSES).map(|_| bench.run(judge, profile, manner, self.calibration)).sum();
        let events = (PASSES * orders::ORDERS) as u64;
        let ns_per_event = passes / PASSES as f64;
        Record { kind: "judge".into(), class: "one".into(), events, ns_per_event, ..Record::default() }
    }
}

fn placed(record: Record, probes: Probes) -> Record {
    let Probes { before_ns, after_ns } = probes;
    Record { class: probes.class().into(), before_ns, after_ns, ..record }
}

/// A gate that has judged nothing yet.
fn verdicts() -> impl FnMut(&OrderIntent) -> u64 + Send {
    let mut gate = orders::gate(SMALL);
    let mut now_ns = BEGIN_NS;
    move |intent| {
        now_ns += STEP_NS;
        let verdict = gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, intent, &mut Off);
        verdict.reasons.0 ^ u64::from(verdict.accept) << 63 ^ verdict.worst_pos.cast_unsigned().rotate_left(20)
    }
}

/// Who takes part in `row`.
fn contestants(row: &Row, queues: &[Queue]) -> Vec<Contestant> {
    let queues = |wanted: fn(Queue) -> bool| -> Vec<Contestant> {
        queues.iter().copied().filter(|queue| wanted(*queue)).map(Contestant::Queue).collect()
    };
    match row.work {
        Work::OneWay | Work::Judged => queues(|_| true),
        Work::One => queues(Queue::differs_under_load),
        Work::Batches => [queues(Queue::has_batches), vec![Contestant::NoQueue, Contestant::Lines]].concat(),
        Work::Judge { .. } => JUDGES.map(Contestant::Judge).to_vec(),
    }
}
