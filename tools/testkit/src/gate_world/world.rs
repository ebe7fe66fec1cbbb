//! The world: what happens, and when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use risk_gate::Input;
use tt_model::{InstrumentId, IntentKind, Nanos, OrderIntent, Report, ReportKind, Verdict};
use tt_risk::{Mark, Outcome as Became};
use tt_sync::spsc::{Consumer, Producer, ring};

use super::cancels::ScopeCancel;
use super::disk::SimDisk;
use super::failure::Failure;
use super::host::{Broken, Host, new_oracle};
use super::script::{Action, Deed, Fate, Script, Sleeper};
use super::setup::Setup;
use super::strategies::Strategies;
use super::tally::Tally;
use super::venue::Venue;
use super::wire::Wire;
use crate::draw::{Draw, mix};
use crate::gate_oracle::Oracle;
use crate::trace::Trace;

pub(super) const MS: u64 = 1_000_000;
/// When a world begins.
const START_NS: u64 = 1_000_000_000;
/// Interval between two syncs of the journal.
const SYNC_EVERY_NS: u64 = 10 * MS;
/// Interval between two looks of the operator.
const LOOK_EVERY_NS: u64 = 9 * MS;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first invariant that broke.
    pub failure: Option<Failure>,
    /// The hash of all that went in and came out.
    pub hash: u64,
    /// Totals.
    pub tally: Tally,
    /// What happened, if asked for.
    pub lines: Vec<String>,
}

/// Something that happens later.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Act(usize),
    /// The gate's thread runs.
    Gate,
    /// The sender's thread runs.
    Write,
    /// A message arrives at the venue.
    Arrive(OrderIntent),
    /// A report of the venue arrives.
    Deliver(usize),
    /// A report arrives that the venue did not send like this.
    Forgery(usize, Report),
    Sync,
    /// The operator looks at the accounts.
    Look,
    /// The operator cancels the orders of a scope.
    Cancel,
    Restart,
}

/// Rings between a process and its users. They die with it.
pub(super) struct Rings {
    pub(super) intents: Producer<OrderIntent>,
    pub(super) intents_out: Consumer<OrderIntent>,
    pub(super) verdicts: Producer<Verdict>,
    pub(super) verdicts_out: Consumer<Verdict>,
    /// Reports, with their place among those that the venue sent.
    pub(super) reports: VecDeque<(Option<usize>, Report)>,
}

impl Rings {
    pub(super) fn new(slots: usize) -> Self {
        let (intents, intents_out) = ring(slots);
        let (verdicts, verdicts_out) = ring(slots);
        Self { intents, intents_out, verdicts, verdicts_out, reports: VecDeque::new() }
    }
}

/// A verdict that somebody has seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    pub(super) at: u64,
    /// The journal was not lost.
    pub(super) is_recorded: bool,
}

/// A report whose outcome was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedReport {
    /// The place of the report if it counts as applied.
    pub(super) sent: Option<usize>,
    /// The account, if the gate did not know the order.
    pub(super) unknown_of: Option<u16>,
}

pub(super) struct World<'a> {
    pub(super) script: &'a Script,
    pub(super) now: u64,
    /// By how much the gate's clock is behind.
    pub(super) behind: u64,
    order: u64,
    queue: BTreeMap<(u64, u64), Event>,
    pub(super) trace: Trace,
    pub(super) tally: Tally,
    pub(super) failure: Option<Failure>,
    pub(super) disk: SimDisk,
    /// `None` while the process is dead.
    pub(super) host: Option<Host>,
    pub(super) rings: Rings,
    pub(super) strategies: Strategies,
    pub(super) venue: Venue,
    pub(super) wire: Wire,
    /// The newest price of each instrument.
    pub(super) marks: Vec<Mark>,
    pub(super) fates: VecDeque<Fate>,
    pub(super) is_calm: bool,
    /// Until when somebody sleeps: sender, strategies, gate.
    pub(super) sleeps: [u64; 3],
    /// Inputs until the process dies, and whether power fails with it.
    pub(super) dies: Option<(u64, bool)>,
    /// A kill that comes while the sender writes, or while the gate evaluates.
    pub(super) kill_within: Option<((usize, usize), u64)>,
    pub(super) last_sync: u64,
    /// Reports that were recorded, in order.
    pub(super) recorded: Vec<RecordedReport>,
    /// Cancels of scopes, in order.
    pub(super) scope_cancels: Vec<ScopeCancel>,
    pub(super) seen: BTreeMap<u64, Seen>,
    /// Numbers of intents that were judged in turn.
    pub(super) judged: BTreeSet<u64>,
    /// Executions that moved a position.
    pub(super) moved: BTreeSet<(usize, u128)>,
    /// Accepted orders by account, by instrument and of all: times on the gate's clock and the world's.
    pub(super) windows: BTreeMap<(u8, u32), Vec<[i128; 2]>>,
    /// What the journal holds, for the next process, the version of its limits, and the time of its last record.
    pub(super) recovered: Option<(Oracle, u32, u64)>,
    /// The limits in force, and all that were loaded, by version.
    pub(super) files: BTreeMap<u32, Setup>,
    /// Records were lost with the power: by account, until it reconciles.
    pub(super) unsure: Vec<bool>,
}

