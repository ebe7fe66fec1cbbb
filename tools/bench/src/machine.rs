//! Latencies of the machine alone: caches, kernel calls, lines between two cores, and what stops a running thread.
//!
//! A time between two cores means nothing without their distance, and a hypervisor changes that several times a second.
//! So every run is short, and carries the ping-pong of a cache line between the same two threads from before and after.

mod chase;
mod clock_source;
mod deadline;
mod distance;
mod jitter;
mod kernel;
mod measurement;
mod middle;
mod pair;
mod ping_pong;
mod placement;
mod sharing;
mod stall;
mod trace;
mod transfer;

pub use chase::{Chase, ChasePlan, Lines, memory};
pub use clock_source::{ClockSource, Pair, clock_sources};
pub use deadline::Deadline;
pub use distance::{Topology, cpu_list, distance, pairs_at_other_distances};
pub use jitter::{JitterPlan, spin};
pub use kernel::kernel;
pub use measurement::{Block, Measurement};
pub use middle::{middle, within_step};
pub use pair::{Threads, on_two_cores, on_two_threads};
pub use ping_pong::PingPong;
pub use placement::Placement;
pub use sharing::{SharingRun, Spacing, run_sharing};
pub use stall::{Evidence, Jitter, Stall, StallCause, StallWatch, WatchPlan, Witness};
pub use trace::{Busy, Trace};
pub use transfer::{Probe, Transfer, watch_transfer};
