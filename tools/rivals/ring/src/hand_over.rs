//! One event in flight: how long from the stamp before it is sent until it has been read whole, or judged.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use bench::machine::{PingPong, on_two_cores};
use tt_model::{OrderIntent, OrderTerms};

use crate::distribution::Distribution;
use crate::ends::{END, Event, Measurement, Receiver, Sender};
use crate::pace::{Plan, Probes, rest, rest_long};

/// Events that are sent and not recorded, first.
const WARM_UP: u64 = 2_000;

/// What a run gave.
pub(crate) struct Run {
    pub(crate) probes: Probes,
    pub(crate) times: Distribution,
    /// Events that came out of order or not whole; anything but 0 voids the run.
    pub(crate) faults: u64,
    /// The sum of what `consume` returned for every event, wrapping.
    pub(crate) checksum: u64,
    /// All events of the run.
    pub(crate) events: u64,
}

/// Sends events one at a time to `consume`, which gets them whole.
pub(crate) struct HandOver<'a, C> {
    pub(crate) plan: Plan<'a>,
    pub(crate) consume: C,
}

/// Number of events that the receiver has processed, on a separate cache line.
#[repr(align(128))]
struct Done(AtomicU64);

impl<C: FnMut(&OrderIntent) -> u64 + Send> Measurement for HandOver<'_, C> {
    type Output = anyhow::Result<Run>;

    fn measure<S: Sender, R: Receiver>(self, sender: S, receiver: R) -> Self::Output {
        let Self { plan, consume } = self;
        let clock = plan.calibration.clock;
        let probe = PingPong::new();
        let done = Done(AtomicU64::new(0));
        let times = Distribution::new();
        let ran = on_two_cores(
            plan.cpus,
            || {
                let before = probe.ask(clock);
                send(&plan, sender, &done);
                (before, probe.ask(clock))
            },
            || {
                probe.answer();
                let received = receive(&plan, receiver, &done, consume, times);
                probe.answer();
                received
            },
        );
        let ((before, after), run) = ran.context("cannot run on two cores")?;
        Ok(Run { probes: Probes::of(plan.calibration, before, after), ..run })
    }
}

fn send<S: Sender>(plan: &Plan<'_>, mut sender: S, done: &Done) {
    let clock = plan.calibration.clock;
    let end = clock.start().0 + plan.cycles;
    let mut number = 0;
    loop {
        let terms = black_box(plan.order(number));
        let now = clock.start().0;
        // One event is in flight at a time, so there is room.
        let _ = sender.send(S::Event::of(OrderTerms { ts_ns: now, ..terms }, number));
        number += 1;
        while done.0.load(Ordering::Acquire) != number {
            rest(&mut sender);
        }
        rest_long(&mut sender);
        if now >= end && number > WARM_UP {
            break;
        }
    }
    let _ = sender.send(S::Event::of(OrderTerms { client_id: END, ..OrderTerms::default() }, number));
}

fn receive(
    plan: &Plan<'_>,
    mut receiver: impl Receiver,
    done: &Done,
    mut consume: impl FnMut(&OrderIntent) -> u64,
    mut times: Distribution,
) -> Run {
    let clock = plan.calibration.clock;
    let (mut events, mut faults, mut checksum, mut has_ended) = (0, 0, 0_u64, false);
    while !has_ended {
        let received = receiver.receive(|intent| {
            let result = black_box(consume(intent));
            let end = clock.end();
            if intent.client_id == END {
                has_ended = true;
                return;
            }
            let expected = plan.order(events);
            let whole = OrderTerms { ts_ns: expected.ts_ns, ..intent.terms() } == expected && intent.seq == events;
            faults += u64::from(!whole);
            if events >= WARM_UP {
                times.record(end.0.saturating_sub(intent.ts_ns));
            }
            checksum = checksum.wrapping_add(result);
            events += 1;
        });
        if received > 0 {
            done.0.store(events, Ordering::Release);
        }
    }
    Run { probes: Probes::default(), times, faults, checksum, events }
}
