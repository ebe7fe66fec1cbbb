//! OS privileges of a run: priority, locked memory, huge pages.

use std::fs;
use std::thread;

use crate::loops::ablation::Step;

/// The `SCHED_FIFO` level that is asked for: above ordinary work, below the kernel's own threads.
const LEVEL: u8 = 50;

/// A request to the OS and its result.
#[derive(Debug)]
pub(super) struct Granted {
    /// The level, where it is granted.
    pub(super) fifo: Option<u8>,
    pub(super) priority: String,
    pub(super) may_lock: bool,
    pub(super) locked_memory: String,
}

impl Granted {
    /// Asks: for a moment for the priority, for good for the memory.
    pub(super) fn ask() -> Self {
        let asked = thread::spawn(|| tt_os::priority::request_fifo(LEVEL).map(drop)).join();
        let (fifo, priority) = match asked {
            Ok(Ok(())) => (Some(LEVEL), format!("SCHED_FIFO {LEVEL} in runs below 0.1 s")),
            Ok(Err(refusal)) => (None, format!("ordinary priority ({refusal})")),
            Err(_) => (None, "ordinary priority".to_owned()),
        };
        let locked = tt_os::memory::lock_all();
        let locked_memory = match locked {
            Ok(()) => {
                let locked = tt_os::readings::memory_kib().0.unwrap_or(0);
                format!("locked ({} MiB)", locked / 1024)
            }
            Err(refusal) => format!("not locked ({refusal})"),
        };
        Self { fifo, priority, may_lock: locked.is_ok(), locked_memory }
    }

    /// Why what `step` turns on is not in force; `None` where it is.
    pub(super) fn refusal_of(&self, step: Step) -> Option<&str> {
        match step {
            Step::LockedMemory => (!self.may_lock).then_some(self.locked_memory.as_str()),
            Step::Priority => self.fifo.is_none().then_some(self.priority.as_str()),
            Step::NaiveClock
            | Step::Rdtsc
            | Step::Rdtscp
            | Step::Affinity
            | Step::Alignment
            | Step::RelaxedAtomics
            | Step::BranchFree
            | Step::FixedPoint
            | Step::SequenceInSlot => None,
        }
    }
}

/// How much of the process lies on huge pages, and when the kernel makes some.
pub(super) fn huge_pages() -> String {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let kib: Option<u64> = rollup
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = setting.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("unknown");
    let size = kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib / 1024));
    format!("{size} (transparent ones: {chosen})")
}
