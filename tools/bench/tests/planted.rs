//! Stalls whose cause and time are known, because the tests plant them: at least 90 % of them must get their cause.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use bench::machine::{Jitter, Stall, StallCause, StallWatch, WatchPlan};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use testkit::{Requirement, require};
use tt_meter::{Calibration, Clock, Scale, Stamp};

/// Stalls that each test plants.
const PLANTED: u64 = 400;
/// From one to the next: no multiple of what else comes regularly, such as the scheduler's own interrupts. All of them fit into
/// the 0.95 s that Linux gives a real-time thread.
const EVERY_NS: u64 = 1_070_000;
/// Before the first, to get ready.
const LEAD_NS: u64 = 30_000_000;
/// A stall may begin this long before the planted moment: a hypervisor stops the guest early, so that its timer is on time.
const EARLY_NS: u64 = 8_000;
/// A stall that begins this long after the planted moment is another one.
const SLACK_NS: u64 = 30_000;
/// How long the rival keeps the core.
const RIVAL_NS: u64 = 100_000;
/// Pages touched at once.
const PAGES: usize = 16;
const PAGE: usize = 4096;

/// One core, one test at a time.
fn core() -> (usize, MutexGuard<'static, ()>) {
    static CORE: Mutex<()> = Mutex::new(());
    let held = CORE.lock().unwrap_or_else(PoisonError::into_inner);
    (*tt_os::cpu::available().unwrap().last().unwrap(), held)
}

fn ns_of(clock: nix::time::ClockId) -> u64 {
    let time = clock_gettime(clock).unwrap();
    time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs()
}

fn raw_ns() -> u64 {
    ns_of(nix::time::ClockId::CLOCK_MONOTONIC_RAW)
}

fn monotonic_ns() -> u64 {
    ns_of(nix::time::ClockId::CLOCK_MONOTONIC)
}

fn calibration() -> Calibration {
    Calibration::measure(Clock::new(raw_ns), &mut raw_ns, 20_000_000)
}

/// `CLOCK_MONOTONIC`, on which the moments are set, as stamps.
struct Translation {
    first: (u64, u64),
    last: (u64, u64),
}

impl Translation {
    fn stamp(&self, ns: u64) -> Stamp {
        let share = (ns as f64 - self.first.1 as f64) / (self.last.1 - self.first.1) as f64;
        Stamp(self.first.0 + (share * (self.last.0 - self.first.0) as f64) as u64)
    }
}

fn alarm_at(ns: u64) -> TimerFd {
    let alarm = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).unwrap();
    let moment = TimeSpec::from_duration(Duration::from_nanos(ns));
    alarm.set(Expiration::OneShot(moment), TimerSetTimeFlags::TFD_TIMER_ABSTIME).unwrap();
    alarm
}

fn moments() -> Vec<u64> {
    let first = monotonic_ns() + LEAD_NS;
    (0..PLANTED).map(|number| first + number * EVERY_NS).collect()
}

/// Spins on `cpu` until all moments have passed; `plant` is called once before, `each` all the time. Returns the moments as
/// stamps, and what `plant` did.
fn spin<P>(
    calibration: &Calibration,
    cpu: usize,
    in_place: &Barrier,
    plant: impl FnOnce(&[u64]) -> P,
    mut each: impl FnMut(&mut StallWatch, Clock),
) -> (Jitter, Vec<Stamp>, P) {
    tt_os::cpu::pin(cpu).unwrap();
    in_place.wait();
    // Without the right to it, other programs disturb more.
    let _fifo = tt_os::priority::request_fifo(10);
    let clock = calibration.clock;
    let moments = moments();
    let planted = plant(&moments);
    let plan = WatchPlan { cpu, threshold_ns: 1_000, stalls_max: 100_000 };
    let mut watch = StallWatch::new(plan, clock, calibration.scale).unwrap();
    let first = calibration.pair(&mut monotonic_ns);
    watch.resume();
    let last = calibration.scale.cycles_per_s() / 1e9 * (moments[moments.len() - 1] + EVERY_NS - first.1) as f64;
    while watch.last().since(Stamp(first.0)) < last as u64 {
        watch.observe(clock.end());
        each(&mut watch, clock);
    }
    let jitter = watch.finish();
    let translation = Translation { first, last: calibration.pair(&mut monotonic_ns) };
    let stamps = moments.into_iter().map(|moment| translation.stamp(moment)).collect();
    (jitter, stamps, planted)
}

/// Results of injected stalls.
#[derive(Debug, Default)]
struct Judgement {
    /// The thread ran when they came.
    planted: usize,
    /// They were seen and got their cause.
    named: usize,
    /// The thread stood still already when they came.
    late: usize,
    /// Other causes that were reported, or none.
    mistaken: BTreeMap<Option<StallCause>, usize>,
}

impl Judgement {
    /// `windows` are the first and last stamp of each planted stall.
    fn of(jitter: &Jitter, scale: Scale, windows: &[(Stamp, Stamp)], cause: StallCause) -> Self {
        let mut judgement = Self::default();
        for (from, to) in windows {
            let (from, to) = (scale.ns(from.since(jitter.start)), scale.ns(to.since(jitter.start)));
            let meets =
                |stall: &&Stall| stall.at_ns + stall.length_ns > from.saturating_sub(EARLY_NS) && stall.at_ns < to;
            let met = || jitter.stalls.iter().filter(meets);
            if met().any(|stall| stall.cause == cause) {
                judgement.named += 1;
            } else if met().any(|stall| stall.at_ns + EARLY_NS < from) {
                judgement.late += 1;
            } else {
                *judgement.mistaken.entry(met().next().map(|stall| stall.cause)).or_default() += 1;
            }
        }
        judgement.planted = windows.len() - judgement.late;
        judgement
    }

