//! A STUN/TURN server (RFC 8489, RFC 8656) as a state machine over byte slices.
//!
//! # The loop contract
//!
//! The caller owns the sockets, the clock and every buffer. It makes one [`Shared`] for the process and one
//! [`Server`] per worker, registers bound relay sockets with [`Server::add_relay`], tells the wall clock with
//! [`Server::set_wall_clock`], and then loops:
//!
//! 1. for every datagram of a client, and every message on its connection (RFC 8656 section 12.5 tells where one
//!    ends): [`Server::handle_client`], for every packet on a relay socket: [`Server::handle_peer`], for every ICMP
//!    error that one of them is told of: [`Server::handle_icmp`]; do what the [`Output`] says (its slices are parts of
//!    the datagram and of `out`);
//! 2. [`Server::poll_relay`] until `None`: a retired socket rests, is drained, and is registered again;
//! 3. when the connection of a flow over TCP or TLS is closed: [`Server::close_flow`];
//! 4. when `now` reaches [`Server::poll_timeout`]: [`Server::handle_timeout`].
//!
//! `now` is monotonic nanoseconds of one clock and never goes back. Nothing is allocated after
//! [`Server::new`], save by [`Server::replace_secrets`] and [`Server::replace_policy`].
//!
//! # Ten nouns
//!
//! [`Server`]: one worker's engine. [`Shared`]: what all workers share. [`Config`]: the operator's choices.
//! [`Capacity`]: how much of everything there is. [`Secrets`]: users and keys. *Flow*: a client's five-tuple.
//! *Allocation*: a flow's claim on a relayed address. *Permission*: an address that may use it. *Channel*: a number
//! that stands for a peer. *Relay*: a socket on which an allocation meets its peers, see [`RelayId`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod allocation;
mod base64;
mod channel;
pub mod config;
pub mod counters;
pub mod credential;
pub mod emit;
pub mod error;
pub mod event;
mod flow;
pub mod integrity;
pub mod message;
mod nonce;
mod output;
mod permission;
pub mod policy;
pub mod refusal;
pub mod relay;
mod reservation;
mod server;
pub mod shared;
mod slab;
mod table;
mod wheel;

pub use config::{Capacity, Config};
pub use counters::{Counters, DropReason};
pub use credential::Secrets;
pub use output::{Fragmentation, IpFields, Marks, Output, WorkerId};
pub use relay::RelayId;
pub use server::{LiveAllocation, Server};
pub use shared::Shared;