/// Plays a script.
#[must_use]
pub fn play(script: &Script, keeps_lines: bool) -> Outcome {
    let mut world = World::new(script, keeps_lines);
    world.run();
    let World { failure, mut tally, mut trace, now, venue, .. } = world;
    (tally.virtual_ms, tally.executions) = ((now - START_NS) / MS, venue.executions);
    Outcome { failure, hash: trace.hash(), tally, lines: trace.take_lines() }
}

impl<'a> World<'a> {
    fn new(script: &'a Script, keeps_lines: bool) -> Self {
        let setup = &script.setup;
        let disk = SimDisk::default();
        let mut world = Self {
            script,
            now: START_NS,
            behind: 0,
            order: 0,
            queue: BTreeMap::new(),
            trace: Trace::new(keeps_lines),
            tally: Tally::default(),
            failure: None,
            host: None,
            rings: Rings::new(setup.ring_slots),
            strategies: Strategies::default(),
            venue: Venue::new(setup, script.seed),
            wire: Wire::default(),
            marks: vec![Mark::default(); setup.instruments as usize],
            fates: VecDeque::new(),
            is_calm: false,
            sleeps: [0; 3],
            dies: None,
            kill_within: None,
            last_sync: START_NS,
            recorded: Vec::new(),
            scope_cancels: Vec::new(),
            seen: BTreeMap::new(),
            judged: BTreeSet::new(),
            moved: BTreeSet::new(),
            windows: BTreeMap::new(),
            recovered: None,
            files: BTreeMap::from([(setup.version, setup.clone())]),
            unsure: vec![false; usize::from(setup.accounts)],
            disk,
        };
        match Host::start(setup, &world.disk, new_oracle(setup), START_NS) {
            Ok((host, _)) => world.host = Some(host),
            Err(broken) => world.check(Err(broken)),
        }
        world.fresh_money();
        world
    }

