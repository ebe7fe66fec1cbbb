//! UDP, TCP and TLS for a server on Linux.
//!
//! A driver owns a [`Poller`] that returns the readable sockets, an [`Inbox`] that receives datagrams from many
//! sockets, and an [`Outbox`] that sends the replies of a round with one system call per socket. A received datagram
//! stays in the inbox until the round ends, so that a reply can reference its payload instead of copying it: an
//! [`Outgoing`] consists of a head, a range of a received datagram and padding, sent as one datagram.
//!
//! Over TCP and TLS, a [`stream::Connection`] splits the stream into messages and has a bounded send queue.
//!
//! This crate knows only where a message ends. It neither reads a clock nor logs. A failed system call is counted by
//! its [`IoFault`].
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
mod passed;
mod poller;
mod raw;
mod sockaddr;
mod socket;
mod source_filter;
pub mod stream;
mod sys;

pub use descriptors::{raise_descriptor_limit, reserve_descriptors};
pub use fault::{FaultCounts, IoFault};
pub use icmp::{IcmpInbox, IcmpReport};
pub use inbox::{Datagram, Inbox, Received};
pub use outbox::{Outbox, Outgoing, Sent};
pub use passed::PassedSocket;
pub use poller::{Poller, Waker};
pub use raw::{FragmentingSockets, IcmpSocket, RawIcmpInbox, RawOutbox, RawOutgoing, RawSocket};
pub use socket::{QueueFill, UdpSocket, source_towards};
pub use source_filter::SourceFilter;
