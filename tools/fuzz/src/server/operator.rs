//! What the operator of the server limits and allows.

use std::net::{IpAddr, SocketAddr};

use tt_turn::policy::{PeerPolicy, PeerRange};
use tt_turn::shared::{Pools, Quotas};

/// A peer on a private network: closed, but for one port if the operator has rules.
const PRIVATE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
/// A peer of which the operator closes some ports.
const PARTLY_CLOSED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 4, 1));
/// A peer that is an address of this host, but for one port.
const OWN_HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 4, 2));
const OPEN_PORT: u16 = 9_000;
const CLOSED_PORTS: std::ops::RangeInclusive<u16> = 9_000..=9_999;

/// Shares of the pools, and rules about peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operator {
    pub(super) pools: Pools,
    share_percent: u8,
    has_rules: bool,
}

impl Operator {
    /// Reads the operator's choices from a byte; 0 is none of both.
    pub(super) fn new(choices: u8) -> Self {
        let pools = |allocations, ports, reservations| Pools { allocations, ports, reservations, ..Pools::UNLIMITED };
        let (pools, share_percent) = match choices & 3 {
            0 => (Pools::UNLIMITED, 75),
            1 => (pools(2, 3, 1), 75),
            2 => (pools(3, 4, 2), 50),
            _ => (pools(3, 3, 1), 100),
        };
        Self { pools, share_percent, has_rules: choices & 4 != 0 }
    }

    pub(super) fn quotas(&self, quotas: Quotas) -> Quotas {
        Quotas { user_share_percent: self.share_percent, ..quotas }
    }

    pub(super) fn policy(&self) -> PeerPolicy {
        let mut policy = PeerPolicy::new();
        if self.has_rules {
            let range = |text: String| -> PeerRange { text.parse().expect("a range of addresses and ports") };
            policy.allow(range(format!("{PRIVATE}:{OPEN_PORT}")));
            policy.deny(range(format!("{PARTLY_CLOSED}:{}-{}", CLOSED_PORTS.start(), CLOSED_PORTS.end())));
            policy.close_host(range(OWN_HOST.to_string()));
            policy.open_host(range(format!("{OWN_HOST}:{OPEN_PORT}")));
        }
        policy
    }

    /// Whether no payload may reach the peer or come from it.
    pub(super) fn closes(&self, peer: SocketAddr) -> bool {
        let is_other_port = peer.port() != OPEN_PORT;
        let is = |ip: IpAddr| peer.ip() == ip;
        peer.port() == 0
            || (is(PRIVATE) && (!self.has_rules || is_other_port))
            || (is(PARTLY_CLOSED) && self.has_rules && CLOSED_PORTS.contains(&peer.port()))
            || (is(OWN_HOST) && self.has_rules && is_other_port)
    }

    /// Asserts that no more units are given out than there are.
    pub(super) fn check_pools(&self, used: Pools) {
        let sizes = self.pools;
        let fits = used.allocations <= sizes.allocations
            && used.ports <= sizes.ports
            && used.reservations <= sizes.reservations
            && used.permissions <= sizes.permissions
            && used.channels <= sizes.channels;
        assert!(fits, "{used:?} of {sizes:?}");
    }
}
