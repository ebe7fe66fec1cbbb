//! The gate's thread.

mod group;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context as _, Result};
use tt_meter::{Histogram, Sampler};
use tt_model::{InstrumentId, OrderIntent, Report, Verdict, sort_short_by_key};
use tt_os::clock::unix_now;
use tt_risk::KillSwitch;
use tt_risk::money::Conversion;
use tt_sync::barrier::{Passer, barrier};
use tt_sync::spsc::{Consumer, Producer, ring};
use tt_sync::wait::{RingEnd as _, WaitStrategy as _};

use crate::board::{Board, BoardRow, BoardWriter, Tally, board};
use crate::clocks::{ClockWatch, Clocks};
use crate::control::{Cancel, Cancelled, Change, Control, GATE, LimitsChange, Load, RunningLimits};
use crate::dead_man::{Beats, DeadMan, Watch};
use crate::durable::DurableGate;
use crate::input::Input;
use crate::ports::{CancelReceiver, IntentSender, POLLS, Ports, ReportSender, RingWait, VerdictReceiver, ring_wait};
use crate::quote::{Quote, QuoteSource};
use crate::sender::Sender;
use crate::sweep::Sweep;
use group::{BATCH, GROUP};

/// Events between two publications of exposures and counts while the rings are never empty.
const EVENTS_PER_PUBLISH: u32 = 64;

/// The number of the one producer.
const PRODUCER: u16 = 0;

/// What [`start`] runs.
pub struct GateConfig {
    /// The gate with its limits and exposures: a [`Gate`](tt_risk::Gate), or one with a journal.
    pub gate: DurableGate,
    /// The accounts and instruments that the board shows. `start` sets the limits of each row.
    pub rows: Vec<BoardRow>,
    /// The source of reference prices; `None` if the gate keeps the prices that it was given.
    pub quotes: Option<Arc<dyn QuoteSource>>,
    /// Slots of each ring, rounded up to a power of two.
    pub ring_slots: usize,
    /// One evaluation in this many is timed, at least 1.
    pub sample_one_in: u32,
    /// CPU that the thread is pinned to.
    pub cpu: Option<usize>,
    /// The thread polls its rings instead of sleeping: for a dedicated core.
    pub spins: bool,
    /// The names of the senders of accepted intents: [`Ports::senders`].
    pub senders: Vec<String>,
    /// What happens when the producer is silent; `None`: nothing.
    pub dead_man: Option<DeadMan>,
}

