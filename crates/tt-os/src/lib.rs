//! What truetick asks of Linux beside its sockets: where a thread runs ([`cpu`]), how urgently ([`priority`]), memory
//! that stays ([`memory`]), what machine this is ([`machine`]) and what happened on it meanwhile ([`readings`]).
//!
//! Nothing here is on a hot path. Where the OS refuses, the caller is told and may go on without.

#![cfg(target_os = "linux")]

pub mod cpu;
pub mod machine;
pub mod memory;
pub mod priority;
pub mod readings;
