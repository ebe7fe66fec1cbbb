//! The system calls for which there is no safe wrapper, or none with buffers that outlive the call.

#![allow(unsafe_code)] // the crate's only unsafe: each block is one operation with its proof

mod header;
mod option;
mod recvmmsg;
mod sendmmsg;

pub(crate) use option::{MtuDiscovery, set_mtu_discovery, set_option, socket_memory};
pub(crate) use recvmmsg::Slots;
pub(crate) use sendmmsg::{Departure, Departures};