    pub(super) fn setup(&self) -> &'a Setup {
        &self.script.setup
    }

    /// The limits in force.
    pub(super) fn limits(&self) -> &Setup {
        self.files.last_key_value().map_or(&self.script.setup, |(_, setup)| setup)
    }

    /// The time on the gate's clock.
    pub(super) const fn clock(&self) -> u64 {
        self.now - self.behind
    }

    /// Numbers that nothing else uses.
    pub(super) fn luck(&mut self) -> Draw {
        self.order += 1;
        Draw::new(mix(self.script.seed, self.order))
    }

    pub(super) fn later(&mut self, after: u64, event: Event) {
        self.order += 1;
        self.queue.insert((self.now + after, self.order), event);
    }

    /// Keeps the first failure.
    pub(super) fn check<T: Default>(&mut self, result: Result<T, Broken>) -> T {
        result.unwrap_or_else(|(invariant, what)| {
            let at = Nanos(self.now - START_NS);
            self.failure.get_or_insert(Failure { invariant, at, what });
            T::default()
        })
    }

    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        self.trace.say(Nanos(self.now - START_NS), line);
    }

    pub(super) fn note(&mut self, kind: u64, numbers: &[u64]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.trace.note(Nanos(self.now), kind, &bytes);
    }

    fn run(&mut self) {
        let actions = &self.script.actions;
        for (index, action) in actions.iter().enumerate() {
            self.later(action.at.0, Event::Act(index));
        }
        self.later(SYNC_EVERY_NS, Event::Sync);
        self.later(LOOK_EVERY_NS, Event::Look);
        let end = START_NS + actions.last().map_or(0, |action| action.at.0) + 5 * MS;
        self.run_until(end);
        // A machine that sleeps does things later.
        while self.failure.is_none() && self.queue.values().any(|event| matches!(event, Event::Act(_))) {
            self.run_until(self.now + 5 * MS);
        }
        self.heal();
    }

    /// Lets everything happen up to `end`.
    pub(super) fn run_until(&mut self, end: u64) {
        while self.failure.is_none()
            && let Some((&(at, order), _)) = self.queue.first_key_value()
            && at <= end
        {
            let Some(event) = self.queue.remove(&(at, order)) else { break };
            self.now = at;
            self.step(event);
        }
        self.now = self.now.max(end);
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Act(index) => self.act(&self.script.actions[index]),
            Event::Gate => self.gate_turn(),
            Event::Write => self.write_turn(),
            Event::Arrive(intent) => self.arrive(&intent),
            Event::Deliver(index) => self.deliver(index),
            Event::Forgery(index, report) => self.forge(index, report),
            Event::Sync => {
                if self.disk.sync_current() {
                    self.last_sync = self.now;
                }
                self.later(SYNC_EVERY_NS, Event::Sync);
            }
            Event::Look => {
                self.look();
                self.later(LOOK_EVERY_NS, Event::Look);
            }
            Event::Cancel => {
                let mut draw = self.luck();
                self.cancel_any(&mut draw);
            }
            Event::Restart => self.restart(),
        }
    }

    fn act(&mut self, action: &Action) {
        let mut draw = Draw::new(action.draw);
        self.say(|| format!("{:?}", action.deed));
        match action.deed {
            Deed::Intent => self.send_intent(&mut draw),
            Deed::Mark => self.quote(&mut draw),
            Deed::Money => self.money(&mut draw),
            Deed::Trade | Deed::Whim => self.venue_acts(action.deed == Deed::Whim, &mut draw),
            Deed::Hand => self.enter_by_hand(&mut draw),
            Deed::Report(fate) => self.fates.push_back(fate),
            Deed::Mode => self.operate(&mut draw),
            Deed::KillWithin => {
                let at = self.any_switch(&mut draw);
                self.kill_within = Some((at, draw.next()));
            }
            Deed::Adopt => self.adopt_any(&mut draw),
            Deed::Reconcile => {
                let account = draw.below(self.setup().accounts.into()) as u16;
                self.reconcile(account);
            }
            Deed::Reload => self.reload(&mut draw),
            Deed::CancelScope => self.cancel_any(&mut draw),
            Deed::State => self.set_state(&mut draw),
            Deed::Crash { power } => self.dies = Some((draw.below(5), power)),
            Deed::ProducerCrash => self.lose_producer(),
            Deed::Stall(sleeper) => {
                let index = [Sleeper::Sender, Sleeper::Strategies, Sleeper::Gate].iter().position(|of| *of == sleeper);
                self.sleeps[index.unwrap_or(0)] = self.now + draw.between(1, 40) * MS;
            }
            Deed::StepBack => self.behind += draw.between(1_000, 30 * MS),
            Deed::Suspend => {
                // Time passes, on every clock but the gate's.
                let slept = draw.between(1, 300) * MS;
                self.behind += slept;
                self.now += slept;
                let queue = std::mem::take(&mut self.queue);
                self.queue = queue.into_iter().map(|((at, order), event)| ((at + slept, order), event)).collect();
                self.perform(&Input::Suspended);
            }
            Deed::DiskFull => self.disk.set_full(true),
            Deed::DiskRoom => self.disk.set_full(false),
            Deed::SyncFails => self.disk.set_sync_fails(true),
        }
    }

    /// Performs an input that is no intent and no report.
    pub(super) fn perform(&mut self, input: &Input) -> Option<risk_gate::Answer> {
        let now = self.clock();
        let result = self.host.as_mut()?.perform(now, input).map(Some);
        let answer = self.check(result);
        self.note(3, &[now]);
        self.after_input();
        answer
    }

    /// Applies a report; `index` is its place among those of the venue.
    pub(super) fn apply(&mut self, index: Option<usize>, report: &Report) {
        let now = self.clock();
        let Some(host) = &mut self.host else { return };
        let position = |host: &Host| host.gate.gate().exposure(report.account, report.instrument).map(|of| of.position);
        let before = position(host);
        let result = host.report(now, report).map(Some);
        let has_moved = position(host) != before;
        let Some(outcome) = self.check(result) else { return };
        self.tally.reports += 1;
        self.note(4, &[outcome as u64, report.client_id, report.qty.0.cast_unsigned()]);
        self.say(|| format!("  {report:?}: {}", outcome.name()));
        // A bust that comes before its execution comes again.
        let is_early = outcome == Became::Unknown && matches!(report.kind, ReportKind::BUST | ReportKind::CORRECT);
        let settled = index.filter(|_| !is_early);
        if let Some(index) = settled {
            self.venue.sent[index].is_applied = true;
        } else if let Some(index) = index {
            self.later(15 * MS, Event::Deliver(index));
        }
        let unknown_of = matches!(outcome, Became::Adopted | Became::UnknownFill).then_some(report.account);
        self.recorded.push(RecordedReport { sent: settled, unknown_of });
        let result = self.moved_once(index, report, has_moved);
        self.check(result);
        self.after_input();
    }

    fn quote(&mut self, draw: &mut Draw) {
        let instrument = draw.below(self.setup().instruments.into()) as usize;
        let mark = self.mark(draw);
        self.marks[instrument] = mark;
        if draw.chance(1, 3) {
            self.perform(&Input::Mark(InstrumentId(instrument as u32), mark));
        }
        if draw.chance(1, 4) {
            self.perform(&Input::Time);
        }
    }

    pub(super) fn is_order(intent: &OrderIntent) -> bool {
        intent.kind != IntentKind::CANCEL && intent.kind != IntentKind::REPLACE
    }
}
