//! The rows: what is asked of every contestant.

use crate::judging::{Judge, Manner, Profile};
use crate::queues::Queue;

/// What a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// One event in flight, read whole.
    OneWay,
    /// One event in flight, judged by the gate.
    Judged,
    /// As many events as pass, one a call.
    One,
    /// As many events as pass, in batches.
    Batches,
    /// The gate alone.
    Judge { profile: Profile, manner: Manner, is_far: bool },
}

/// The name of [`Contestant::NoQueue`] in files and tables.
pub(crate) const NO_QUEUE: &str = "no_queue";
/// The name of [`Contestant::Lines`] in files and tables.
pub(crate) const LINES: &str = "lines";

/// What a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Queue(Queue),
    /// Both loops of a flow at once, with no queue between them: what the two cores could pass at most.
    NoQueue,
    /// The cache lines of a flow, many at once, with no queue around them: what the way between the cores passes at most.
    Lines,
    Judge(Judge),
}

impl Contestant {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queue(queue) => queue.name(),
            Self::NoQueue => NO_QUEUE,
            Self::Lines => LINES,
            Self::Judge(judge) => judge.name(),
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) what: &'static str,
}

const fn judge(name: &'static str, profile: Profile, manner: Manner, is_far: bool, what: &'static str) -> Row {
    Row { name, work: Work::Judge { profile, manner, is_far }, what }
}

/// All rows in the order of the report.
pub(crate) const ALL: [Row; 9] = [
    Row {
        name: "one_way",
        work: Work::OneWay,
        what: "one event in flight, from the stamp before it is sent until all of its 64 bytes have been read",
    },
    Row {
        name: "judged",
        work: Work::Judged,
        what: "one event in flight, until the gate has given its verdict (all checks)",
    },
    Row { name: "flow_one", work: Work::One, what: "as many events as pass, one a call, read whole" },
    Row {
        name: "flow_batches",
        work: Work::Batches,
        what: "as many events as pass, up to 64 a call at both ends, read whole",
    },
    judge("eight_one", Profile::Eight, Manner::One, false, "the gate alone, eight checks, 64 rows of limits"),
    judge(
        "eight_dependent",
        Profile::Eight,
        Manner::Dependent,
        false,
        "the same, each order waits for the last verdict",
    ),
    judge("all_one", Profile::All, Manner::One, false, "the gate alone, all checks, 64 rows of limits"),
    judge("all_dependent", Profile::All, Manner::Dependent, false, "the same, each order waits for the last verdict"),
    judge("all_one_far", Profile::All, Manner::One, true, "all checks, 400,000 rows of limits, beyond the caches"),
];
