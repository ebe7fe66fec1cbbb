//! UDP, TCP and TLS for a server on Linux.
//!
//! A driver owns three things: a [`Poller`] that tells which sockets have something, an [`Inbox`] that takes datagrams
//! from many sockets until it is full, and an [`Outbox`] that sends a round's answers in one system call a socket.
//! A datagram stays where the kernel put it until the round ends, so that an answer may quote its payload instead of
//! copying it: an [`Outgoing`] names a head, a span of a received datagram and some padding, and they leave as one.
//!
//! Over TCP and TLS a [`stream::Connection`] cuts what comes into messages and queues what goes, within bounds.
//!
//! Nothing here knows more of a protocol than where a message ends, reads a clock or logs. A failed system call is an [`IoFault`] and a number.
//!
//! ```
//! use tt_model::ByteRange;
//! use tt_net::{Inbox, Outbox, Outgoing, Poller, UdpSocket};
//!
//! let server = UdpSocket::listeners("127.0.0.1:0".parse().expect("an address"), 1)?.remove(0);
//! let mut poller = Poller::new(16)?;
//! poller.add(&server, 7)?;
//! let client = std::net::UdpSocket::bind("127.0.0.1:0")?;
//! client.send_to(b"hello", server.local_addr())?;
//!
//! let (mut inbox, mut outbox) = (Inbox::new(8, 2048), Outbox::new(8, 2048));
//! assert_eq!(poller.wait(None)?, [7]);
//! inbox.receive(&server, 7, 8)?;
//! for index in 0..inbox.len() {
//!     let echo = Outgoing::quoting(7, inbox.datagram(index).from, index, ByteRange::new(0, 5));
//!     assert!(outbox.push(echo));
//! }
//! outbox.flush(&inbox, |key| (key == 7).then_some(&server));
//! inbox.clear();
//! # Ok::<(), std::io::Error>(())
//! ```

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod ancillary;
mod descriptors;
mod fault;
mod icmp;
mod inbox;
mod outbox;
mod poller;
mod sockaddr;
mod socket;
pub mod stream;
mod sys;

pub use descriptors::raise_descriptor_limit;
pub use fault::{FaultCounts, IoFault};
pub use icmp::{IcmpInbox, IcmpReport};
pub use inbox::{Datagram, Inbox, Received};
pub use outbox::{Outbox, Outgoing, Sent};
pub use poller::{Poller, Waker};
pub use socket::{UdpSocket, source_towards};
