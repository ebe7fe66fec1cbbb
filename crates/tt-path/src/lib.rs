//! The kernel's fast path for bound TURN channels.
//!
//! An XDP program relays ChannelData between a client and a peer before the kernel makes a socket buffer of it. The
//! TURN engine stays the only source of truth: the kernel holds leases ([`PathSpec`]) that end by themselves, by time,
//! by epoch, or when the process no longer writes its heartbeat. A packet that fits no lease exactly goes up to the
//! sockets unchanged, with a [`Reason`] that is counted. The program drops a packet for one reason only: the meter of
//! its user is empty.
//!
//! - [`Paths`] loads the program and attaches it to interfaces. A program ends with the process: nothing is pinned.
//! - [`Writer`] opens and closes paths and sets next hops: one per thread.
//! - [`NextHops`] resolves next hops by rtnetlink, and keeps them true: one per process.
//! - [`drivers`] describes interfaces, and says on which drivers `auto` uses native mode, and why.
//! - [`survey`] examines an interface for an operator.
//! - [`dump`] gives copies of packets that a running server's program relays to an operator.
//! - [`Board`] is the memory that process and program share: ports, switch, heartbeat, meters, tallies, proofs.
//!
//! # Privileges
//!
//! Loading and attaching need CAP_BPF and CAP_NET_ADMIN; either alone fails. After that, the process may drop both:
//! maps stay accessible through their descriptors (Linux 5.19 and later; older kernels need CAP_BPF for [`Writer`]).
//! The thread of [`NextHops`] should keep CAP_NET_ADMIN, by which it has neighbours confirmed. Without the privileges,
//! [`Paths::load`] returns one line that names them, and the caller relays by sockets.
//!
//! # Kernel
//!
//! The program needs Linux 5.18 (`bpf_xdp_load_bytes`; atomic operations with a result came before). It has no FIB
//! lookup: [`NextHops`] resolves next hops in user space. A VLAN tag that the device has removed is invisible to the
//! program, so attach it only to interfaces without VLANs.
//!
//! # Next hops
//!
//! [`NextHops`] asks the kernel (`RTM_GETROUTE`) where packets of each pair of source and destination leave, and
//! follows its notifications. The kernel's answer is exact where a copy of its tables would not be: rules, metrics,
//! redirects, learned path MTUs. Whatever is not certain is refused by name ([`Refusal`]): policy rules, several next
//! hops, interfaces without the program, unknown neighbours. A hop is invalid as soon as one of its facts is in doubt,
//! and its packets go to the sockets. Policies of IPsec (`ip xfrm policy`) and firewall rules do not see relayed
//! packets.
//!
//! # Proof of an interface
//!
//! A sender on the same machine may leave the UDP checksum to its device. A relayed packet would then leave with a
//! wrong checksum and be lost. The program therefore hands up every packet whose checksum field is the sum of the
//! pseudo-header alone. An interface is used only after the full checksums of 64 candidates were right
//! ([`Proof::Proven`]), and is [`Proof::Unproven`] once one of them was partial. One in 4,096 is verified for life.
//!
//! ```
//! use tt_path::{Capacity, Paths, PortKind};
//!
//! match Paths::load(Capacity { paths: 1_000, meters: 100 }) {
//!     Ok(paths) => paths.board().set_port(3478, PortKind::Listener),
//!     Err(error) => eprintln!("relaying by sockets: {error}"),
//! }
//! ```

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod board;
mod btf;
mod capacity;
pub mod drivers;
pub mod dump;
mod error;
mod hops;
mod layout;
mod loader;
mod packed;
mod reason;
mod spec;
mod steer;
pub mod survey;
#[allow(unsafe_code)]
mod sys;
mod writer;

pub use board::{Board, PortKind, Proof, ProofState};
pub use capacity::Capacity;
pub use error::{DumpError, PathError, SteerError};
pub use hops::{AddressPair, Hop, HopEvent, NextHops, Refusal};
pub use layout::{Meter, Tally};
pub use loader::{Interface, Mode, Paths, Run, object};
pub use reason::{Reason, ReasonCounts};
pub use spec::{Direction, Key, PathKey, PathSpec};
pub use steer::{SteeredPort, Steering};
pub use writer::{NextHop, Writer};
