//! The ring and its floor are timed by the same loop.

use std::sync::Mutex;

use super::*;
use testkit::{Requirement, require, two_cpus};

const EVENTS: usize = 60;

/// What the two threads did, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The stamp before the event.
    Before,
    Send,
    /// The idle sender's action between events.
    Idle,
    Receive,
    /// The stamp after the work.
    After,
}

struct Log(Mutex<Vec<Act>>);

impl Log {
    fn write(&self, act: Act) {
        self.0.lock().expect("no thread panics with the log").push(act);
    }
}

#[derive(Clone, Copy)]
struct Logged<'a, T>(T, &'a Log);

impl<T: Stamps> Stamps for Logged<'_, T> {
    fn before(self) -> u64 {
        self.1.write(Act::Before);
        self.0.before()
    }

    fn after(self) -> u64 {
        self.1.write(Act::After);
        self.0.after()
    }
}

impl<T: Sends> Sends for Logged<'_, T> {
    fn send(&mut self, terms: OrderTerms) -> bool {
        self.1.write(Act::Send);
        self.0.send(terms)
    }

    fn hold_next(&mut self) {
        self.1.write(Act::Idle);
        self.0.hold_next();
    }
}

impl<T: Receives> Receives for Logged<'_, T> {
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        let found = self.0.receive();
        if found.is_some() {
            self.1.write(Act::Receive);
        }
        found
    }
}

/// The acts of a run of `variant` through `ends`, without the sender's rests, and the fewest rests between two events.
fn acts<S: Sends, R: Receives>(rounds: &Rounds, variant: Variant, (sender, receiver): (S, R)) -> (Vec<Act>, usize) {
    let log = Log(Mutex::new(Vec::new()));
    let Calibration { clock, scale, .. } = *rounds.calibration;
    let clocks = Clocks { probe: clock, scale, stamps: Logged(clock, &log) };
    let run = rounds.pass(variant, clocks, (Logged(sender, &log), Logged(receiver, &log))).unwrap();
    assert_eq!((run.faults, run.is_complete), (0, true));
    let log = log.0.into_inner().expect("no thread panics with the log");
    let events = log.split(|act| *act == Act::Before).skip(1).take(EVENTS - 1);
    let after_event = events.map(|acts| acts.iter().rev().take_while(|act| **act == Act::Idle).count());
    let rests_min = after_event.min().unwrap();
    (log.into_iter().filter(|act| *act != Act::Idle).collect(), rests_min)
}

#[test]
fn the_ring_and_its_floor_have_the_same_stamps_and_pacing() {
    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let cpus = tt_os::cpu::available().unwrap();
    let threads = Threads { cpus: Some([cpus[0], cpus[1]]), fifo: None };
    let pairs = [
        (Variant::Gate, Variant::Floor),
        (Variant::Reader, Variant::FloorReader),
        (Variant::HoldsNext, Variant::FloorHoldsNext),
    ];
    let variants: Vec<Variant> = pairs.iter().flat_map(|(ring, floor)| [*ring, *floor]).collect();
    let mut sizes = Sizes::of_variants(&variants, threads, 1, EVENTS);
    sizes.warmup = 0;
    let rounds = Rounds::new(tt_os::clock::calibration(), sizes);
    for (of_ring, of_floor) in pairs {
        let (plan, floors) = (rounds.sizes.plan(of_ring), rounds.sizes.plan(of_floor));
        assert_eq!(format!("{plan:?}"), format!("{floors:?}"), "threads, warm-up, events, pace and idling");
        let (ring_acts, ring_rests) = acts(&rounds, of_ring, ring(64));
        let (floor_acts, floor_rests) = acts(&rounds, of_floor, one_line(64, 9));
        assert_eq!(ring_acts, floor_acts, "{of_ring:?}");
        let event = [Act::Before, Act::Send, Act::Receive, Act::After];
        assert!(ring_acts[..4 * EVENTS].chunks(4).all(|acts| acts == event), "{ring_acts:?}");
        let is_enough = |rests: usize| if of_ring == Variant::HoldsNext { rests >= 16 } else { rests == 0 };
        assert!(is_enough(ring_rests) && is_enough(floor_rests), "{of_ring:?}: {ring_rests} and {floor_rests} rests");
    }
}

#[test]
fn the_headline_and_its_controls_run_without_hold_next() {
    let sizes = Sizes::every_variant(&RATES);
    let holding: Vec<Variant> = sizes.into_iter().filter(|variant| variant.idle() == Idle::HoldsNext).collect();
    assert_eq!(holding, [Variant::HoldsNext, Variant::FloorHoldsNext], "rows of their own");
}
