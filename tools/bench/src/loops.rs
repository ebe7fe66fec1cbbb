//! Events through the ring from one core to another, timed one by one.
//!
//! A time between two cores means nothing without their distance, and a hypervisor changes that several times a second.
//! So every run is short, and carries the ping-pong of a cache line between the same two threads from before and after.

pub mod ablation;
mod delay;
pub mod hand_over;
mod layout_run;
mod one_line;
mod ring_run;
mod words;

pub use delay::Delay;
pub use hand_over::Idle;
pub use layout_run::{Layout, LayoutPlan, LayoutRun, run_layout};
pub use one_line::{LineReceiver, LineSender, one_line};
pub use ring_run::{RingPlan, RingRun, read_whole, run_ring};
