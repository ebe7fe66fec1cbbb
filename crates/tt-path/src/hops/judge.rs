//! Decides from the kernel's answers where packets leave.

use std::collections::HashMap;
use std::net::IpAddr;

use netlink_packet_route::route::RouteType;
use tt_model::IpFamily;

use super::facts::{Prefix, Route};
use super::refusal::Refusal;

/// Most routes of the tables `main` and `default` that are compared.
const ROUTES_MAX: usize = 4_096;

/// Where packets leave: the key of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) ifindex: u32,
    /// The gateway, or the destination if it is on the link.
    pub(crate) neighbour: IpAddr,
    /// Family of the packets.
    pub(crate) family: IpFamily,
    /// MTU of the route, in bytes.
    pub(crate) mtu: Option<u32>,
}

/// Decides about a destination from the answer of a lookup and the route that it matched.
pub(crate) fn judge(
    destination: IpAddr,
    answer: &Route,
    matched: &Route,
    census: &Census,
    interfaces: &[u32],
) -> Result<Target, Refusal> {
    for route in [matched, answer] {
        judge_kind(route.kind)?;
        route.refusal.map_or(Ok(()), Err)?;
    }
    if !matched.is_in_main() {
        return Err(Refusal::Rules);
    }
    census.judge(matched)?;
    let ifindex = answer.ifindex.ok_or(Refusal::Unknown)?;
    if matched.ifindex != Some(ifindex) {
        return Err(Refusal::Unknown);
    }
    if !interfaces.contains(&ifindex) {
        return Err(Refusal::NotAttached);
    }
    let neighbour = answer.gateway.unwrap_or(destination);
    Ok(Target { ifindex, neighbour, family: IpFamily::of(destination), mtu: answer.mtu })
}

pub(crate) fn judge_kind(kind: RouteType) -> Result<(), Refusal> {
    if kind == RouteType::Unicast {
        Ok(())
    } else if kind == RouteType::Local {
        Err(Refusal::Local)
    } else if [RouteType::Broadcast, RouteType::Multicast, RouteType::Anycast].contains(&kind) {
        Err(Refusal::NotUnicast)
    } else if [RouteType::BlackHole, RouteType::Unreachable, RouteType::Prohibit, RouteType::Throw].contains(&kind) {
        Err(Refusal::Unreachable)
    } else {
        Err(Refusal::Unknown)
    }
}

/// Counts the routes of one family by prefix and metric, to find those between which the kernel alternates.
#[derive(Debug, Default)]
pub(crate) struct Census {
    counts: HashMap<(Prefix, u32), u32>,
    routes: usize,
    has_tos: bool,
}

impl Census {
    pub(crate) fn add(&mut self, route: &Route) {
        if !route.is_in_main() {
            return;
        }
        self.has_tos |= route.tos != 0;
        self.routes += 1;
        if !self.is_too_large() {
            *self.counts.entry((route.prefix, route.metric)).or_default() += 1;
        }
    }

    pub(crate) const fn is_too_large(&self) -> bool {
        self.routes > ROUTES_MAX
    }

    /// Refuses a route that is not the only one of its prefix and metric.
    fn judge(&self, route: &Route) -> Result<(), Refusal> {
        if self.is_too_large() {
            return Err(Refusal::TooManyRoutes);
        }
        if self.has_tos {
            return Err(Refusal::Ambiguous);
        }
        match self.counts.get(&(route.prefix, route.metric)) {
            Some(1) => Ok(()),
            Some(_) => Err(Refusal::Ambiguous),
            // The route is newer than the census.
            None => Err(Refusal::Changing),
        }
    }
}

#[cfg(test)]
mod tests;
