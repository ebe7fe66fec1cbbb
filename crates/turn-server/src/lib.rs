//! A STUN/TURN server over UDP, TCP and TLS: worker threads, sockets and configuration around the engine `tt_turn`.
//!
//! [`start`] binds every address of a [`TurnConfig`] and starts one thread per worker, each with its own listener on
//! every address, a pool of relay sockets and one engine. [`Running`] reads the workers' counters, reloads credentials
//! and peer rules, drains and stops. A [`TurnSection`] is the section `[turn]` of a configuration file.
//!
//! ```
//! use std::net::UdpSocket;
//! use std::time::Duration;
//!
//! let mut config = turn_server::TurnConfig::on("127.0.0.1:0".parse()?);
//! config.workers = 1;
//! config.users.push(turn_server::User::parse("demo:demo-password")?);
//! let server = turn_server::start(&config)?;
//!
//! // A STUN Binding request (RFC 8489): type, length, magic cookie, transaction id.
//! let request = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
//! let client = UdpSocket::bind("127.0.0.1:0")?;
//! client.set_read_timeout(Some(Duration::from_secs(10)))?;
//! client.send_to(&request, server.listen()[0])?;
//! let mut response = [0; 1500];
//! client.recv(&mut response)?;
//! assert_eq!(response[..2], [1, 1], "a success response");
//! assert_eq!(response[8..20], request[8..20], "with the same transaction id");
//!
//! let datagrams = server.stop().accounting();
//! assert_eq!((datagrams.input, datagrams.out, datagrams.dropped), (1, 1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod bans;
mod blueprint;
mod commands;
mod counters;
mod ended_allocations;
mod event_log;
mod hand_off;
mod kernel_path;
mod launch;
mod listener_id;
mod listeners;
mod memory;
mod messages;
mod operator;
mod overload;
mod passed;
mod poll_key;
mod privileges;
mod ready;
mod realm_names;
mod records;
mod rejected_sources;
mod relay_pool;
mod relays;
mod running;
mod streams;
mod supervisor;
mod udp_listeners;
mod worker;
mod worker_set;

pub use blueprint::check::check;
pub use blueprint::reserve_descriptors;
pub use counters::Totals;
pub use kernel_path::doctor as path_doctor;
pub use kernel_path::dump as path_dump;
pub use launch::{start, start_with};
pub use listeners::StreamAddr;
pub use passed::PassedSockets;
pub use running::{CredentialSink, Reloader, Running};
pub use turn_config::{
    AllocationCaps, AuthSecret, Balancers, CertificateFiles, DatabaseLogins, DscpSet, ExternalCredentials,
    ExternalLimits, ExternalPeers, ExternalRealm, ExternalUsers, IcmpIndications, KernelMode, KeySources, KeyedUsers,
    MemoryBound, MemorySize, NonceKeys, Password, PasswordAlgorithms, PeerRange, PortRange, QuotasSection, Realm,
    RealmSection, RecordOutput, RelayIp, RelaySockets, StreamLimits, StreamsSection, TlsCipher, TlsVersion, TurnConfig,
    TurnSection, User, Users, is_reloaded,
};

#[cfg(test)]
mod tests;
