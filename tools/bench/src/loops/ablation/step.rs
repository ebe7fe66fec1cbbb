//! The eleven steps and their switches.

/// A step of the ablation: NullRing's ten in its order, then what the shipped ring has beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The standard library's clock: the starting point.
    NaiveClock,
    /// The counter, read in no order.
    Rdtsc,
    /// The counter, read after the work before it.
    Rdtscp,
    /// A core for each thread.
    Affinity,
    /// Slots and indices on cache lines of their own.
    Alignment,
    /// Locked memory, every page of the ring touched before the first event.
    LockedMemory,
    /// Real-time priority.
    Priority,
    /// Acquire and release in place of sequential consistency.
    RelaxedAtomics,
    /// An evaluator without branches that depend on the order.
    BranchFree,
    /// Integers in place of floats.
    FixedPoint,
    /// A sequence in the slot in place of two indices: one cache line an event in place of three.
    SequenceInSlot,
}

impl Step {
    /// All of them in order.
    pub const ALL: [Self; 11] = [
        Self::NaiveClock,
        Self::Rdtsc,
        Self::Rdtscp,
        Self::Affinity,
        Self::Alignment,
        Self::LockedMemory,
        Self::Priority,
        Self::RelaxedAtomics,
        Self::BranchFree,
        Self::FixedPoint,
        Self::SequenceInSlot,
    ];

    /// 1 to 11.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NaiveClock => "naive_clock",
            Self::Rdtsc => "rdtsc",
            Self::Rdtscp => "rdtscp",
            Self::Affinity => "affinity",
            Self::Alignment => "alignment",
            Self::LockedMemory => "locked_memory",
            Self::Priority => "priority",
            Self::RelaxedAtomics => "relaxed_atomics",
            Self::BranchFree => "branch_free",
            Self::FixedPoint => "fixed_point",
            Self::SequenceInSlot => "sequence_in_slot",
        }
    }

    /// The effect of the switch, and the code without it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::NaiveClock => "stamps by std::time::Instant",
            Self::Rdtsc => {
                "stamps by the counter without any order, before: by Instant; the last stamp may be taken before the \
                 work is done, which looks quicker than it is"
            }
            Self::Rdtscp => "stamps that wait for the work before them, before: without order",
            Self::Affinity => "each thread pinned to a core, before: left to the scheduler",
            Self::Alignment => {
                "each slot on a separate cache line and the indices on two lines, before: slots across two lines \
                 and both indices on one"
            }
            Self::LockedMemory => {
                "memory locked and every page of the ring touched first, before: pages come when events do"
            }
            Self::Priority => "both threads under SCHED_FIFO, before: the ordinary policy",
            Self::RelaxedAtomics => "acquire and release, before: every store sequentially consistent",
            Self::BranchFree => "every check always made, before: out at the first reason",
            Self::FixedPoint => "prices and quantities as 64-bit integers, before: as floats",
            Self::SequenceInSlot => {
                "the sequence of an event in its slot, before: a head and a tail, and each side looks at the other's \
                 for every event, as in NullRing"
            }
        }
    }

    /// The median of NullRing's chart after this step; its text has two steps more than its chart.
    #[must_use]
    pub const fn published_p50_ns(self) -> Option<f64> {
        match self {
            Self::NaiveClock | Self::Rdtsc | Self::Rdtscp => Some(800.0),
            Self::Affinity => Some(180.0),
            Self::Alignment | Self::LockedMemory => Some(155.0),
            Self::Priority => Some(150.0),
            Self::BranchFree => Some(142.0),
            Self::RelaxedAtomics | Self::FixedPoint | Self::SequenceInSlot => None,
        }
    }
}

/// Which steps a build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches(u16);

impl Switches {
    /// Every step: the shipped ring and gate.
    pub const FINAL: Self = Self((1 << 11) - 1);
    /// Every step, and the ablation's own ring in place of the shipped one: the control.
    pub const CONTROL: Self = Self(Self::FINAL.0 | 1 << 11);

    /// `step` and all before it.
    #[must_use]
    pub const fn up_to(step: Step) -> Self {
        Self((1 << step.number()) - 1)
    }

    /// Every step but `step`.
    #[must_use]
    pub const fn all_but(step: Step) -> Self {
        Self(Self::FINAL.0 & !(1 << step as u8))
    }

