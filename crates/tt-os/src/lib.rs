//! What truetick asks of Linux beside its sockets: where a thread runs ([`cpu`]), how urgently ([`priority`]), how it
//! sleeps ([`futex`]), memory that stays ([`memory`]), lies on huge pages ([`pages`]) or is seen by two processes
//! ([`shared`]), whether the other one still runs ([`process`]), what machine this is ([`machine`], [`caches`]), what it
//! withholds ([`throttle`]), and what happened meanwhile on all of it ([`readings`]), to one CPU ([`interrupts`],
//! [`cpu_times`]) and to one thread ([`thread`]).
//!
//! Nothing here is on a hot path. Where the OS refuses, the caller is told and may go on without.

#![cfg(target_os = "linux")]

pub mod caches;
pub mod clock;
pub mod cpu;
pub mod cpu_times;
pub mod futex;
pub mod interrupts;
pub mod machine;
pub mod memory;
pub mod pages;
pub mod priority;
pub mod process;
pub mod progress;
pub mod readings;
pub mod secret_file;
pub mod shared;
pub mod shutdown;
pub mod stdout;
pub mod thread;
pub mod throttle;
pub mod usage;
