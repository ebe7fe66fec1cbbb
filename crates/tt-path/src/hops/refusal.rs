//! Why packets are left to the sockets.

macro_rules! refusals {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)+) => {
        /// Why a destination has no usable next hop. Its packets are left to the sockets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Refusal {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Refusal {
            /// Every refusal.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name in metrics and messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the reason in a sentence or two.
            #[must_use]
            pub fn reason(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim(),)+ }
            }
        }
    };
}

refusals! {
    /// Source and destination are not of one family.
    Family = "family";
    /// The policy rules of the family are not the standard ones: `local`, `main`, `default`.
    Rules = "rules";
    /// The source is not an address of the host.
    Source = "source";
    /// The destination is the host.
    Local = "local";
    /// The destination is a broadcast, multicast or anycast address.
    NotUnicast = "not_unicast";
    /// The destination is a link-local address, which has a meaning on one interface only.
    LinkLocal = "link_local";
    /// The kernel has no route, or one that says so: `blackhole`, `prohibit`, `unreachable`, `throw`.
    Unreachable = "unreachable";
    /// The best route has several next hops.
    Multipath = "multipath";
    /// Another route has the same prefix and metric, or a route depends on the type of service.
    Ambiguous = "ambiguous";
    /// The route refers to a nexthop object, which may be a group.
    NexthopObject = "nexthop_object";
    /// The route encapsulates: MPLS, segment routing, a tunnel.
    Encapsulated = "encapsulated";
    /// The tables `main` and `default` have more than 4,096 routes, too many to look for ambiguous ones.
    TooManyRoutes = "too_many_routes";
    /// The program is not attached to the interface of the route: VLANs, bonds, bridges, tunnels.
    NotAttached = "not_attached";
    /// The interface is the loopback interface.
    Loopback = "loopback";
    /// The interface has no Ethernet header, or does not ask for neighbours (NOARP).
    NotEthernet = "not_ethernet";
    /// The interface is down, or has no carrier.
    LinkDown = "link_down";
    /// The kernel has no entry for the neighbour. A datagram that a socket sends makes one.
    NoNeighbour = "no_neighbour";
    /// The neighbour does not answer, or has not yet answered: FAILED, INCOMPLETE.
    NeighbourFailed = "neighbour_failed";
    /// The neighbour is not confirmed, and the process may not ask for a confirmation: CAP_NET_ADMIN is missing.
    NeighbourStale = "neighbour_stale";
    /// All 256 slots are in use, or were until a moment ago.
    HopsFull = "hops_full";
    /// 262,144 pairs of addresses are in use.
    PairsFull = "pairs_full";
    /// The route has changed, and paths of the old one are still open.
    Changing = "changing";
    /// The kernel does not answer, or the answer is not understood.
    Unknown = "unknown";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::ALL.iter().filter(|other| other.name() == refusal.name()).count(), 1, "{refusal:?}");
        }
    }
}