/// A running gate.
#[derive(Debug)]
pub struct Running {
    board: Arc<Board>,
    control: Control,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Starts the gate's thread.
///
/// # Errors
/// The gate rejects the limits of a row, or the thread cannot be started.
pub fn start(config: GateConfig) -> Result<(Running, Ports)> {
    start_with(config, Clocks::MACHINE)
}

/// The same, with other clocks next to that of the process.
pub(crate) fn start_with(config: GateConfig, clocks: Clocks) -> Result<(Running, Ports)> {
    let GateConfig { mut gate, rows, quotes, ring_slots, sample_one_in, cpu, spins, senders, dead_man } = config;
    let sample_one_in = sample_one_in.max(1);
    tt_os::clock::calibrate_ahead();
    for row in &rows {
        if let Some(limits) = &row.limits {
            let set = gate.set_limits(unix_now().0, row.account, row.instrument, limits);
            set.with_context(|| format!("risk: limits of account {} in {}", row.account, row.symbol))?;
        }
    }
    let (intents, intents_out) = ring(ring_slots);
    let (reports, reports_out) = ring(ring_slots);
    let (verdicts, verdicts_out) = ring(ring_slots);
    let (cancels, cancels_out) = channel();
    let sweep = Sweep::new(marked(&rows));
    let (mut writer, pushes, board) = board(rows, gate.limits(), intents.capacity(), sample_one_in);
    if let Some(limits) = gate.limits() {
        writer.fill_limits(limits, unix_now().0);
    }
    let names: Arc<[String]> = ["gate".to_owned()].into_iter().chain(senders).collect();
    let (barrier, mut passers) = barrier(names.len());
    let senders = passers.split_off(GATE + 1).into_iter().map(|passer| Sender::new(passer, gate.switches())).collect();
    let limits: RunningLimits = Arc::new(Mutex::new(gate.limits().cloned().map(Arc::new)));
    let (control, changes) =
        Control::new((gate.switches(), gate.journal_position()), gate.modes(), (barrier, names), Arc::clone(&limits));
    let stop = Arc::new(AtomicBool::new(false));
    let beats = Beats::default();
    let watch = dead_man.map(|dead_man| Watch::new(dead_man, Arc::clone(&beats)));
    let mut runner = Runner {
        gate,
        intents: intents_out,
        reports: reports_out,
        verdicts,
        changes,
        cancels,
        limits,
        watch,
        stop: Arc::clone(&stop),
        wait: RingWait { polls: if spins { u32::MAX } else { POLLS }, ..ring_wait() },
        writer,
        quotes,
        sweep,
        rates: Vec::new(),
        clocks: ClockWatch::new(clocks),
        probe: Sampler::new(tt_os::clock::clock(), sample_one_in),
        journey: Histogram::new(),
        tally: Tally::ZERO,
        unpublished: 0,
        waiting: Vec::with_capacity(BATCH),
        judged: Vec::with_capacity(GROUP),
        judged_by: Vec::with_capacity(GROUP),
    };
    let now_ns = runner.read_clocks();
    // A new gate has valued nothing yet.
    while runner.gate.gate().has_old_values() && !runner.gate.is_journal_lost() {
        runner.gate.perform(now_ns, &Input::Time);
    }
    // A reader that comes before the thread's first pass sees the limits.
    runner.publish();
    let thread = thread::Builder::new().name("gate".into()).spawn(move || {
        pin(cpu);
        runner.run(passers);
    });
    let thread = thread.context("risk: cannot start the gate's thread")?;
    let ports = Ports {
        intents: IntentSender::new(intents, pushes, beats),
        reports: ReportSender::new(reports),
        verdicts: VerdictReceiver::new(verdicts_out),
        cancels: CancelReceiver::new(cancels_out),
        senders,
    };
    Ok((Running { board: Arc::new(board), control, stop, thread }, ports))
}

/// Returns the instruments of `rows`, each once.
fn marked(rows: &[BoardRow]) -> Vec<InstrumentId> {
    let mut marked: Vec<_> = rows.iter().map(|row| row.instrument).collect();
    sort_short_by_key(&mut marked, |instrument| *instrument);
    marked.dedup();
    marked
}

fn pin(cpu: Option<usize>) {
    if let Some(cpu) = cpu
        && let Err(error) = tt_os::cpu::pin(cpu)
    {
        tracing::warn!(cpu, %error, "risk: cannot pin the gate's thread");
    }
}

impl Running {
    /// Returns what the gate publishes, for any thread.
    #[must_use]
    pub fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Returns the control of limits and kill switches, for any thread.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Evaluates the intents that are in the ring, as far as there is room for their verdicts, then ends the thread and
    /// waits for it.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.join();
    }

    /// Waits for the end of the thread, which follows the drop of the [`IntentSender`].
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("risk: the gate's thread panicked");
        }
    }
}

/// Why the thread has stopped waiting.
enum Wake {
    Intent(OrderIntent),
    Report(Report),
    Change(Change),
    /// The producer has been silent for too long.
    Silent,
    /// There is room for a verdict again, or their receiver is gone.
    Room,
    /// The ring of intents is empty and its sender is gone, or the gate is to stop.
    End,
    /// The thread has been idle since the last publication.
    Idle,
}

struct Runner {
    gate: DurableGate,
    intents: Consumer<OrderIntent>,
    reports: Consumer<Report>,
    verdicts: Producer<Verdict>,
    changes: Receiver<Change>,
    cancels: mpsc::Sender<OrderIntent>,
    limits: RunningLimits,
    watch: Option<Watch>,
    stop: Arc<AtomicBool>,
    wait: RingWait,
    writer: BoardWriter,
    quotes: Option<Arc<dyn QuoteSource>>,
    sweep: Sweep,
    /// Rates of a sweep.
    rates: Vec<(u16, Conversion)>,
    clocks: ClockWatch,
    probe: Sampler,
    journey: Histogram,
    tally: Tally,
    /// Events since the last publication.
    unpublished: u32,
    /// Empty between groups.
    waiting: Vec<OrderIntent>,
    /// Intents with verdicts that were not sent yet.
    judged: Vec<(OrderIntent, Verdict)>,
    /// The quote of each.
    judged_by: Vec<Quote>,
}

