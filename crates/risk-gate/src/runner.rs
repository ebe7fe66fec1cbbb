//! The gate's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use tt_meter::{Histogram, Sampler};
use tt_model::{OrderIntent, Report, Verdict};
use tt_os::clock::unix_now;
use tt_risk::Gate;
use tt_sync::spsc::{Consumer, Producer, ring};
use tt_sync::wait::{RingEnd as _, WaitStrategy as _};

use crate::board::{Board, BoardRow, BoardWriter, Tally, board};
use crate::control::{Control, LimitsChange};
use crate::ports::{IntentSender, Ports, ReportSender, RingWait, VerdictReceiver, ring_wait};
use crate::quote::QuoteSource;

/// Events between two publications of exposures and counts while the rings are never empty.
const EVENTS_PER_PUBLISH: u32 = 64;

/// The number of the one producer.
const PRODUCER: u16 = 0;

/// What [`start`] runs.
pub struct GateConfig {
    /// The gate with its limits and exposures.
    pub gate: Gate,
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
    let GateConfig { mut gate, rows, quotes, ring_slots, sample_one_in, cpu } = config;
    let sample_one_in = sample_one_in.max(1);
    for row in &rows {
        if let Some(limits) = &row.limits {
            let set = gate.set_limits(row.account, row.instrument, limits);
            set.with_context(|| format!("risk: limits of account {} in {}", row.account, row.symbol))?;
        }
    }
    let (intents, intents_out) = ring(ring_slots);
    let (reports, reports_out) = ring(ring_slots);
    let (verdicts, verdicts_out) = ring(ring_slots);
    let (writer, pushes, board) = board(rows, intents.capacity(), sample_one_in);
    let (control, changes) = Control::new(gate.controls());
    let stop = Arc::new(AtomicBool::new(false));
    let mut runner = Runner {
        gate,
        intents: intents_out,
        reports: reports_out,
        verdicts,
        changes,
        stop: Arc::clone(&stop),
        wait: ring_wait(),
        writer,
        quotes,
        probe: Sampler::new(tt_os::clock::calibration().clock, sample_one_in),
        journey: Histogram::new(),
        tally: Tally::ZERO,
        unpublished: 0,
    };
    // A reader that comes before the thread's first pass sees the limits.
    runner.publish();
    let thread = thread::Builder::new().name("gate".into()).spawn(move || {
        pin(cpu);
        runner.run();
    });
    let thread = thread.context("risk: cannot start the gate's thread")?;
    let ports = Ports {
        intents: IntentSender::new(intents, pushes),
        reports: ReportSender::new(reports),
        verdicts: VerdictReceiver::new(verdicts_out),
    };
    Ok((Running { board: Arc::new(board), control, stop, thread }, ports))
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
    Change(LimitsChange),
    /// There is room for a verdict again, or their receiver is gone.
    Room,
    /// The ring of intents is empty and its sender is gone, or the gate is to stop.
    End,
    /// The thread has been idle since the last publication.
    Idle,
}

struct Runner {
    gate: Gate,
    intents: Consumer<OrderIntent>,
    reports: Consumer<Report>,
    verdicts: Producer<Verdict>,
    changes: Receiver<LimitsChange>,
    stop: Arc<AtomicBool>,
    wait: RingWait,
    writer: BoardWriter,
    quotes: Option<Arc<dyn QuoteSource>>,
    probe: Sampler,
    journey: Histogram,
    tally: Tally,
    /// Events since the last publication.
    unpublished: u32,
}

impl Runner {
    fn run(mut self) {
        loop {
            match self.next() {
                Wake::Intent(intent) => {
                    self.apply_reports();
                    self.apply_changes();
                    self.evaluate(&intent);
                }
                Wake::Report(report) => self.apply(&report),
                Wake::Change(change) => self.change_limits(&change),
                Wake::Idle => self.publish(),
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
    }

    /// Waits for the next event. No intent is taken without room for its verdict: an order that was accepted and whose
    /// verdict is lost would count as open for ever.
    fn next(&mut self) -> Wake {
        if self.has_room() || self.verdicts.is_abandoned() { self.next_event() } else { self.wait_for_room() }
    }

    fn has_room(&self) -> bool {
        self.verdicts.occupancy() < self.verdicts.capacity()
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
        let Self { intents, reports, changes, stop, unpublished, .. } = self;
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
            match (*unpublished > 0, ends) {
                (true, _) => Some(Wake::Idle),
                (false, true) => Some(Wake::End),
                (false, false) => None,
            }
        })
    }

    fn apply_reports(&mut self) {
        while let Some(report) = self.reports.pop() {
            self.apply(&report);
        }
    }

    fn apply_changes(&mut self) {
        while let Ok(change) = self.changes.try_recv() {
            self.change_limits(&change);
        }
    }

    fn apply(&mut self, report: &Report) {
        let outcome = self.gate.apply(unix_now().0, report);
        self.tally.updates += 1;
        self.tally.update_errors += u64::from(!outcome.is_expected());
        self.unpublished += 1;
    }

    fn change_limits(&mut self, change: &LimitsChange) {
        let LimitsChange { account, instrument, limits, reply } = change;
        let set = self.gate.set_limits(*account, *instrument, limits);
        if set.is_ok() {
            self.writer.set_limits(*account, *instrument, limits);
            self.publish();
        }
        // The caller may have gone.
        let _ = reply.send(set);
    }

    fn evaluate(&mut self, intent: &OrderIntent) {
        self.unpublished += 1;
        if !self.has_room() {
            self.tally.unjudged += 1;
            return;
        }
        if let Some(quotes) = &self.quotes {
            // Without a quote there is no reference price, whatever there was before.
            let mark = quotes.quote(intent.instrument).unwrap_or_default().mark();
            // An unknown instrument has no mark; the evaluation rejects it.
            let _ = self.gate.set_reference(intent.instrument, &mark);
        }
        let verdict = self.gate.evaluate(unix_now().0, PRODUCER, intent, &mut self.probe);
        let journey_ns = unix_now().0.saturating_sub(intent.ts_ns);
        self.journey.record(journey_ns);
        self.tally.count(&verdict);
        self.writer.store_verdict(&verdict, intent, journey_ns);
        // There was room before the evaluation, and only this thread pushes.
        let _ = self.verdicts.push(verdict);
        self.wait.wake(self.verdicts.other_wake_word());
    }

    fn publish(&mut self) {
        self.unpublished = 0;
        self.writer.store_tally(&self.tally);
        self.writer.store_account_statuses(|account, instrument| self.gate.exposure(account, instrument));
        self.writer.try_store_timings(self.probe.stages(), &self.journey);
    }
}