    /// Whether `step` is on.
    #[must_use]
    pub const fn has(self, step: Step) -> bool {
        self.0 >> step as u8 & 1 == 1
    }

    pub(super) const fn is_control(self) -> bool {
        self.0 == Self::CONTROL.0
    }

    /// Which code this build consists of.
    pub(super) const fn parts(self) -> (Stamping, Ring, Gate) {
        let stamping = match (self.has(Step::Rdtsc), self.has(Step::Rdtscp)) {
            (false, _) => Stamping::Instant,
            (true, false) => Stamping::Unordered,
            (true, true) => Stamping::Ordered,
        };
        let (is_aligned, is_relaxed) = (self.has(Step::Alignment), self.has(Step::RelaxedAtomics));
        let ring = match (self.has(Step::SequenceInSlot), is_aligned, is_relaxed) {
            (true, true, true) if self.has(Step::LockedMemory) && !self.is_control() => Ring::Shipped,
            (true, true, true) => Ring::Aligned,
            (true, true, false) => Ring::AlignedSeqCst,
            (true, false, _) => Ring::Packed,
            (false, true, true) => Ring::IndexPair,
            (false, true, false) => Ring::IndexPairSeqCst,
            (false, false, _) => Ring::Naive,
        };
        let gate = match (self.has(Step::BranchFree), self.has(Step::FixedPoint)) {
            (true, true) => Gate::Shipped,
            (true, false) => Gate::Floats,
            (false, true) => Gate::Early,
            (false, false) => Gate::EarlyFloats,
        };
        (stamping, ring, gate)
    }
}

/// Where stamps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamping {
    /// The standard library's clock.
    Instant,
    /// The counter, read in no order.
    Unordered,
    /// The counter, read after the work before it.
    Ordered,
}

/// The ring between the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// `tt_sync::spsc`.
    Shipped,
    /// The ablation's, with slots on cache lines of their own.
    Aligned,
    /// The same, sequentially consistent.
    AlignedSeqCst,
    /// The ablation's, with slots across two lines.
    Packed,
    /// Head and tail on lines apart, slots on lines of their own.
    IndexPair,
    /// The same, sequentially consistent.
    IndexPairSeqCst,
    /// NullRing's first: head and tail on one line, slots across two lines, sequentially consistent.
    Naive,
}

/// The gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// `tt_risk::Evaluator`.
    Shipped,
    /// Every check, in floats.
    Floats,
    /// Out at the first reason.
    Early,
    /// Out at the first reason, in floats.
    EarlyFloats,
}

#[cfg(test)]
mod tests {
    use super::{Ring, Step, Switches};

    #[test]
    fn switches_add_up_to_the_final_build() {
        for (index, step) in Step::ALL.into_iter().enumerate() {
            let up_to = Switches::up_to(step);
            let on: Vec<_> = Step::ALL.into_iter().filter(|step| up_to.has(*step)).collect();
            assert_eq!(on, Step::ALL[..=index]);
            assert!(!Switches::all_but(step).has(step));
        }
        assert_eq!(Switches::up_to(Step::SequenceInSlot), Switches::FINAL);
        assert_eq!(Switches::all_but(Step::SequenceInSlot), Switches::up_to(Step::FixedPoint));
        assert!(Switches::CONTROL.is_control() && !Switches::FINAL.is_control());
    }

    /// The first build is the published one's first: two indices on one line, no sequence, ordering or alignment.
    #[test]
    fn the_first_builds_are_the_naive_ring_and_none_before_the_last_has_the_shipped_one() {
        let ring_of = |step| Switches::up_to(step).parts().1;
        for step in [Step::NaiveClock, Step::Rdtsc, Step::Rdtscp, Step::Affinity] {
            assert_eq!(ring_of(step), Ring::Naive, "{step:?}");
        }
        assert_eq!(ring_of(Step::Alignment), Ring::IndexPairSeqCst);
        assert_eq!(ring_of(Step::RelaxedAtomics), Ring::IndexPair);
        assert_eq!(ring_of(Step::FixedPoint), Ring::IndexPair);
        assert_eq!(Switches::FINAL.parts().1, Ring::Shipped);
    }
}