impl Runner {
    fn run(mut self, mut passers: Vec<Passer>) {
        loop {
            match self.next() {
                Wake::Intent(intent) => {
                    // Until it leaves, a change of a mode waits. The gate is never closed.
                    let _inside = passers.first_mut().map(Passer::enter);
                    self.apply_reports();
                    self.apply_changes();
                    self.evaluate_group(&intent);
                }
                Wake::Report(report) => self.apply(&report),
                Wake::Change(change) => self.change(change),
                Wake::Idle => {
                    self.publish();
                    self.value_again();
                }
                Wake::Silent => self.restrict(),
                Wake::Room => {}
                Wake::End => break,
            }
            if self.unpublished >= EVENTS_PER_PUBLISH {
                self.publish();
            }
        }
        self.apply_reports();
        while self.intents.pop().is_some() {
            self.tally.unjudged += 1;
        }
        self.publish();
        self.verdicts.close();
        self.wait.wake(self.verdicts.other_wake_word());
        self.gate.write_snapshot();
    }

    /// Waits for the next event. No intent is taken without room for its verdict: an order that was accepted and whose
    /// verdict is lost would count as open for ever.
    fn next(&mut self) -> Wake {
        if self.has_room() || self.verdicts.is_abandoned() { self.next_event() } else { self.wait_for_room() }
    }

    fn has_room(&self) -> bool {
        self.verdicts.occupancy() + self.judged.len() < self.verdicts.capacity()
    }

    fn wait_for_room(&mut self) -> Wake {
        let Self { verdicts, reports, changes, stop, unpublished, .. } = self;
        self.wait.wait(verdicts, |verdicts| {
            if verdicts.occupancy() < verdicts.capacity() || verdicts.is_abandoned() {
                return Some(Wake::Room);
            }
            if stop.load(Ordering::Acquire) {
                return Some(Wake::End);
            }
            if let Some(report) = reports.pop() {
                return Some(Wake::Report(report));
            }
            if let Ok(change) = changes.try_recv() {
                return Some(Wake::Change(change));
            }
            (*unpublished > 0).then_some(Wake::Idle)
        })
    }

    fn next_event(&mut self) -> Wake {
        let Self { intents, reports, changes, watch, stop, unpublished, .. } = self;
        self.wait.wait(intents, |intents| {
            // The order matters: whatever was pushed before the end is still evaluated.
            let ends = stop.load(Ordering::Acquire) || intents.is_abandoned();
            if let Some(intent) = intents.pop() {
                return Some(Wake::Intent(intent));
            }
            if let Some(report) = reports.pop() {
                return Some(Wake::Report(report));
            }
            if let Ok(change) = changes.try_recv() {
                return Some(Wake::Change(change));
            }
            if let Some(watch) = watch
                && watch.is_over(Instant::now())
            {
                return Some(Wake::Silent);
            }
            match (*unpublished > 0, ends) {
                (true, _) => Some(Wake::Idle),
                (false, true) => Some(Wake::End),
                (false, false) => None,
            }
        })
    }

    /// The dead man's switch acts.
    fn restrict(&mut self) {
        let Some(Watch { dead_man, .. }) = &self.watch else { return };
        let DeadMan { mode, cancels, .. } = *dead_man;
        for scope in dead_man.scopes.clone() {
            tracing::error!(?scope, ?mode, cancels, "risk: the producer is silent: its scope is restricted");
            self.gate.restrict(scope, mode);
            if cancels && let Err(error) = self.cancel(scope) {
                tracing::error!(%error, ?scope, "risk: its orders are not cancelled");
            }
        }
    }

    /// Passes a cancel of every open order in `scope` to the sender.
    fn cancel(&mut self, scope: KillSwitch) -> Result<Cancelled> {
        let cancels = self.gate.cancel_scope(unix_now().0, scope);
        self.gate.commit(unix_now().0, &mut []);
        self.unpublished += 1;
        let requested = cancels.len();
        for cancel in cancels {
            self.cancels.send(cancel).ok().context("no sender takes the cancels")?;
        }
        let mut open = Vec::new();
        self.gate.gate().open_in(scope, |account, client_id| open.push((account, client_id)));
        Ok(Cancelled { requested, open })
    }

