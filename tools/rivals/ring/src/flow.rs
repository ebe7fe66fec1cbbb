//! As many events as the two cores can pass: one at a time, or in batches.

use std::hint::{black_box, spin_loop};

use anyhow::Context as _;
use bench::machine::{PingPong, on_two_cores};
use tt_model::{OrderIntent, OrderTerms};

use crate::ends::{BatchMeasurement, END, Event, Measurement, Receiver, ReceivesBatches, Sender, SendsBatches};
use crate::pace::{Plan, Probes};

/// Setting: events of a batch.
pub(crate) const BATCH: usize = 64;
/// Setting: orders that a flow repeats, each time with its number in it; they stay in the sender's nearest cache.
pub(crate) const ORDERS: usize = 256;
/// Events that are received before the time begins.
const WARM_UP: u64 = 20_000;
/// Events between two looks at the clock.
const STRIDE: u64 = 4_096;

/// What a run gave.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) probes: Probes,
    /// Events that came out of order; anything but 0 voids the run.
    pub(crate) faults: u64,
    /// The sum of all fields of all events, wrapping.
    pub(crate) checksum: u64,
    /// All events of the run.
    pub(crate) events: u64,
    /// Events within the time.
    pub(crate) timed: u64,
    pub(crate) elapsed_ns: f64,
}

/// The sum that a run of `events` events must give.
pub(crate) fn expected(plan: &Plan<'_>, events: u64) -> u64 {
    (0..events).map(|number| sum(&numbered(plan, number).numbered(number))).fold(0, u64::wrapping_add)
}

/// The sum of all fields of an event: reads everything at little cost.
#[inline(always)]
fn sum(intent: &OrderIntent) -> u64 {
    let OrderIntent { seq, ts_ns, client_id, limit_px, qty, trigger_px, .. } = *intent;
    let words = [seq, ts_ns, client_id, limit_px.0 as u64, qty.0 as u64, trigger_px.0 as u64];
    let OrderIntent { account, strategy, instrument, kind, side, tif, flags, ttl_ms, .. } = *intent;
    let shorts = [account, strategy].map(u64::from);
    let rest = [
        u64::from(instrument.0),
        u64::from(kind.0),
        side as u64,
        u64::from(tif.0),
        u64::from(flags.0),
        u64::from(ttl_ms),
    ];
    words.into_iter().chain(shorts).chain(rest).fold(0, u64::wrapping_add)
}

/// The terms of event `number`: no two of a run are the same.
#[inline(always)]
fn numbered(plan: &Plan<'_>, number: u64) -> OrderTerms {
    OrderTerms { client_id: number, ts_ns: number, ..plan.order(number) }
}

/// One event a call.
pub(crate) struct One<'a>(pub(crate) Plan<'a>);

/// [`BATCH`] events a call, or as many as there are or fit.
pub(crate) struct Batches<'a>(pub(crate) Plan<'a>);

impl Measurement for One<'_> {
    type Output = anyhow::Result<Run>;

    fn measure<S: Sender, R: Receiver>(self, sender: S, mut receiver: R) -> Self::Output {
        let plan = self.0;
        run(&plan, || send(&plan, sender), |flow| receiver.receive(|intent| flow.see(intent)))
    }
}

impl BatchMeasurement for Batches<'_> {
    type Output = anyhow::Result<Run>;

    fn measure<S: SendsBatches, R: ReceivesBatches>(self, sender: S, mut receiver: R) -> Self::Output {
        let plan = self.0;
        run(&plan, || send_batches(&plan, sender), |flow| receiver.receive_batch(BATCH, |intent| flow.see(intent)))
    }
}

/// What the receiver has seen.
#[derive(Default)]
struct Flow {
    events: u64,
    faults: u64,
    checksum: u64,
    has_ended: bool,
}

impl Flow {
    #[inline(always)]
    fn see(&mut self, intent: &OrderIntent) {
        if intent.client_id == END {
            self.has_ended = true;
            return;
        }
        self.faults += u64::from(intent.client_id != self.events) | u64::from(intent.seq != self.events);
        self.checksum = self.checksum.wrapping_add(sum(intent));
        self.events += 1;
    }
}

