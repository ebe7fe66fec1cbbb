//! CPU affinity of a thread.

use nix::{
    errno::Errno,
    sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};

/// Which thread a call is about: the calling one.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// The numbers of the CPUs that the calling thread may run on, rising.
///
/// # Errors
/// The error of the system call.
pub fn available() -> Result<Vec<usize>, Errno> {
    let set = sched_getaffinity(THIS_THREAD)?;
    Ok((0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect())
}

/// Binds the calling thread to `cpu`, and returns once it runs there.
///
/// # Errors
/// `EINVAL` if there is no such CPU or the thread may not use it; `EAGAIN` if the thread was found elsewhere after.
pub fn pin(cpu: usize) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(THIS_THREAD, &set)?;
    if current()? == cpu { Ok(()) } else { Err(Errno::EAGAIN) }
}

/// The CPU that the calling thread runs on. Read it again after a measurement: a change voids what was measured.
///
/// # Errors
/// The error of the system call.
pub fn current() -> Result<usize, Errno> {
    sched_getcpu()
}

#[cfg(test)]
mod tests {
    use super::{available, current, pin};
    use nix::errno::Errno;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        for cpu in available().unwrap() {
            std::thread::spawn(move || {
                pin(cpu).unwrap();
                assert_eq!(current().unwrap(), cpu);
                assert_eq!(available().unwrap(), [cpu]);
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        let beyond = nix::sched::CpuSet::count();
        assert_eq!(pin(beyond), Err(Errno::EINVAL));
        assert_eq!(pin(beyond - 1), Err(Errno::EINVAL));
    }
}
