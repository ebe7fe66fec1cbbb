//! What passes between threads: a ring for every event of one producer to one consumer ([`spsc`]), and a cell that
//! shows the newest value of one writer to any number of readers ([`seqlock`]).
//!
//! Neither locks, allocates after its creation, or calls the OS. A waiting side polls; how it waits in between is the
//! caller's choice.

#![no_std]

#[cfg(not(loom))]
extern crate alloc;
#[cfg(any(loom, test))]
extern crate std;

pub mod seqlock;
pub mod spsc;
mod sync;
