//! No passer acts on the old state once it was seen past the barrier: by loom's schedules, and by real threads.

#[cfg(not(loom))]
mod weak_memory;

use super::*;

/// A sender that writes to a wire unless it is killed, and the thread that kills it. After the kill was acknowledged,
/// nothing reaches the wire.
#[cfg(loom)]
fn kill_a_sender_of(writes: u64) {
    loom::model(move || {
        let (barrier, mut passers) = barrier(1);
        let [killed, wire] = [0; 2].map(|value| Arc::new(AtomicU64::new(value)));
        let mut passer = passers.pop().expect("one");
        let sending = loom::thread::spawn({
            let (killed, wire) = (Arc::clone(&killed), Arc::clone(&wire));
            move || {
                for number in 1..=writes {
                    let entry = passer.enter().expect("it is not closed");
                    if killed.load(Ordering::Relaxed) == 0 {
                        wire.store(number, Ordering::Relaxed);
                    }
                    drop(entry);
                }
            }
        });
        killed.store(1, Ordering::Relaxed);
        let height = barrier.raise();
        let acknowledged = barrier.is_past(0, height).then(|| wire.load(Ordering::Relaxed));
        sending.join().expect("no panic");
        if let Some(seen) = acknowledged {
            assert_eq!(wire.load(Ordering::Relaxed), seen, "after the kill was acknowledged");
        }
    });
}

#[cfg(loom)]
#[test]
fn loom_nothing_is_written_after_an_acknowledged_kill() {
    kill_a_sender_of(1);
}

#[cfg(loom)]
#[test]
fn loom_nothing_is_written_after_an_acknowledged_kill_between_writes() {
    kill_a_sender_of(2);
}

/// A passer that was closed acts no more, once it was seen outside.
#[cfg(loom)]
#[test]
fn loom_a_closed_passer_stays_outside() {
    loom::model(|| {
        let (barrier, mut passers) = barrier(1);
        let wire = Arc::new(AtomicU64::new(0));
        let mut passer = passers.pop().expect("one");
        let sending = loom::thread::spawn({
            let wire = Arc::clone(&wire);
            move || {
                if let Some(_entry) = passer.enter() {
                    wire.store(1, Ordering::Relaxed);
                }
            }
        });
        barrier.close(0);
        let acknowledged = barrier.is_past(0, u64::MAX - INSIDE).then(|| wire.load(Ordering::Relaxed));
        sending.join().expect("no panic");
        if let Some(seen) = acknowledged {
            assert_eq!(wire.load(Ordering::Relaxed), seen);
        }
    });
}

/// Real threads: three senders write for as long as they live; after each acknowledged kill the counts stand still.
#[cfg(not(loom))]
#[test]
fn nothing_is_written_after_an_acknowledged_kill() {
    let (barrier, passers) = barrier(3);
    let [killed, ended] = [0; 2].map(|value| Arc::new(AtomicU64::new(value)));
    let wires: Vec<_> = passers.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    let kills = if cfg!(miri) { 5 } else { 300 };
    std::thread::scope(|scope| {
        for (mut passer, wire) in passers.into_iter().zip(&wires) {
            let (killed, ended) = (&killed, &ended);
            scope.spawn(move || {
                while ended.load(Ordering::Relaxed) == 0 {
                    let entry = passer.enter().expect("it is not closed");
                    if killed.load(Ordering::Relaxed) == 0 {
                        wire.store(wire.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                    drop(entry);
                    std::thread::yield_now();
                }
            });
        }
        let read = || wires.iter().map(|wire| wire.load(Ordering::Relaxed)).collect::<Vec<_>>();
        for _ in 0..kills {
            let before = read();
            while read().iter().zip(&before).any(|(now, before)| now == before) {
                std::thread::yield_now();
            }
            killed.store(1, Ordering::Relaxed);
            let height = barrier.raise();
            while !(0..3).all(|passer| barrier.is_past(passer, height)) {
                std::thread::yield_now();
            }
            let seen = read();
            for _ in 0..20 {
                std::thread::yield_now();
                assert_eq!(read(), seen);
            }
            killed.store(0, Ordering::Relaxed);
        }
        ended.store(1, Ordering::Relaxed);
    });
}
