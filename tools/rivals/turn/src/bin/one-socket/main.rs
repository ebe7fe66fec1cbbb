//! A prototype: a TURN server of one thread with one UDP socket for all relay ports. See the workspace's README.md.
//!
//! An `sk_lookup` program gives the socket every datagram to the relay range, so that an allocation has no socket, no
//! descriptor and no bind. The engine is the shipped one.

mod relay;
mod steer;
mod sys;
mod wire;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use clap::Parser;

use tt_turn::config::{Capacity, Config};
use tt_turn::credential::Secrets;
use tt_turn::policy::{Cidr, PeerPolicy};
use tt_turn::shared::{Budget, Quotas, Shared};
use tt_turn::{Server, WorkerId};

/// How a datagram leaves for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Leaving {
    /// By a raw socket, with headers of IPv4 and UDP that this program writes.
    Raw,
    /// The same with a UDP checksum of zero: what the checksum costs.
    RawUnsummed,
    /// By the one UDP socket, with the port in a mark that a program of traffic control writes into the header.
    Mark,
    /// By the one UDP socket, from its port, which is wrong: what the mark and its program cost.
    WrongPort,
    /// By a bounded pool of sockets that are bound to the ports used last.
    Pool,
}

#[derive(Debug, Parser)]
pub(crate) struct Flags {
    #[arg(long, value_enum)]
    pub(crate) leaving: Leaving,
    #[arg(long)]
    pub(crate) listen: SocketAddrV4,
    /// Addresses of relays
    #[arg(long, required = true)]
    pub(crate) relay_ip: Vec<Ipv4Addr>,
    #[arg(long, default_value_t = 49_152)]
    pub(crate) port_low: u16,
    #[arg(long, default_value_t = 65_535)]
    pub(crate) port_high: u16,
    #[arg(long, default_value_t = 16_384)]
    pub(crate) allocations_max: u32,
    /// Sockets of the pool
    #[arg(long, default_value_t = 512)]
    pub(crate) pool: usize,
    /// Index of the device where marks are turned into ports; 1 is the loopback device
    #[arg(long, default_value_t = 1)]
    pub(crate) device: u32,
    #[arg(long)]
    realm: String,
    #[arg(long)]
    user: String,
    #[arg(long)]
    password: String,
    /// Print ICMP errors as the two kinds of sockets report them
    #[arg(long)]
    pub(crate) show_icmp: bool,
}

fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let relays = flags.relay_ip.len() as u32 * (u32::from(flags.port_high - flags.port_low) + 1);
    let server = server(&flags, relays);
    relay::Relay::new(&flags, server)?.run()
}

/// The engine, with the limits that the comparison sets in the shipped program.
fn server(flags: &Flags, relays: u32) -> Server {
    let mut config = Config::new(&flags.realm);
    config.peer_policy = policy(SocketAddr::V4(flags.listen));
    let mut secrets = Secrets::new([1; 32], [2; 32]);
    secrets.add_user(flags.user.as_bytes(), &flags.realm, flags.password.as_bytes());
    let quotas = Quotas { user_share_percent: 100, user_allocation_rate: Budget::UNLIMITED, ..Quotas::default() };
    let shared = Arc::new(Shared::new(quotas, flags.allocations_max, 3));
    let capacity = Capacity { relays, ..Capacity::for_allocations(flags.allocations_max) };
    Server::new(config, capacity, shared, WorkerId(0), secrets)
}

/// The peers on the loopback device are allowed, as `--allow-own-host` does it.
fn policy(listener: SocketAddr) -> PeerPolicy {
    let mut policy = PeerPolicy::new();
    if let Ok(loopback) = Cidr::new(Ipv4Addr::new(127, 0, 0, 0).into(), 8) {
        policy.allow(loopback);
        policy.open_host(loopback);
    }
    policy.deny_listener(listener);
    policy
}
