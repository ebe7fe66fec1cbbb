//! Data of the figures of `report.html` and of the page, as in the JSON.
//!
//! Whoever measures fills one [`Figures`]. What was not measured stays empty (a vector without entries, `None`), and
//! the figure says so in its place; nothing is made up. All times are in nanoseconds, every [`Estimate`] has the 95 %
//! interval of its runs, and times between two cores are under the [`Class`] of their placement.

use serde::Serialize;

use tt_status::distribution::Distribution;

use crate::report::ring::Simulated;
use crate::report::{Estimate, Part, Source};

/// All that a run knows for its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// One entry for each placement class that occurred, nearest cores first.
    pub classes: Vec<Class>,
    /// The steps of the ablation in order, the starting point first; empty where it was not run.
    pub ablation: Vec<AblationStep>,
    /// Stalls a second by cause, of the ring and of its consumer's core alone; empty where neither was watched.
    pub tail: Vec<CauseRate>,
    /// What the published figures of the loop describe, to be drawn next to the measured distribution.
    pub simulated: Option<Simulated>,
    /// Which code implements which part of the design; empty where the run is not about the ring.
    pub parts: Vec<Part>,
}

impl Figures {
    /// The entry of `placement`, made where there is none.
    pub fn class(&mut self, placement: &str) -> &mut Class {
        let found = self.classes.iter().position(|class| class.placement == placement);
        let index = found.unwrap_or_else(|| {
            self.classes.push(Class { placement: placement.to_owned(), ..Class::default() });
            self.classes.len() - 1
        });
        &mut self.classes[index]
    }
}

/// Measurements of one placement of the two cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Class {
    /// `siblings`, `same_cache`, `across_caches`, or `moved` for runs whose two probes disagree.
    pub placement: String,
    /// Runs behind the entry.
    pub runs: u64,
    /// A cache line's way from one core to the other: half a round trip of the ping-pong.
    pub ping_pong: Option<Estimate>,
    /// An event's way through each layout of a ring, one in flight.
    pub ways: Vec<Way>,
    /// Two threads that count, on one line and on a line each.
    pub sharing: Option<Sharing>,
    /// Latencies, and what the same core does when nothing is asked of it.
    pub distributions: Vec<Distribution>,
}

/// An event's way from one core to the other, one in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// How the ring lies in memory.
    pub layout: Layout,
    /// The median.
    pub p50: Estimate,
    /// From which stamp to which, and what the consumer does.
    pub what: String,
}

/// How a ring lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// The sequence shares the event's cache line: one line moves for an event. The idle producer keeps the next slot's
    /// line, as the shipped one does.
    SequenceInSlot,
    /// The same, and the idle producer does nothing.
    SequenceInSlotResting,
    /// An index and an event on separate lines: two lines move per event.
    IndexPair,
}

/// False sharing on and off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// An increment while the other thread counts on the same line.
    pub one_line: Estimate,
    /// An increment while the other thread counts on another line.
    pub own_lines: Estimate,
    /// Bytes between the two counters where each has its own line.
    pub apart_bytes: u32,
    /// Description of an increment.
    pub what: String,
}

/// One step of the ablation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationStep {
    /// `core affinity`.
    pub name: String,
    /// Description of the code with and without the step.
    pub what: String,
    /// The median with this step and all before it.
    pub cumulative: Option<Estimate>,
    /// The median of the final build without this step alone.
    pub without: Option<Estimate>,
    /// The published median after this step.
    pub published_ns: Option<f64>,
    /// Where the published median comes from.
    pub published_source: String,
    /// The code of a build with the step.
    pub sources: Vec<Source>,
    /// The code in its place without the step; empty where it is only left out.
    pub sources_without: Vec<Source>,
    /// The effect of the step on this machine, as text.
    pub verdict: String,
}

/// How often a cause made a stall.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseRate {
    /// `interrupt`, `preemption`, `steal`, `page_fault`, `frequency`, `unknown`.
    pub cause: String,
    /// Stalls a second while events were in flight.
    pub ring_per_s: f64,
    /// Stalls a second of the same core when it only spun.
    pub floor_per_s: f64,
}