    fn apply_reports(&mut self) {
        while let Some(report) = self.reports.pop() {
            self.apply(&report);
        }
    }

    fn apply_changes(&mut self) {
        while let Ok(change) = self.changes.try_recv() {
            self.change(change);
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Row(change) => self.change_limits(&change),
            Change::Load(load) => self.load(load),
            Change::Cancel(Cancel { scope, reply }) => {
                // The caller may have gone.
                let _ = reply.send(self.cancel(scope));
            }
        }
    }

    fn load(&mut self, Load { limits, reply }: Load) {
        let now_ns = self.read_clocks();
        let loaded = self.gate.load(now_ns, *limits);
        if let (Ok(_), Some(limits)) = (&loaded, self.gate.limits()) {
            self.writer.replace_limits(limits, unix_now().0);
            *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(limits.clone()));
            self.publish();
        }
        // The caller may have gone.
        let _ = reply.send(loaded);
    }

    fn apply(&mut self, report: &Report) {
        let outcome = self.gate.apply(unix_now().0, report);
        self.tally.updates += 1;
        self.tally.update_errors += u64::from(!outcome.is_expected());
        self.unpublished += 1;
    }

    fn change_limits(&mut self, change: &LimitsChange) {
        let LimitsChange { account, instrument, limits, reply } = change;
        let set = self.gate.set_limits(unix_now().0, *account, *instrument, limits);
        if set.is_ok() {
            self.writer.set_limits(*account, *instrument, limits);
            self.publish();
        }
        // The caller may have gone.
        let _ = reply.send(set);
    }

    /// Returns the time, and informs the gate of a sleep of the machine, and of the system's clock.
    fn read_clocks(&mut self) -> u64 {
        let slept_ns = self.clocks.take_sleep();
        let now_ns = unix_now().0;
        if let Some(slept_ns) = slept_ns {
            tracing::warn!(slept_ns, "risk: the machine has slept: orders wait for new marks");
            self.gate.perform(now_ns, &Input::Suspended);
        }
        if let Some(wall) = self.clocks.take_wall_time(now_ns) {
            self.gate.perform(now_ns, &Input::Wall(wall));
        }
        now_ns
    }

    /// Values positions that no event has valued since their marks changed: else the next order would find them too old.
    fn value_again(&mut self) {
        if self.gate.gate().has_old_values() && !self.gate.is_journal_lost() {
            self.gate.perform(unix_now().0, &Input::Time);
            self.unpublished += 1;
        }
    }

    /// Sets the marks of the instruments that are due: limits of sums need the values of all positions. Then the rates of
    /// currencies that verified books price in the currency of limits.
    fn sweep(&mut self, now_ns: u64) {
        if self.quotes.is_none() {
            return;
        }
        let mut rates = std::mem::take(&mut self.rates);
        for _ in 0..self.sweep.take_due(now_ns) {
            if let Some(instrument) = self.sweep.next() {
                let quote = self.mark(now_ns, instrument);
                rates.extend(self.gate.limits().and_then(|limits| limits.rate_of(instrument, &quote.mark())));
            }
        }
        // Behind all marks: with a rate, positions are valued again, which have no value by a mark of before a pause.
        for (currency, conversion) in rates.drain(..) {
            self.gate.perform(now_ns, &Input::Conversion(currency, conversion));
        }
        self.rates = rates;
    }

    /// Sets the mark of an instrument; returns its quote.
    fn mark(&mut self, now_ns: u64, instrument: InstrumentId) -> Quote {
        let Some(quotes) = &self.quotes else { return Quote::default() };
        // Without a quote there is no reference price, whatever there was before.
        let quote = quotes.quote(instrument).unwrap_or_default();
        // An unknown instrument has no mark; the evaluation rejects it.
        let _ = self.gate.set_reference(now_ns, instrument, &quote.mark());
        quote
    }

    fn publish(&mut self) {
        self.unpublished = 0;
        self.writer.store_tally(&self.tally);
        self.writer.store_account_statuses(|account, instrument| self.gate.gate().exposure(account, instrument));
        self.writer.store_levels(|node, instrument| self.gate.gate().held(node, instrument));
        self.writer.try_store_timings(self.probe.stages(), &self.journey);
    }
}
