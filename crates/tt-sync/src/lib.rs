//! What passes between threads: a ring for every event of one producer to one consumer ([`spsc`]), and a cell that
//! shows the newest value of one writer to any number of readers ([`seqlock`]).
//!
//! None of it locks, allocates after its creation, or calls the OS. A side that has nothing to do polls, unless it waits
//! by one of [`waiting`]'s strategies; how a thread yields or sleeps is then the caller's to hand in. The same ring lies
//! in memory that two processes share through [`region`].

#![no_std]

#[cfg(not(loom))]
extern crate alloc;
#[cfg(any(loom, test))]
extern crate std;

pub mod region;
pub mod seqlock;
pub mod spsc;
mod sync;
pub mod waiting;
