//! The two system calls for which there is no safe wrapper with buffers that outlive the call.

#![allow(unsafe_code)] // the crate's only unsafe: each block is one operation with its proof

mod header;
mod recvmmsg;
mod sendmmsg;

pub(crate) use recvmmsg::Slots;
pub(crate) use sendmmsg::{Departure, Departures};
