//! The barrier as litmus programs for Miri, whose loads may return older values. They are ordinary tests, too.

use super::super::*;
use crate::sync::tests::race;

/// How often the thread that raises looks whether the passer is past.
const LOOKS: usize = 6;

/// A sender writes its numbers to a wire unless it is killed. After the kill was acknowledged, nothing reaches the
/// wire.
fn kill_a_sender_of(writes: u64) {
    let (barrier, mut passers) = barrier(1);
    let [killed, wire] = [0; 2].map(AtomicU64::new);
    assert!(barrier.is_past(0, 0));
    let send = || {
        for number in 1..=writes {
            let entry = passers[0].enter().expect("it is not closed");
            if killed.load(Ordering::Relaxed) == 0 {
                wire.store(number, Ordering::Relaxed);
            }
            drop(entry);
        }
    };
    let kill = || {
        killed.store(1, Ordering::Relaxed);
        let height = barrier.raise();
        let mut looks = (0..LOOKS).map(|_| barrier.is_past(0, height));
        looks.any(|is_past| is_past).then(|| wire.load(Ordering::Relaxed))
    };
    let (acknowledged, ()) = race(kill, send);
    let last = wire.load(Ordering::Relaxed);
    assert!(acknowledged.is_none_or(|seen| seen == last), "{last} after the kill was acknowledged at {acknowledged:?}");
}

#[test]
fn nothing_is_written_after_an_acknowledged_kill() {
    kill_a_sender_of(1);
}

#[test]
fn nothing_is_written_after_an_acknowledged_kill_between_writes() {
    kill_a_sender_of(3);
}

/// A passer that was closed acts no more, once it was seen outside.
#[test]
fn a_closed_passer_stays_outside() {
    let (barrier, mut passers) = barrier(1);
    let wire = AtomicU64::new(0);
    assert!(barrier.is_past(0, 0));
    let send = || {
        if let Some(_entry) = passers[0].enter() {
            wire.store(1, Ordering::Relaxed);
        }
    };
    let close = || {
        barrier.close(0);
        let mut looks = (0..LOOKS).map(|_| barrier.is_past(0, u64::MAX - INSIDE));
        looks.any(|is_past| is_past).then(|| wire.load(Ordering::Relaxed))
    };
    let (acknowledged, ()) = race(close, send);
    let last = wire.load(Ordering::Relaxed);
    assert!(acknowledged.is_none_or(|seen| seen == last), "{last} after {acknowledged:?}");
}
