//! Lock-free exchange between threads and processes: a single-producer single-consumer ring ([`spsc`]) and a cell that
//! publishes the newest value of one writer to any number of readers ([`seqlock`]).
//!
//! Nothing here takes a lock, calls the OS, or allocates after its creation. An end that has nothing to do polls, or
//! waits by a strategy of [`wait`]; the caller passes the function that yields or sleeps. [`region`] puts the same ring
//! into memory that two processes share.
//!
//! # Example
//!
//! ```
//! use std::thread;
//! use tt_sync::spsc::ring;
//!
//! let (mut producer, mut consumer) = ring::<u64>(64);
//! let pushing = thread::spawn(move || {
//!     for number in 0..1_000 {
//!         while producer.push(number).is_err() {
//!             thread::yield_now();
//!         }
//!     }
//! });
//! let (mut popped, mut sum) = (0, 0);
//! while popped < 1_000 {
//!     match consumer.pop() {
//!         Some(number) => (popped, sum) = (popped + 1, sum + number),
//!         None => thread::yield_now(),
//!     }
//! }
//! assert_eq!(sum, 499_500);
//! pushing.join().expect("the producer ended");
//! ```
//!
//! `examples/threads.rs` and `examples/processes.rs` are complete programs.

#![no_std]

#[cfg(not(loom))]
extern crate alloc;
#[cfg(any(loom, test))]
extern crate std;

pub mod barrier;
pub mod region;
pub mod seqlock;
pub mod spsc;
mod sync;
pub mod wait;
