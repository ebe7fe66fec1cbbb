//! Linux interfaces, except sockets.
//!
//! - Threads: CPU affinity ([`cpu`]), real-time priority ([`priority`]), futexes ([`futex`]), counters ([`thread`]).
//! - Memory: locked ([`memory`]), on huge pages ([`pages`]), shared by two processes ([`shared`]).
//! - Processes: liveness ([`process`]), signals ([`shutdown`]), the clock ([`clock`]), sockets of the service manager
//!   (`passed_sockets`).
//! - Files: regular ones ([`regular_file`]), those with secrets ([`secret_file`]), written through memory ([`mapped_file`]).
//! - The machine: addresses ([`addresses`]), hardware ([`machine`], [`caches`]), limits ([`throttle`], [`cgroup`]), load ([`readings`]),
//!   per CPU ([`interrupts`], [`cpu_times`]).
//!
//! Nothing here is on a hot path. A function that the OS rejects returns the error, and the caller may continue.

#![cfg(target_os = "linux")]

#[cfg(feature = "addresses")]
pub mod addresses;
pub mod caches;
pub mod cgroup;
pub mod clock;
pub mod cpu;
pub mod cpu_times;
#[cfg(feature = "wakes")]
pub mod futex;
pub mod heap;
pub mod interrupts;
pub mod machine;
#[cfg(feature = "mappings")]
pub mod mapped_file;
pub mod memory;
#[cfg(feature = "mappings")]
pub mod pages;
#[cfg(feature = "passed-sockets")]
pub mod passed_sockets;
pub mod priority;
#[cfg(feature = "wakes")]
pub mod process;
pub mod progress;
pub mod readings;
pub mod regular_file;
pub mod secret_file;
pub mod shared;
#[cfg(feature = "shutdown")]
pub mod shutdown;
pub mod stdout;
pub mod thread;
pub mod throttle;
pub mod usage;
