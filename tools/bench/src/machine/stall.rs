//! A stall: a thread that ought to have run did not, and what kept it.
//!
//! Causes come from the kernel's counters around each gap, nothing else: what the thread was charged for, what it
//! waited, its faults and switches, and the interrupts of its CPU.

mod speed;
mod watch;

pub use watch::{Jitter, StallWatch, WatchPlan};

/// The cause of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallCause {
    /// The CPU served an interrupt.
    Interrupt,
    /// Another thread had the CPU.
    Preemption,
    /// The hypervisor gave the CPU to others, and said so.
    Steal,
    /// The thread touched a page that was not there.
    PageFault,
    /// The core runs at another speed since.
    Frequency,
    /// No counter of the kernel changed: firmware, or a hypervisor that does not report.
    Unknown,
}

impl StallCause {
    /// All of them, in the order of [`index`](Self::index).
    pub const ALL: [Self; 6] =
        [Self::Interrupt, Self::Preemption, Self::Steal, Self::PageFault, Self::Frequency, Self::Unknown];

    /// Its place in [`ALL`](Self::ALL).
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Preemption => "preemption",
            Self::Steal => "steal",
            Self::PageFault => "page_fault",
            Self::Frequency => "frequency",
            Self::Unknown => "unknown",
        }
    }
}

/// One stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When it began, nanoseconds after the watch did.
    pub at_ns: u64,
    /// How long it lasted, nanoseconds.
    pub length_ns: u64,
    /// The CPU.
    pub cpu: usize,
    /// The cause.
    pub cause: StallCause,
}

/// Sources of evidence that the kernel of this machine provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The CPU's interrupts can be read.
    pub interrupts: bool,
    /// Time stolen by a hypervisor is taken off the thread's CPU time.
    pub steal: bool,
    /// Time in interrupts is taken off it as well.
    pub interrupt_time: bool,
    /// A change of the core's speed means a change of its frequency: on a guest it may be another core.
    pub frequency: bool,
}

/// The kernel's counts during one stall.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Nanoseconds of the stall.
    pub length_ns: u64,
    /// Nanoseconds in which the thread was not charged for a CPU.
    pub off_cpu_ns: u64,
    /// Of these, nanoseconds in which another thread had it; `None` where the kernel does not report it.
    pub waited_ns: Option<u64>,
    /// Times that the thread was taken from the CPU, or left it.
    pub switches: u64,
    /// Page faults.
    pub faults: u64,
    /// Interrupts of the CPU; `None` if not read yet.
    pub interrupts: Option<u64>,
    /// The core's speed after it over the speed before.
    pub speed_ratio: f64,
}

/// A core whose speed changed by more than this had its frequency changed.
const SPEED_CHANGE_MIN: f64 = 0.08;

impl Evidence {
    /// The cause; `None` if it hangs on the interrupts, which were not read yet.
    #[must_use]
    pub fn cause(&self, witness: Witness) -> Option<StallCause> {
        let half = self.length_ns / 2;
        let waited_ns = self.waited_ns.unwrap_or(if self.switches > 0 { self.off_cpu_ns } else { 0 });
        let stolen_ns = self.off_cpu_ns.saturating_sub(waited_ns);
        let is_taken = witness.steal && self.switches == 0 && stolen_ns > half;
        if self.switches > 0 && (waited_ns > half || self.off_cpu_ns > half) {
            return Some(StallCause::Preemption);
        }
        // Where time in interrupts is taken off, too, what is missing is theirs if there were any.
        if is_taken && !witness.interrupt_time {
            return Some(StallCause::Steal);
        }
        if self.faults > 0 {
            return Some(StallCause::PageFault);
        }
        let interrupts = if witness.interrupts { self.interrupts? } else { 0 };
        Some(if interrupts > 0 {
            StallCause::Interrupt
        } else if is_taken {
            StallCause::Steal
        } else if self.switches > 0 {
            StallCause::Preemption
        } else if witness.frequency && (self.speed_ratio - 1.0).abs() > SPEED_CHANGE_MIN {
            StallCause::Frequency
        } else {
            StallCause::Unknown
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Evidence, StallCause, Witness};

    const ALL: Witness = Witness { interrupts: true, steal: true, interrupt_time: false, frequency: true };
    const QUIET: Evidence = Evidence {
        length_ns: 10_000,
        off_cpu_ns: 100,
        waited_ns: Some(0),
        switches: 0,
        faults: 0,
        interrupts: Some(0),
        speed_ratio: 1.0,
    };

    #[test]
    fn each_cause_has_its_evidence() {
        let preempted =
            Evidence { switches: 2, off_cpu_ns: 9_000, waited_ns: Some(9_000), interrupts: Some(3), ..QUIET };
        let stolen = Evidence { off_cpu_ns: 9_500, interrupts: Some(1), ..QUIET };
        for (evidence, cause) in [
            (QUIET, StallCause::Unknown),
            (Evidence { interrupts: Some(1), ..QUIET }, StallCause::Interrupt),
            (preempted, StallCause::Preemption),
            (Evidence { waited_ns: None, ..preempted }, StallCause::Preemption),
            (stolen, StallCause::Steal),
            (Evidence { faults: 1, ..QUIET }, StallCause::PageFault),
            (Evidence { speed_ratio: 0.8, ..QUIET }, StallCause::Frequency),
        ] {
            assert_eq!(evidence.cause(ALL), Some(cause), "{evidence:?}");
        }
    }

    #[test]
    fn what_no_witness_saw_is_not_named() {
        let stolen = Evidence { off_cpu_ns: 9_500, ..QUIET };
        assert_eq!(stolen.cause(Witness { steal: false, ..ALL }), Some(StallCause::Unknown));
        let slower = Evidence { speed_ratio: 0.8, ..QUIET };
        assert_eq!(slower.cause(Witness { frequency: false, ..ALL }), Some(StallCause::Unknown));
        let unread = Evidence { interrupts: None, ..QUIET };
        assert_eq!(unread.cause(ALL), None);
        assert_eq!(unread.cause(Witness { interrupts: false, ..ALL }), Some(StallCause::Unknown));
    }

    /// Kernels with IRQ_TIME_ACCOUNTING take interrupts off the thread's time, as they do with steal.
    #[test]
    fn missing_time_is_the_interrupts_where_the_kernel_accounts_for_them() {
        let witness = Witness { interrupt_time: true, ..ALL };
        let missing = Evidence { off_cpu_ns: 9_500, interrupts: Some(1), ..QUIET };
        assert_eq!(missing.cause(witness), Some(StallCause::Interrupt));
        assert_eq!(Evidence { interrupts: Some(0), ..missing }.cause(witness), Some(StallCause::Steal));
    }
}