    fn share(&self) -> f64 {
        self.named as f64 / self.planted.max(1) as f64
    }

    /// Nine of ten were named, and of moments at which nothing was planted far fewer were.
    fn hold(&self, control: &Self, name: &str) {
        println!("{name}: planted {self:?}\n{name}: control {control:?}");
        if control.share() >= 0.25 {
            // Other programs stall the core as often.
            let Some(_) = require(Requirement::IdleMachine, tt_os::priority::request_fifo(10)) else { return };
        }
        assert!(self.planted * 4 >= PLANTED as usize, "too few to judge: {self:?}");
        assert!(self.share() >= 0.9, "{:.3} named: {self:?}", self.share());
        assert!(control.share() < 0.25, "{:.3} named where nothing was: {control:?}", control.share());
    }
}

/// From each moment until a stall may begin that belongs to it.
fn windows(moments: &[Stamp], scale: Scale, slack_ns: u64) -> Vec<(Stamp, Stamp)> {
    let slack = (slack_ns as f64 * scale.cycles_per_s() / 1e9) as u64;
    moments.iter().map(|moment| (*moment, Stamp(moment.0 + slack))).collect()
}

fn alone() -> Barrier {
    Barrier::new(1)
}

/// Alarms without a waiting thread: each is an interrupt of the core that set it, and wakes no thread.
#[test]
fn a_timer_storm_is_reported_as_interrupts() {
    let (cpu, _held) = core();
    let calibration = calibration();
    let run = |with_alarms: bool| {
        let plant = |moments: &[u64]| {
            let alarms = moments.iter().filter(|_| with_alarms).map(|moment| alarm_at(*moment));
            alarms.collect::<Vec<_>>()
        };
        let run = || spin(&calibration, cpu, &alone(), plant, |_, _| {});
        let (jitter, moments, _alarms) = thread::scope(|scope| scope.spawn(run).join().unwrap());
        let windows = windows(&moments, calibration.scale, SLACK_NS);
        Judgement::of(&jitter, calibration.scale, &windows, StallCause::Interrupt)
    };
    run(true).hold(&run(false), "timer storm");
}

/// The thread touches memory that is not there yet, 16 pages at a time.
#[test]
fn touched_pages_are_reported_as_page_faults() {
    let (cpu, _held) = core();
    let calibration = calibration();
    let run = |with_faults: bool| {
        let memory = || vec![0_u8; PLANTED as usize * PAGES * PAGE + PAGE];
        let (mut fresh, mut next, mut touched) = (memory(), 0, Vec::with_capacity(PLANTED as usize));
        let every = (EVERY_NS as f64 * calibration.scale.cycles_per_s() / 1e9) as u64;
        let mut due = Stamp(0);
        let each = |watch: &mut StallWatch, clock: Clock| {
            if watch.last() >= due && next < PLANTED as usize {
                let from = clock.end();
                due = Stamp(from.0 + every);
                let pages = fresh.chunks_mut(PAGE).skip(next * PAGES).take(if with_faults { PAGES } else { 0 });
                pages.for_each(|page| page[0] = black_box(1));
                let to = clock.end();
                next += 1;
                if watch.observe(to) || !with_faults {
                    touched.push((from, to));
                }
            }
        };
        let run = || spin(&calibration, cpu, &alone(), |_| {}, each);
        let (jitter, ..) = thread::scope(|scope| scope.spawn(run).join().unwrap());
        Judgement::of(&jitter, calibration.scale, &touched, StallCause::PageFault)
    };
    run(true).hold(&run(false), "page faults");
}

/// A thread on the same core that wakes, works and sleeps, and says when it worked.
#[test]
fn a_rival_on_the_core_is_reported_as_preemption() {
    let (cpu, _held) = core();
    let calibration = calibration();
    let run = |rival_runs: bool| {
        let in_place = Barrier::new(2);
        let (worked, jitter, moments) = thread::scope(|scope| {
            let rival = scope.spawn(|| {
                tt_os::cpu::pin(cpu).unwrap();
                let _fifo = tt_os::priority::request_fifo(20);
                in_place.wait();
                let moments = if rival_runs { moments() } else { Vec::new() };
                let work = |moment: u64| {
                    alarm_at(moment).wait().unwrap();
                    let from = calibration.clock.end();
                    let length = (RIVAL_NS as f64 * calibration.scale.cycles_per_s() / 1e9) as u64;
                    let mut to = from;
                    while to.since(from) < length {
                        to = calibration.clock.end();
                    }
                    (from, to)
                };
                moments.into_iter().map(work).collect::<Vec<_>>()
            });
            let spinner = scope.spawn(|| spin(&calibration, cpu, &in_place, |_| {}, |_, _| {}));
            let (jitter, moments, ..) = spinner.join().unwrap();
            (rival.join().unwrap(), jitter, moments)
        });
        let windows = if rival_runs { worked } else { windows(&moments, calibration.scale, RIVAL_NS) };
        Judgement::of(&jitter, calibration.scale, &windows, StallCause::Preemption)
    };
    run(true).hold(&run(false), "rival");
}