fn run(
    plan: &Plan<'_>,
    send: impl FnOnce() + Send,
    mut receive: impl FnMut(&mut Flow) -> usize + Send,
) -> anyhow::Result<Run> {
    let clock = plan.calibration.clock;
    let probe = PingPong::new();
    let ran = on_two_cores(
        plan.cpus,
        || {
            let before = probe.ask(clock);
            send();
            (before, probe.ask(clock))
        },
        || {
            probe.answer();
            let mut flow = Flow::default();
            let mut began = None;
            while !flow.has_ended {
                if receive(&mut flow) == 0 {
                    spin_loop();
                }
                if began.is_none() && flow.events >= WARM_UP {
                    began = Some((flow.events, clock.start()));
                }
            }
            let end = clock.end();
            probe.answer();
            let (first, begin) = began.unwrap_or((flow.events, end));
            (flow, first, end.since(begin))
        },
    );
    let ((before, after), (flow, first, elapsed)) = ran.context("cannot run on two cores")?;
    let Flow { events, faults, checksum, .. } = flow;
    let elapsed_ns = plan.calibration.scale.ns_f64(elapsed as f64);
    let probes = Probes::of(plan.calibration, before, after);
    Ok(Run { probes, faults, checksum, events, timed: events - first, elapsed_ns })
}

/// What the two loops gave without a queue.
pub(crate) struct Alone {
    pub(crate) probes: Probes,
    /// Of both loops.
    pub(crate) events: u64,
    /// Of the slower loop.
    pub(crate) ns_per_event: f64,
    /// Events that the receiver did not find as they were written.
    pub(crate) faults: u64,
}

/// Both loops of [`Batches`] at once, for the same time, each with a private buffer of [`BATCH`] events: what the two cores
/// could pass at most.
pub(crate) fn without_queue(plan: &Plan<'_>) -> anyhow::Result<Alone> {
    let clock = plan.calibration.clock;
    let probe = PingPong::new();
    let ran = on_two_cores(
        plan.cpus,
        || {
            let before = probe.ask(clock);
            let (mut buffer, mut number, begin) = ([OrderIntent::default(); BATCH], 0, clock.start());
            while clock.start().0 < begin.0 + plan.cycles {
                for _ in 0..STRIDE as usize / BATCH {
                    for place in &mut buffer {
                        *place = Event::of(numbered(plan, number), number);
                        number += 1;
                    }
                    black_box(&mut buffer);
                }
            }
            ((number, clock.end().since(begin)), (before, probe.ask(clock)))
        },
        || {
            probe.answer();
            let buffer: [OrderIntent; BATCH] =
                std::array::from_fn(|at| OrderIntent::of(numbered(plan, at as u64), at as u64));
            let (mut laps, mut flow, begin) = (0, Flow::default(), clock.start());
            while clock.start().0 < begin.0 + plan.cycles {
                for _ in 0..STRIDE as usize / BATCH {
                    flow.events = 0;
                    black_box(&buffer).iter().for_each(|intent| flow.see(intent));
                    laps += 1;
                }
            }
            let elapsed = clock.end().since(begin);
            probe.answer();
            let expected = expected(plan, BATCH as u64).wrapping_mul(laps);
            let faults = flow.faults + u64::from(flow.checksum != expected);
            (laps * BATCH as u64, elapsed, faults)
        },
    );
    let (((sent, sending), (before, after)), (seen, seeing, faults)) = ran.context("cannot run on two cores")?;
    let ns = |cycles: u64, events: u64| plan.calibration.scale.ns_f64(cycles as f64) / events as f64;
    let ns_per_event = ns(sending, sent).max(ns(seeing, seen));
    let probes = Probes::of(plan.calibration, before, after);
    Ok(Alone { probes, events: sent + seen, ns_per_event, faults })
}

fn send<S: Sender>(plan: &Plan<'_>, mut sender: S) {
    let clock = plan.calibration.clock;
    let end = clock.start().0 + plan.cycles;
    let mut number = 0;
    while number < 2 * WARM_UP || clock.start().0 < end {
        for _ in 0..STRIDE {
            put(&mut sender, numbered(plan, number), number);
            number += 1;
        }
    }
    put(&mut sender, OrderTerms { client_id: END, ..OrderTerms::default() }, number);
}

#[inline(always)]
fn put<S: Sender>(sender: &mut S, terms: OrderTerms, number: u64) {
    let event = S::Event::of(terms, number);
    while !sender.send(event) {
        spin_loop();
    }
}

fn send_batches<S: SendsBatches>(plan: &Plan<'_>, mut sender: S) {
    let clock = plan.calibration.clock;
    let end = clock.start().0 + plan.cycles;
    let mut number = 0;
    while number < 2 * WARM_UP || clock.start().0 < end {
        let enough = number + STRIDE;
        while number < enough {
            let sent = sender.send_batch(BATCH.min((enough - number) as usize), || {
                let event = S::Event::of(numbered(plan, number), number);
                number += 1;
                event
            });
            if sent == 0 {
                spin_loop();
            }
        }
    }
    put(&mut sender, OrderTerms { client_id: END, ..OrderTerms::default() }, number);
}
