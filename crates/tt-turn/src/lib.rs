//! A STUN/TURN server (RFC 8489, RFC 8656) as a state machine over byte slices, for programs that relay WebRTC media.
//!
//! The engine has no sockets, clock, threads or logs. The caller owns them, calls the engine with each datagram and
//! does what the returned [`Output`] says.
//!
//! # The loop
//!
//! Make one [`Shared`](shared::Shared) for the process and one [`Server`] for each worker thread. Register bound relay
//! sockets with [`Server::add_relay`] and set the wall clock with [`Server::set_wall_clock`]. Then repeat:
//!
//! 1. Call [`Server::handle_client`] for every datagram from a client and every message on its connection (RFC 8656
//!    section 12.5 defines where one ends), [`Server::handle_peer`] for every packet on a relay socket, and
//!    [`Server::handle_icmp`] for every ICMP error that a relay socket reports. Do what the [`Output`] says.
//! 2. Call [`Server::poll_relay`] until it returns `None`. Let a retired socket rest, drain it and register it again.
//! 3. Call [`Server::close_flow`] when the connection of a client over TCP or TLS is closed.
//! 4. Call [`Server::handle_timeout`] when `now` reaches [`Server::poll_timeout`].
//!
//! `now` is a number of nanoseconds on one monotonic clock. Nothing is allocated after [`Server::new`], except by
//! [`Server::replace_secrets`] and [`Server::replace_policy`].
//!
//! # Example
//!
//! A client without credentials gets a nonce, allocates, permits a peer and sends a payload through the relay. No
//! socket is involved: every datagram is a slice.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::sync::Arc;
//!
//! use tt_meter::Off;
//! use tt_model::{FiveTuple, Nanos, Transport};
//! use tt_turn::codec::{Class, Emitter, HmacSha1, Message, Method, attribute};
//! use tt_turn::config::{Capacity, Config};
//! use tt_turn::credential::{Secrets, long_term_key};
//! use tt_turn::relay::{RelayAddress, RelayId};
//! use tt_turn::shared::{Quotas, Shared};
//! use tt_turn::{Output, ReplyStatus, Server, WorkerId};
//!
//! const REALM: &str = "example.org";
//!
//! /// A client's request, signed if there is a key and a nonce.
//! fn request(method: Method, key: Option<(&HmacSha1, &[u8])>, fill: impl Fn(&mut Emitter<'_>)) -> Vec<u8> {
//!     let mut buffer = [0; 512];
//!     let mut message = Emitter::begin(&mut buffer, method, Class::Request, *b"0123456789AB");
//!     fill(&mut message);
//!     if let Some((key, nonce)) = key {
//!         message.attribute(attribute::USERNAME, b"alice");
//!         message.attribute(attribute::REALM, REALM.as_bytes());
//!         message.attribute(attribute::NONCE, nonce);
//!         message.message_integrity(key);
//!     }
//!     message.finish().expect("512 bytes are enough").to_vec()
//! }
//!
//! // The server: one worker, one user, one relay socket. Use random seeds and keys in a real one.
//! let mut secrets = Secrets::new([1; 32], [2; 32]);
//! secrets.add_user(b"alice", REALM, b"password");
//! let shared = Arc::new(Shared::new(Quotas::default(), 100, 3));
//! let mut server = Server::new(Config::new(REALM), Capacity::for_allocations(100), shared, WorkerId(0), secrets);
//! let relay_addr: SocketAddr = "198.51.100.1:50000".parse()?;
//! server.add_relay(RelayId(0), RelayAddress { bound: relay_addr, external: relay_addr })?;
//! let now = Nanos::from_secs(1);
//! server.set_wall_clock(now, Nanos::from_secs(1_800_000_000));
//!
//! let flow = FiveTuple {
//!     client: "192.0.2.1:40000".parse()?,
//!     server: "198.51.100.1:3478".parse()?,
//!     transport: Transport::Udp,
//! };
//! let peer: SocketAddr = "8.8.8.8:9".parse()?; // The default policy denies private and documentation addresses.
//! let mut out = [0; 1_500];
//!
//! // Without credentials: 401 and a nonce.
//! let udp = |message: &mut Emitter<'_>| message.attribute(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
//! let output = server.handle_client(now, &flow, &request(Method::Allocate, None, udp), &mut out, &mut Off);
//! let Output::Reply { len, status: ReplyStatus::Rejected { code, .. } } = output else { panic!("{output:?}") };
//! assert_eq!(code.code(), 401);
//! let challenge = Message::parse(&out[..len])?;
//! let (_, nonce) = challenge.attributes().find(|(kind, _)| *kind == attribute::NONCE).expect("a 401 has a nonce");
//! let (key, nonce) = (long_term_key(b"alice", REALM.as_bytes(), b"password"), nonce.to_vec());
//!
//! // Allocate, and permit the peer.
//! let permit = |message: &mut Emitter<'_>| message.xor_address(attribute::XOR_PEER_ADDRESS, peer);
//! let signed = Some((&key, &nonce[..]));
//! for request in [request(Method::Allocate, signed, udp), request(Method::CreatePermission, signed, permit)] {
//!     let output = server.handle_client(now, &flow, &request, &mut out, &mut Off);
//!     assert!(matches!(output, Output::Reply { status: ReplyStatus::Success, .. }), "{output:?}");
//! }
//!
//! // A payload to the peer is a range of the client's datagram.
//! let mut buffer = [0; 512];
//! let mut indication = Emitter::begin(&mut buffer, Method::Send, Class::Indication, [7; 12]);
//! indication.xor_address(attribute::XOR_PEER_ADDRESS, peer);
//! indication.attribute(attribute::DATA, b"hello");
//! let datagram = indication.finish().expect("512 bytes are enough");
//! let output = server.handle_client(now, &flow, datagram, &mut out, &mut Off);
//! let Output::ToPeer { relay, peer: to, payload, .. } = output else { panic!("{output:?}") };
//! assert_eq!((relay, to, &datagram[payload.to_range()]), (RelayId(0), peer, &b"hello"[..]));
//!
//! // The allocation ends after 600 s; its relay is retired.
//! let end = server.poll_timeout().expect("a permission ends");
//! server.handle_timeout(end.saturating_add(Nanos::from_secs(600)));
//! assert_eq!(server.allocations(), 0);
//! assert!(server.poll_relay().is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod allocation;
pub mod bans;
mod base64;
mod channel;
pub mod config;
mod counters;
pub mod credential;
mod drop_reason;
mod emit;
mod error;
pub mod event;
mod flow;
mod integrity;
mod message;
mod nonce;
mod output;
pub mod path;
mod permission;
pub mod policy;
mod realm;
mod rejection;
pub mod relay;
mod server;
pub mod shared;
mod slab;
mod table;
mod wheel;
mod wire;

pub use counters::Counters;
pub use drop_reason::DropReason;
pub use error::ErrorCode;
pub use output::{Fragmentation, IpFields, Marks, Output, ReplyStatus, WorkerId};
pub use rejection::RejectReason;
pub use server::{LiveAllocation, PlaceTraffic, Server};

/// STUN messages: reading, writing, message integrity.
pub mod codec {
    pub use crate::emit::Emitter;
    pub use crate::integrity::{HmacSha1, HmacSha256};
    pub use crate::message::{Class, Message, Method, TransactionId, XorAddress, attribute};
    pub use crate::wire::{HEADER_LEN, MAGIC_COOKIE};
}
