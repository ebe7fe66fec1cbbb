//! Builds of the timed loop: with and without each term, and with a known delay at each term.

use crate::ring::rounds::DELAYS_NS;

/// A part of the time from one core to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// A message's cache line from one core to the other.
    Line,
    /// One read of the clock.
    Clock,
    /// The evaluator.
    Evaluator,
    /// The ring's push in place of a plain store.
    Push,
    /// The ring's look for an event in place of a plain load.
    Look,
}

impl Term {
    pub(crate) const ALL: [Self; 5] = [Self::Line, Self::Clock, Self::Evaluator, Self::Push, Self::Look];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Clock => "clock",
            Self::Evaluator => "evaluator",
            Self::Push => "push",
            Self::Look => "look",
        }
    }

    /// Where its delay is.
    pub(crate) const fn place(self) -> &'static str {
        match self {
            Self::Line => "one line in place of the ring: between the stamp and the store into the line",
            Self::Clock => "between the closing stamp and one more",
            Self::Evaluator => "between the evaluator and the stamp",
            Self::Push => "between the stamp and the push",
            Self::Look => "between the event's look and the evaluator",
        }
    }

    /// Builds whose difference is the term once more, and builds whose difference is the term left out.
    pub(crate) fn interventions(self) -> [Intervention; 2] {
        let pair = |what, from, to| Intervention { what, from, to };
        match self {
            Self::Line => [
                pair("a second line goes with each message", Build::Ring, Build::TwoLines),
                pair("both ends on one thread", Build::OneThread, Build::Ring),
            ],
            Self::Clock => [
                pair("a third closing stamp", Build::TwoStamps, Build::ThreeStamps),
                pair("the second closing stamp left out", Build::Ring, Build::TwoStamps),
            ],
            Self::Evaluator => [
                pair("put after one line", Build::LineRead, Build::Line),
                pair("left out after the ring", Build::RingRead, Build::Ring),
            ],
            Self::Push => [
                pair("put before the store into one line", Build::Line, Build::LinePush),
                pair("one line with a look in place of the ring", Build::LineLook, Build::Ring),
            ],
            Self::Look => [
                pair("put after the load of one line", Build::Line, Build::LineLook),
                pair("one line with a push in place of the ring", Build::LinePush, Build::Ring),
            ],
        }
    }

    /// The build that the term's delays are added to.
    pub(crate) const fn base(self) -> Build {
        match self {
            Self::Line => Build::Line,
            Self::Clock => Build::TwoStamps,
            Self::Evaluator | Self::Push | Self::Look => Build::Ring,
        }
    }
}

/// A change whose effect is the difference of two builds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervention {
    pub(crate) what: &'static str,
    pub(crate) from: Build,
    pub(crate) to: Build,
}

/// A build of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The shipped ring and the evaluator: the whole.
    Ring,
    /// The same once more: the A/A control.
    Again,
    /// Without the evaluator.
    RingRead,
    /// One cache line in place of the ring, with the evaluator.
    Line,
    /// Without the evaluator.
    LineRead,
    /// One line, and a push into a ring of the sender's own before the store.
    LinePush,
    /// One line, and a look into a ring of the receiver's own after the load.
    LineLook,
    /// The ring, and a second line that the sender writes before and the receiver reads after.
    TwoLines,
    /// The ring with two closing stamps.
    TwoStamps,
    /// With three.
    ThreeStamps,
    /// The ring with both ends on the receiver's thread.
    OneThread,
    /// A term's base with one of [`DELAYS_NS`] at the term.
    Delayed(Term, usize),
}

impl Build {
    /// Every build of a round.
    pub(crate) fn all() -> Vec<Self> {
        let plain = [
            Self::Ring,
            Self::Again,
            Self::RingRead,
            Self::Line,
            Self::LineRead,
            Self::LinePush,
            Self::LineLook,
            Self::TwoLines,
            Self::TwoStamps,
            Self::ThreeStamps,
            Self::OneThread,
        ];
        let delayed =
            Term::ALL.into_iter().flat_map(|term| (0..DELAYS_NS.len()).map(move |at| Self::Delayed(term, at)));
        plain.into_iter().chain(delayed).collect()
    }

    /// The name in files.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Ring => "ring".to_owned(),
            Self::Again => "again".to_owned(),
            Self::RingRead => "ring_read".to_owned(),
            Self::Line => "line".to_owned(),
            Self::LineRead => "line_read".to_owned(),
            Self::LinePush => "line_push".to_owned(),
            Self::LineLook => "line_look".to_owned(),
            Self::TwoLines => "two_lines".to_owned(),
            Self::TwoStamps => "two_stamps".to_owned(),
            Self::ThreeStamps => "three_stamps".to_owned(),
            Self::OneThread => "one_thread".to_owned(),
            Self::Delayed(term, at) => format!("{}_{}", term.name(), DELAYS_NS[at]),
        }
    }

    /// The build without its delay.
    pub(crate) const fn without_delay(self) -> Self {
        if let Self::Delayed(term, _) = self { term.base() } else { self }
    }

    /// The delay's index at `term`.
    pub(crate) fn delay_at(self, term: Term) -> Option<usize> {
        if let Self::Delayed(of, at) = self { (of == term).then_some(at) } else { None }
    }

    pub(crate) const fn has_line(self) -> bool {
        matches!(self.without_delay(), Self::Line | Self::LineRead | Self::LinePush | Self::LineLook)
    }

    pub(crate) const fn is_judged(self) -> bool {
        !matches!(self, Self::RingRead | Self::LineRead)
    }

    /// Closing stamps beyond the first.
    pub(crate) const fn extra_stamps(self) -> u8 {
        let build = self.without_delay();
        matches!(build, Self::TwoStamps | Self::ThreeStamps) as u8 + matches!(build, Self::ThreeStamps) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::{Build, Term};

    #[test]
    fn every_build_has_one_name_and_every_term_its_delays_on_its_base() {
        let all = Build::all();
        let mut names: Vec<String> = all.iter().map(|build| build.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), all.len()), (31, 31));
        for term in Term::ALL {
            let delayed: Vec<Build> = all.iter().copied().filter(|build| build.delay_at(term).is_some()).collect();
            assert_eq!(delayed.len(), 4);
            assert!(delayed.iter().all(|build| build.without_delay() == term.base()));
            for build in term.interventions().iter().flat_map(|change| [change.from, change.to]) {
                assert!(all.contains(&build), "{build:?}");
            }
        }
        assert!(Build::Delayed(Term::Line, 0).has_line() && !Build::Delayed(Term::Push, 0).has_line());
        assert_eq!(Build::Delayed(Term::Clock, 3).extra_stamps(), 1);
    }
}
