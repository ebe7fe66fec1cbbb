//! Priority of a thread.

use nix::errno::Errno;

/// The calling thread under `SCHED_FIFO`, until this is dropped.
///
/// Linux gives real-time threads 0.95 s of each second and then stops them for the rest of it: hold this for less
/// than 0.9 s at a time. Two such threads on one CPU that wait for each other never end: pin them first, and
/// start both before either requests this.
#[derive(Debug)]
pub struct Fifo {
    _not_send: core::marker::PhantomData<*const ()>,
}

/// Puts the calling thread under `SCHED_FIFO` at `level`, 1 (lowest) to 99.
///
/// # Errors
/// `EPERM` without the right (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`), `EINVAL` for a level out of range.
pub fn request_fifo(level: u8) -> Result<Fifo, Errno> {
    schedule(libc::SCHED_FIFO, level)?;
    Ok(Fifo { _not_send: core::marker::PhantomData })
}

impl Drop for Fifo {
    fn drop(&mut self) {
        // Going back to the ordinary policy needs no right; a failure would leave what was asked for.
        let _ = schedule(libc::SCHED_OTHER, 0);
    }
}

/// Gives the calling thread less CPU time than others while they have work: `by` is 1 (a little less) to 19 (least).
///
/// # Errors
/// None in practice: every thread may do this.
pub fn lower(by: u8) -> Result<(), Errno> {
    // SAFETY: the call takes numbers and touches no memory; 0 is this thread, as Linux keeps niceness for each thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, libc::c_int::from(by)) };
    Errno::result(result).map(drop)
}

fn schedule(policy: libc::c_int, level: u8) -> Result<(), Errno> {
    // The kernel's `sched_param`. musl has no function for the call: its own fails always.
    let priority = libc::c_int::from(level);
    // SAFETY: the call reads one number, which outlives it; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{lower, request_fifo};
    use nix::errno::Errno;

    fn policy() -> libc::c_int {
        // SAFETY: the call takes a number and touches no memory; 0 is this thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn fifo_lasts_as_long_as_its_guard() {
        match request_fifo(1) {
            Ok(fifo) => {
                assert_eq!(policy(), libc::SCHED_FIFO);
                drop(fifo);
            }
            Err(refusal) => assert_eq!(refusal, Errno::EPERM),
        }
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    #[test]
    fn a_thread_lowers_its_own_priority_and_no_other() {
        // SAFETY: the call takes numbers and touches no memory; 0 is this thread.
        let niceness = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let before = niceness();
        let lowered = std::thread::spawn(move || {
            lower(19).unwrap();
            niceness()
        });
        assert_eq!((lowered.join().unwrap(), niceness()), (19, before));
    }

    #[test]
    fn a_level_out_of_range_is_refused() {
        assert_eq!(request_fifo(100).unwrap_err(), Errno::EINVAL);
    }
}
