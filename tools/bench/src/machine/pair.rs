//! Two threads, pinned to two cores or placed by the scheduler.

use nix::errno::Errno;
use std::sync::Barrier;
use std::thread;

/// Where two threads run, and how urgently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// A CPU for each; `None` leaves both to the scheduler.
    pub cpus: Option<[usize; 2]>,
    /// `SCHED_FIFO` at this level once both are in place; `None` leaves the ordinary policy.
    pub fifo: Option<u8>,
}

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
    on_two_threads(Threads { cpus: Some(cpus), fifo: None }, first, second)
}

/// Runs `first` and `second` at once. Neither begins before both are where they belong, and only then do they ask for
/// their priority: of two such threads on one CPU the first would keep the second from ever coming.
///
/// # Errors
/// As [`on_two_cores`], and what asking for the priority says.
///
/// # Panics
/// If `first` or `second` does.
pub fn on_two_threads<A: Send, B: Send>(
    threads: Threads,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> Result<(A, B), Errno> {
    let (mut first, mut second) = (Job::of(first), Job::of(second));
    on_two(threads, &mut || first.run(), &mut || second.run())?;
    // Both have run, or the call above would have panicked.
    first.result.zip(second.result).ok_or(Errno::ECANCELED)
}

/// A function to run once, and its result.
struct Job<F, R> {
    function: Option<F>,
    result: Option<R>,
}

impl<R, F: FnOnce() -> R> Job<F, R> {
    const fn of(function: F) -> Self {
        Self { function: Some(function), result: None }
    }

    fn run(&mut self) {
        self.result = self.function.take().map(|function| function());
    }
}

/// [`on_two_threads`] without types, so that the threads exist once in the program and not for each pair of functions.
fn on_two(threads: Threads, first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) -> Result<(), Errno> {
    if threads.cpus.is_some_and(|[first, second]| first == second) {
        return Err(Errno::EINVAL);
    }
    let in_place = Barrier::new(2);
    thread::scope(|scope| {
        let first = scope.spawn(|| placed(threads, 0, &in_place, first));
        let second = scope.spawn(|| placed(threads, 1, &in_place, second));
        let first = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let second = second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        first.and(second)
    })
}

fn placed(threads: Threads, which: usize, in_place: &Barrier, run: &mut dyn FnMut()) -> Result<(), Errno> {
    let cpu = threads.cpus.map(|cpus| cpus[which]);
    let mut placed = cpu.map_or(Ok(()), tt_os::cpu::pin);
    in_place.wait();
    let fifo = threads.fifo.map(tt_os::priority::request_fifo).transpose();
    run();
    let fifo = fifo.map(drop);
    if let Some(cpu) = cpu
        && tt_os::cpu::current()? != cpu
    {
        placed = placed.and(Err(Errno::EAGAIN));
    }
    placed.and(fifo)
}

/// Runs `run` on `cpu` once all who wait at `in_place` are where they belong.
pub(crate) fn pinned<R>(cpu: usize, in_place: &Barrier, run: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let mut pinned = tt_os::cpu::pin(cpu);
    in_place.wait();
    let result = run();
    if tt_os::cpu::current()? != cpu {
        pinned = pinned.and(Err(Errno::EAGAIN));
    }
    pinned.and(result)
}

#[cfg(test)]
mod tests {
    use super::{Threads, on_two_threads};

    #[test]
    fn threads_that_are_left_alone_may_run_anywhere() {
        let cpus = tt_os::cpu::available().unwrap();
        let allowed = || tt_os::cpu::available().unwrap();
        let (first, second) = on_two_threads(Threads { cpus: None, fifo: None }, allowed, allowed).unwrap();
        assert_eq!((first, second), (cpus.clone(), cpus));
    }
}
