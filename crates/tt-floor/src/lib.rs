//! What the machine can do between two cores, what keeps a thread from running on one, and what the ring and the gate add.
//!
//! A time between two cores means nothing without their distance, and a hypervisor changes that several times a second.
//! So every run is short, and carries the ping-pong of a cache line between the same two threads from before and after.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod chase;
mod clock_source;
mod deadline;
mod delay;
pub mod hand_over;
mod jitter;
pub mod journey;
mod kernel;
mod layout_run;
mod measurement;
mod middle;
mod pair;
mod ping_pong;
mod placement;
mod ring_run;
mod sharing;
mod stall;
mod transfer;

pub use chase::{Chase, ChasePlan, Lines, memory};
pub use clock_source::{ClockSource, Pair, clock_sources};
pub use deadline::Deadline;
pub use delay::Delay;
pub use hand_over::Idle;
pub use jitter::{JitterPlan, spin};
pub use kernel::kernel;
pub use layout_run::{Layout, LayoutPlan, LayoutRun, run_layout};
pub use measurement::{Block, Measurement};
pub use middle::middle;
pub use pair::{Threads, on_two_cores, on_two_threads};
pub use ping_pong::PingPong;
pub use placement::Placement;
pub use ring_run::{RingPlan, RingRun, read_whole, run_ring};
pub use sharing::{SharingRun, Spacing, run_sharing};
pub use stall::{Evidence, Jitter, Stall, StallCause, StallWatch, WatchPlan, Witness};
pub use transfer::{Probe, Transfer, watch_transfer};
