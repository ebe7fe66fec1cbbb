//! Distance of two cores, derived from the time of a ping-pong.

/// The distance of two cores, from the time a cache line takes between them (half a round trip).
///
/// A hypervisor moves virtual CPUs between physical cores without a report; the bounds lie in the wide gaps between what
/// such cores measure: 23 to 41 ns, 46 to 59 ns, and 160 ns or more on the machines seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Two hardware threads of one core.
    Siblings,
    /// Two cores of one last-level cache.
    SameCache,
    /// Two cores with a last-level cache each.
    AcrossCaches,
    /// The two probes around the run disagree: the cores were moved meanwhile.
    Moved,
}

impl Placement {
    /// Below this, in nanoseconds, the cores are siblings.
    pub const SIBLINGS_NS: f64 = 44.0;
    /// Below this, in nanoseconds, they share a last-level cache.
    pub const SAME_CACHE_NS: f64 = 110.0;

    /// The placement that two probes, in nanoseconds, agree on.
    #[must_use]
    pub fn of(before_ns: f64, after_ns: f64) -> Self {
        let (before, after) = (Self::of_one(before_ns), Self::of_one(after_ns));
        if before == after { before } else { Self::Moved }
    }

    fn of_one(ns: f64) -> Self {
        if ns < Self::SIBLINGS_NS {
            Self::Siblings
        } else if ns < Self::SAME_CACHE_NS {
            Self::SameCache
        } else {
            Self::AcrossCaches
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Siblings => "siblings",
            Self::SameCache => "same_cache",
            Self::AcrossCaches => "across_caches",
            Self::Moved => "moved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Placement;

    #[test]
    fn probes_that_disagree_void_the_placement() {
        assert_eq!(Placement::of(31.0, 30.2), Placement::Siblings);
        assert_eq!(Placement::of(46.0, 49.9), Placement::SameCache);
        assert_eq!(Placement::of(165.0, 203.0), Placement::AcrossCaches);
        assert_eq!(Placement::of(31.0, 47.0), Placement::Moved);
    }
}
