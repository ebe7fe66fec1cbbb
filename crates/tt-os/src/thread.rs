//! The kernel's counters of the calling thread, cheap enough to read after every stall.

use core::marker::PhantomData;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The kernel does not account a thread that ran this long and has a run time of zero, nanoseconds.
const UNACCOUNTED_NS: u64 = 50_000_000;

/// Counts of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Nanoseconds on a CPU, by `CLOCK_THREAD_CPUTIME_ID`. Time that the hypervisor gave to others is not in it where the
    /// kernel accounts for that, and time in interrupts is not where it accounts for that.
    pub cpu_ns: u64,
    /// Nanoseconds in which it was runnable while another thread had the CPU; `None` if the kernel does not report it.
    pub waited_ns: Option<u64>,
    /// Page faults without and with a read from disk.
    pub faults: u64,
    /// Times that it gave its CPU up by itself.
    pub switches_voluntary: u64,
    /// Times that the kernel took its CPU from it.
    pub switches_involuntary: u64,
}

impl ThreadCounts {
    /// Returns the difference from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let waited = self.waited_ns.zip(earlier.waited_ns);
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            waited_ns: waited.map(|(now, then)| now.saturating_sub(then)),
            faults: self.faults.saturating_sub(earlier.faults),
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
        }
    }
}

/// Reads the [`ThreadCounts`] of the thread that made it, and stays on it.
#[derive(Debug)]
pub struct ThreadCounter {
    schedstat: Option<File>,
    _not_send: PhantomData<*const ()>,
}

impl ThreadCounter {
    /// For the calling thread.
    #[must_use]
    pub fn open() -> Self {
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok(), _not_send: PhantomData }
    }

    /// The counts now: three system calls, half a microsecond.
    #[must_use]
    pub fn read(&self) -> ThreadCounts {
        let cpu_ns = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
            .map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs());
        let counts = ThreadCounts { cpu_ns, waited_ns: self.waited_ns(cpu_ns), ..Default::default() };
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return counts };
        let unsigned = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        ThreadCounts {
            faults: unsigned(usage.minor_page_faults()) + unsigned(usage.major_page_faults()),
            switches_voluntary: unsigned(usage.voluntary_context_switches()),
            switches_involuntary: unsigned(usage.involuntary_context_switches()),
            ..counts
        }
    }

    /// The second of three numbers. The first is the time that the thread ran, up to the last interrupt of the scheduler; a
    /// kernel without SCHED_INFO shows zeros however long that was.
    fn waited_ns(&self, cpu_ns: u64) -> Option<u64> {
        let mut text = [0; 96];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut numbers = core::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
        let (ran_ns, waited_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        (ran_ns > 0 || cpu_ns < UNACCOUNTED_NS).then_some(waited_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadCounter;

    #[test]
    fn faults_and_switches_are_those_of_the_thread() {
        // Locked memory comes without faults.
        let _alone = crate::memory::LOCKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let counter = ThreadCounter::open();
        let before = counter.read();
        std::thread::spawn(|| core::hint::black_box(vec![1_u8; 1 << 22]).len()).join().unwrap();
        let elsewhere = counter.read().since(&before);
        let pages = core::hint::black_box(vec![1_u8; 1 << 22]);
        let here = counter.read().since(&before);
        assert!(elsewhere.faults < 512 && here.faults >= 512, "{elsewhere:?} {here:?} {}", pages.len());
        // Whether joining waited, or the other thread came first and ended.
        assert!(elsewhere.switches_voluntary + elsewhere.switches_involuntary > 0, "{elsewhere:?}");
        assert!(here.cpu_ns > elsewhere.cpu_ns);
    }
}
