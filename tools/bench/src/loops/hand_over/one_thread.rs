//! The loop without the way between two cores: one thread sends an event to itself.

use super::send::{PAUSES, RESTS};
use super::{Receives, Sends, Stamps};
use nix::errno::Errno;
use std::hint::{black_box, spin_loop};
use std::thread;
use tt_model::{OrderIntent, OrderTerms};

/// Result of a run on one thread.
#[derive(Clone, Debug, Default)]
pub struct OneThreadRun {
    /// One for each recorded event in order, in the stamps' cycles.
    pub cycles: Vec<u64>,
    /// The sum of what the work returned for the recorded events, wrapping.
    pub checksum: u64,
    /// Events that came out of order or not whole; anything but 0 voids the run.
    pub faults: u64,
}

/// Sends `warmup` and then `events` of `orders` through `ends`, both on one thread that is pinned to `cpu`: the same
/// stamps, work and rests as in [`hand_over`](super::hand_over) with one event in flight, and no second core.
///
/// # Errors
/// What pinning says, and `EAGAIN` if the thread was found elsewhere afterwards.
pub fn on_one_thread<C: Stamps>(
    cpu: usize,
    (warmup, events): (usize, usize),
    orders: &[OrderTerms],
    stamps: C,
    (mut sender, mut receiver): (impl Sends, impl Receives),
    mut work: impl FnMut(&OrderIntent) -> u64 + Send,
) -> Result<OneThreadRun, Errno> {
    let run = move || {
        tt_os::cpu::pin(cpu)?;
        let mut run = OneThreadRun { cycles: Vec::with_capacity(events), ..OneThreadRun::default() };
        for (index, expected) in orders.iter().cycle().take(warmup + events).enumerate() {
            let mut terms = black_box(*expected);
            terms.ts_ns = stamps.before();
            let _ = sender.send(terms);
            let Some((number, terms)) = receiver.receive() else {
                run.faults += 1;
                continue;
            };
            let intent = terms.numbered(number);
            let result = black_box(work(&intent));
            let end = stamps.after();
            let whole = OrderTerms { ts_ns: expected.ts_ns, ..terms } == *expected && number == index as u64;
            run.faults += u64::from(!whole);
            if index >= warmup {
                run.cycles.push(end.saturating_sub(intent.ts_ns));
                run.checksum = run.checksum.wrapping_add(result);
            }
            receiver.settle();
            sender.settle();
            (0..RESTS * PAUSES).for_each(|_| spin_loop());
        }
        if tt_os::cpu::current()? == cpu { Ok(run) } else { Err(Errno::EAGAIN) }
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}
