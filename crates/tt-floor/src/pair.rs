//! Two threads on two cores.

use nix::errno::Errno;
use std::sync::Barrier;
use std::thread;

/// Runs `first` and `second` at once, each pinned to its own CPU. Neither begins before both are in place.
///
/// # Errors
/// `EINVAL` if the CPUs are the same one, what pinning says, and `EAGAIN` if a thread was found elsewhere afterwards,
/// which voids what it measured.
///
/// # Panics
/// If `first` or `second` does.
pub fn on_two_cores<A: Send, B: Send>(
    cpus: [usize; 2],
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> Result<(A, B), Errno> {
    if cpus[0] == cpus[1] {
        return Err(Errno::EINVAL);
    }
    let in_place = Barrier::new(2);
    thread::scope(|scope| {
        let first = scope.spawn(|| pinned(cpus[0], &in_place, first));
        let second = scope.spawn(|| pinned(cpus[1], &in_place, second));
        let first = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let second = second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((first?, second?))
    })
}

fn pinned<R>(cpu: usize, in_place: &Barrier, run: impl FnOnce() -> R) -> Result<R, Errno> {
    let mut pinned = tt_os::cpu::pin(cpu);
    in_place.wait();
    let result = run();
    if tt_os::cpu::current()? != cpu {
        pinned = pinned.and(Err(Errno::EAGAIN));
    }
    pinned.map(|()| result)
}
