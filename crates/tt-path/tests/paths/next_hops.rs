//! Next hops in network namespaces: what the kernel says of routes, rules, neighbours and links.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Uid, setresuid};
use testkit::{Requirement, require};
use tt_model::{Nanos, SplitMix64};
use tt_path::drivers::NativeUse;
use tt_path::{AddressPair, Capacity, Hop, HopEvent, Interface, NextHop, NextHops, PathError, Paths, Refusal};

use crate::in_kernel;
use crate::namespaces::{self, CLIENT, Network, PATIENCE, PEER, Side, TOWARD_CLIENT, TOWARD_PEER, run};
use crate::require_kernel;

const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x77];
/// A time at which no neighbour has to be confirmed.
const NOW: Nanos = Nanos::from_secs(100);

/// Namespaces of [`Network`], and next hops in the relay's. Neighbours are set by hand: nothing depends on time.
struct Scene {
    network: Network,
    hops: NextHops,
    paths: Paths,
}

impl Scene {
    fn require() -> Option<Self> {
        drop(require_kernel()?);
        let network = require(Requirement::NetNamespace, Network::make())?;
        let paths = Paths::load(Capacity { paths: 4, meters: 1 }).unwrap();
        let writer = paths.writer().unwrap();
        let mut hops = network.on(Side::Relay, || NextHops::open(writer).unwrap());
        hops.attach(TOWARD_CLIENT.0);
        hops.attach(TOWARD_PEER.0);
        let mut scene = Self { network, hops, paths };
        scene.relay("link set lo up");
        for (address, interface, (_, mac)) in [
            ("10.91.0.1", "r11", CLIENT),
            ("2001:db8:91::1", "r11", CLIENT),
            ("10.92.0.1", "r13", PEER),
            ("2001:db8:92::1", "r13", PEER),
        ] {
            scene.set_neighbour(address, interface, mac, "permanent");
        }
        // The first call confirms neighbours, of which there is none.
        scene.process();
        for [source, gateway, ..] in FAMILIES {
            scene.wait_for_source(pair(source, gateway));
        }
        scene.wait_for_source(pair("2001:db8:91::2", "2001:db8:91::1"));
        Some(scene)
    }

    /// Waits until the source is an address of the host: the kernel adds those of IPv6 later.
    fn wait_for_source(&mut self, pair: AddressPair) {
        while self.resolve(pair) == Err(Refusal::Source) {
            assert!(wait(&self.hops, PATIENCE), "{pair:?} has no source");
            self.process();
        }
    }

    /// Runs `ip` in the relay's namespace.
    fn relay(&self, line: &str) {
        run("ip", &format!("-n {} {line}", self.network.0[Side::Relay as usize])).unwrap();
    }

    /// Runs many lines of `ip`; those that have no sense at the moment are ignored.
    fn relay_batch(&self, lines: &str) {
        let mut batch = Command::new("ip");
        batch.args(["-n", &self.network.0[Side::Relay as usize], "-force", "-batch", "-"]);
        let mut batch = batch.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        batch.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        batch.wait().unwrap();
    }

    fn set_neighbour(&self, address: &str, interface: &str, mac: [u8; 6], state: &str) {
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        self.relay(&format!("neigh replace {address} dev {interface} lladdr {mac} nud {state}"));
    }

    fn neighbour_states(&self) -> String {
        let output = Command::new("ip").args(["-n", &self.network.0[Side::Relay as usize], "neigh"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn process(&mut self) -> Vec<HopEvent> {
        self.process_at(NOW)
    }

    fn process_at(&mut self, now: Nanos) -> Vec<HopEvent> {
        let mut events = Vec::new();
        self.hops.process(now, &mut events).unwrap();
        events
    }

    /// Waits for notifications until an event satisfies `is_wanted`; returns all events until then.
    fn wait_for(&mut self, is_wanted: impl Fn(&HopEvent) -> bool) -> Vec<HopEvent> {
        let end = Instant::now() + PATIENCE;
        let mut events = Vec::new();
        loop {
            events.extend(self.process());
            if events.iter().any(&is_wanted) {
                return events;
            }
            let left = end.saturating_duration_since(Instant::now());
            let is_readable = wait(&self.hops, left);
            assert!(is_readable, "no such event: {events:?}\n{}", self.neighbour_states());
        }
    }

    /// Waits until a slot has a state.
    fn wait_for_state(&mut self, slot: u16, state: Result<NextHop, Refusal>) -> Vec<HopEvent> {
        let events = self.wait_for(|event| *event == HopEvent::HopChanged(Hop { slot, state }));
        assert_eq!(self.hops.hop(slot).state, state);
        events
    }

    fn resolve(&mut self, pair: AddressPair) -> Result<NextHop, Refusal> {
        self.hops.resolve(pair)
    }

    fn acquire(&mut self, pair: AddressPair) -> Hop {
        self.hops.acquire(pair, NOW).unwrap()
    }
}

/// Waits until a notification arrives; returns `false` if none does.
fn wait(hops: &NextHops, patience: Duration) -> bool {
    let mut polled = [PollFd::new(hops.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::try_from(patience).unwrap()).unwrap() != 0
}

fn pair(source: &str, destination: &str) -> AddressPair {
    AddressPair { source: address(source), destination: address(destination) }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const fn hop((_, to): (u32, [u8; 6]), (ifindex, from): (u32, [u8; 6]), mtu: u16) -> NextHop {
    NextHop { to, from, ifindex, mtu }
}

const TO_CLIENT: NextHop = hop(CLIENT, TOWARD_CLIENT, 1500);
const TO_PEER: NextHop = hop(PEER, TOWARD_PEER, 1500);

/// Source and on-link destination toward the peer, a remote prefix and an address in it, and the `ip` flag.
const FAMILIES: [[&str; 5]; 2] = [
    ["10.92.0.2", "10.92.0.1", "10.200.0.0/16", "10.200.1.2", "-4"],
    ["2001:db8:92::2", "2001:db8:92::1", "2001:db8:200::/48", "2001:db8:200::12", "-6"],
];

#[test]
fn a_neighbour_on_the_link_and_one_behind_a_gateway_have_hops() {
    let Some(mut scene) = Scene::require() else { return };
    for [source, gateway, prefix, remote, flag] in FAMILIES {
        assert_eq!(scene.resolve(pair(source, gateway)), Ok(TO_PEER));
        assert_eq!(scene.resolve(pair(source, remote)), Err(Refusal::Unreachable));
        scene.relay(&format!("{flag} route add {prefix} via {gateway}"));
        assert_eq!(scene.resolve(pair(source, remote)), Ok(TO_PEER), "its notification still waits");
        let on_link = scene.acquire(pair(source, gateway));
        let through_gateway = scene.acquire(pair(source, remote));
        // The gateway and the neighbour are the same hop.
        assert_eq!(on_link, through_gateway);
        assert_eq!(on_link.state, Ok(TO_PEER));
        assert_eq!(scene.acquire(pair(source, gateway)), on_link);
    }
    assert_eq!(scene.resolve(pair("10.91.0.2", "10.91.0.1")), Ok(TO_CLIENT));
    assert_eq!(scene.resolve(pair("2001:db8:91::2", "2001:db8:91::1")), Ok(TO_CLIENT));
}

#[test]
fn each_uncertain_destination_is_refused_by_name() {
    let Some(mut scene) = Scene::require() else { return };
    for line in [
        "-4 route add 10.201.0.0/16 nexthop via 10.92.0.1 nexthop via 10.91.0.1",
        "-6 route add 2001:db8:201::/48 nexthop via 2001:db8:92::1 nexthop via 2001:db8:91::1",
        "-4 route add 10.202.0.0/16 via 10.92.0.1",
        "-4 route append 10.202.0.0/16 via 10.92.0.9",
        "-6 route add 2001:db8:202::/48 dev r13",
        "-6 route append 2001:db8:202::/48 dev r11",
        "-4 route add blackhole 10.203.0.0/16",
        "-6 route add blackhole 2001:db8:203::/48",
        "-4 route add prohibit 10.204.0.0/16",
        "-6 route add unreachable 2001:db8:204::/48",
        "nexthop add id 5 via 10.92.0.1 dev r13",
        "-4 route add 10.205.0.0/16 nhid 5",
        "link add v15 index 15 type veth peer name v16 index 16",
        "link set v15 up arp off",
        "link set v16 up",
        "-4 route add 10.206.0.0/16 dev v15",
        "-6 route add 2001:db8:206::/48 dev v15",
        "-4 route add 10.207.0.0/16 dev lo",
    ] {
        scene.relay(line);
    }
    scene.process();
    for (destination, destination6, refusal) in [
        ("10.201.1.1", "2001:db8:201::1", Refusal::Multipath),
        ("10.202.1.1", "2001:db8:202::1", Refusal::Ambiguous),
        ("10.203.1.1", "2001:db8:203::1", Refusal::Unreachable),
        ("10.204.1.1", "2001:db8:204::1", Refusal::Unreachable),
        ("10.206.1.1", "2001:db8:206::1", Refusal::NotAttached),
        ("10.91.0.2", "2001:db8:91::2", Refusal::Local),
        ("127.0.0.1", "::1", Refusal::Local),
        ("169.254.1.1", "fe80::1", Refusal::LinkLocal),
        ("10.92.0.77", "2001:db8:92::77", Refusal::NoNeighbour),
        ("10.250.0.1", "2001:db9::1", Refusal::Unreachable),
    ] {
        assert_eq!(scene.resolve(pair("10.92.0.2", destination)), Err(refusal), "{destination}");
        assert_eq!(scene.resolve(pair("2001:db8:92::2", destination6)), Err(refusal), "{destination6}");
    }
    let more = [
        ("10.92.0.2", "10.205.1.1", Refusal::NexthopObject),
        ("10.92.0.2", "10.92.0.255", Refusal::NotUnicast),
        ("10.92.0.3", "10.92.0.1", Refusal::Source),
        ("2001:db8:92::3", "2001:db8:92::1", Refusal::Source),
        ("10.92.0.2", "2001:db8:92::1", Refusal::Family),
    ];
    for (source, destination, refusal) in more {
        assert_eq!(scene.resolve(pair(source, destination)), Err(refusal), "{destination}");
    }
    scene.hops.attach(15);
    scene.hops.attach(1);
    assert_eq!(scene.resolve(pair("10.92.0.2", "10.206.1.1")), Err(Refusal::NotEthernet), "it asks no neighbour");
    assert_eq!(scene.resolve(pair("10.92.0.2", "10.207.1.1")), Err(Refusal::Loopback));
    // A refusal counts no user.
    assert_eq!(scene.hops.acquire(pair("10.92.0.2", "10.201.1.1"), NOW), Err(Refusal::Multipath));
    scene.relay("-4 route replace 10.201.0.0/16 via 10.92.0.1");
    scene.process();
    assert_eq!(scene.acquire(pair("10.92.0.2", "10.201.1.1")).slot, 0);
}

#[test]
fn a_neighbour_that_changes_is_followed() {
    let Some(mut scene) = Scene::require() else { return };
    for (slot, [source, gateway, ..]) in (0..).zip(FAMILIES) {
        assert_eq!(scene.acquire(pair(source, gateway)), Hop { slot, state: Ok(TO_PEER) });
        scene.set_neighbour(gateway, "r13", OTHER_MAC, "permanent");
        let moved = NextHop { to: OTHER_MAC, ..TO_PEER };
        let events = scene.wait_for_state(slot, Ok(moved));
        assert_eq!(events.len(), 1, "{events:?}");
        scene.relay(&format!("neigh replace {gateway} dev r13 nud failed"));
        scene.wait_for_state(slot, Err(Refusal::NeighbourFailed));
        scene.relay(&format!("neigh del {gateway} dev r13"));
        scene.wait_for_state(slot, Err(Refusal::NoNeighbour));
        scene.set_neighbour(gateway, "r13", PEER.1, "reachable");
        scene.wait_for_state(slot, Ok(TO_PEER));
        // Another neighbour, and the same address on another interface, are of no interest.
        scene.set_neighbour("10.92.0.66", "r13", OTHER_MAC, "permanent");
        scene.set_neighbour(gateway, "r11", OTHER_MAC, "permanent");
        assert_eq!(scene.process(), []);
    }
}

#[test]
fn a_pair_without_a_neighbour_becomes_valid_when_the_kernel_has_one() {
    let Some(mut scene) = Scene::require() else { return };
    let hop = scene.acquire(pair("10.92.0.2", "10.92.0.50"));
    assert_eq!(hop.state, Err(Refusal::NoNeighbour));
    scene.set_neighbour("10.92.0.50", "r13", OTHER_MAC, "stale");
    scene.wait_for_state(hop.slot, Ok(NextHop { to: OTHER_MAC, ..TO_PEER }));
}

#[test]
fn a_link_without_carrier_is_invalid_until_it_is_back() {
    let Some(mut scene) = Scene::require() else { return };
    let slots = FAMILIES.map(|[source, gateway, ..]| scene.acquire(pair(source, gateway)).slot);
    let other = scene.acquire(pair("10.91.0.2", "10.91.0.1"));
    let peer_end = format!("-n {} link set f14", scene.network.0[Side::Peer as usize]);
    run("ip", &format!("{peer_end} down")).unwrap();
    scene.wait_for_state(slots[0], Err(Refusal::LinkDown));
    assert_eq!(scene.hops.hop(slots[1]).state, Err(Refusal::LinkDown));
    assert_eq!(scene.hops.hop(other.slot).state, Ok(TO_CLIENT));
    run("ip", &format!("{peer_end} up")).unwrap();
    scene.wait_for_state(slots[0], Ok(TO_PEER));
}

#[test]
fn a_link_that_is_set_down_takes_its_routes_along() {
    let Some(mut scene) = Scene::require() else { return };
    let all = FAMILIES.map(|[source, gateway, ..]| pair(source, gateway));
    let slots = all.map(|pair| scene.acquire(pair).slot);
    scene.relay("link set r13 down");
    let events = scene.process();
    for (slot, pair) in slots.into_iter().zip(all) {
        // The kernel does not notify that the route of IPv4 is gone.
        let refusal = Some(scene.resolve(pair).unwrap_err());
        assert!(events.contains(&HopEvent::RouteChanged { pair, slot, refusal }), "{events:?}");
        assert!(scene.hops.hop(slot).state.is_err());
    }
    assert_eq!(scene.process(), [], "everything was reported at once");
    scene.relay("link del r13");
    scene.process();
    for slot in slots {
        assert!(scene.hops.hop(slot).state.is_err());
    }
}

#[test]
fn a_changed_link_changes_its_hops() {
    let Some(mut scene) = Scene::require() else { return };
    let [v4, v6] = FAMILIES.map(|[source, gateway, ..]| scene.acquire(pair(source, gateway)).slot);
    scene.relay("link set r13 mtu 1300");
    scene.wait_for_state(v4, Ok(NextHop { mtu: 1300, ..TO_PEER }));
    scene.relay("link set r13 mtu 1400");
    let smaller = NextHop { mtu: 1400, ..TO_PEER };
    scene.wait_for_state(v4, Ok(smaller));
    assert_eq!(scene.hops.hop(v6).state, Ok(smaller));
    // The kernel forgets the neighbours of an interface that gets another address.
    scene.relay("link set r13 address 02:00:00:00:00:77");
    scene.wait_for_state(v4, Err(Refusal::NoNeighbour));
    for [_, gateway, ..] in FAMILIES {
        scene.set_neighbour(gateway, "r13", PEER.1, "permanent");
    }
    let smaller = NextHop { from: OTHER_MAC, ..smaller };
    scene.wait_for_state(v4, Ok(smaller));
    // A router may announce a smaller MTU for IPv6.
    let name = &scene.network.0[Side::Relay as usize];
    run("ip", &format!("netns exec {name} sysctl -qw net.ipv6.conf.r13.mtu=1300")).unwrap();
    scene.process_at(Nanos(NOW.0 + 15 * Nanos::PER_SECOND));
    assert_eq!(scene.hops.hop(v6).state, Ok(NextHop { mtu: 1300, ..smaller }));
    assert_eq!(scene.hops.hop(v4).state, Ok(smaller));
}

#[test]
fn the_mtu_of_a_route_is_that_of_its_hop() {
    let Some(mut scene) = Scene::require() else { return };
    for [source, gateway, prefix, remote, flag] in FAMILIES {
        scene.relay(&format!("{flag} route add {prefix} via {gateway} mtu 1350"));
        scene.process();
        let (near, far) = (scene.acquire(pair(source, gateway)), scene.acquire(pair(source, remote)));
        assert_eq!((near.state, far.state), (Ok(TO_PEER), Ok(NextHop { mtu: 1350, ..TO_PEER })));
        assert_ne!(near.slot, far.slot);
    }
}

#[test]
fn a_route_to_another_gateway_is_reported_and_acquired_again() {
    let Some(mut scene) = Scene::require() else { return };
    for [source, gateway, prefix, remote, flag] in FAMILIES {
        let other_gateway = gateway.replace("92", "91");
        scene.relay(&format!("{flag} route add {prefix} via {gateway}"));
        scene.process();
        let (near, far) = (pair(source, gateway), pair(source, remote));
        let slot = scene.acquire(far).slot;
        assert_eq!([scene.acquire(far).slot, scene.acquire(near).slot], [slot; 2]);
        scene.relay(&format!("{flag} route replace {prefix} via {other_gateway}"));
        let events = scene.process();
        assert!(events.contains(&HopEvent::RouteChanged { pair: far, slot, refusal: None }), "{events:?}");
        let invalid = Hop { slot, state: Err(Refusal::Changing) };
        assert!(events.contains(&HopEvent::HopChanged(invalid)) && events.len() == 2, "{events:?}");
        // Until both users have gone, the old slot is invalid, and the pair has no new one.
        assert_eq!(scene.hops.acquire(far, NOW), Err(Refusal::Changing));
        scene.hops.release(far, NOW);
        assert_eq!(scene.process(), []);
        assert_eq!(scene.hops.hop(slot).state, Err(Refusal::Changing));
        scene.hops.release(far, NOW);
        let valid = Hop { slot, state: Ok(TO_PEER) };
        assert_eq!(scene.process(), [HopEvent::HopChanged(valid)]);
        let moved = scene.acquire(far);
        assert_ne!(moved.slot, slot);
        assert_eq!(moved.state, Ok(TO_CLIENT));
        // A more specific route is a change too; one to elsewhere is not.
        scene.relay(&format!("{flag} route add {remote} via {gateway}"));
        assert!(scene.process().contains(&HopEvent::RouteChanged { pair: far, slot: moved.slot, refusal: None }));
        scene.hops.release(far, NOW);
        scene.relay(&format!("{flag} route del {prefix} via {other_gateway}"));
        assert_eq!(scene.process(), []);
        // The last route goes.
        assert_eq!(scene.acquire(far).slot, slot);
        scene.relay(&format!("{flag} route del {remote} via {gateway}"));
        let refusal = Some(Refusal::Unreachable);
        assert!(scene.process().contains(&HopEvent::RouteChanged { pair: far, slot, refusal }));
    }
}

#[test]
fn a_policy_rule_refuses_its_family() {
    let Some(mut scene) = Scene::require() else { return };
    for (slot, [source, gateway, .., flag]) in (0..).zip(FAMILIES) {
        let pair = pair(source, gateway);
        assert_eq!(scene.acquire(pair).slot, slot);
        scene.relay(&format!("{flag} rule add fwmark 7 lookup main"));
        let refusal = Some(Refusal::Rules);
        assert!(scene.process().contains(&HopEvent::RouteChanged { pair, slot, refusal }));
        assert_eq!(scene.resolve(pair), Err(Refusal::Rules));
        scene.relay(&format!("{flag} rule del fwmark 7 lookup main"));
        scene.process();
        assert_eq!(scene.resolve(pair), Ok(TO_PEER));
    }
}

#[test]
fn a_route_that_becomes_ambiguous_or_multipath_is_reported() {
    let Some(mut scene) = Scene::require() else { return };
    for [source, gateway, prefix, remote, flag] in FAMILIES {
        let other_gateway = gateway.replace("92", "91");
        scene.relay(&format!("{flag} route add {prefix} dev r13 metric 9"));
        scene.process();
        let pair = pair(source, remote);
        let changed = |scene: &mut Scene, line: String, refusal| {
            let slot = scene.acquire(pair).slot;
            scene.relay(&line);
            let events = scene.process();
            assert!(events.contains(&HopEvent::RouteChanged { pair, slot, refusal: Some(refusal) }), "{events:?}");
            scene.hops.release(pair, NOW);
        };
        changed(&mut scene, format!("{flag} route append {prefix} dev r11 metric 9"), Refusal::Ambiguous);
        scene.relay(&format!("{flag} route del {prefix} dev r11"));
        scene.process();
        let next_hops = format!("nexthop via {gateway} nexthop via {other_gateway}");
        changed(&mut scene, format!("{flag} route add {prefix} metric 8 {next_hops}"), Refusal::Multipath);
    }
}

#[test]
fn an_address_that_goes_takes_its_pairs_along() {
    let Some(mut scene) = Scene::require() else { return };
    for (slot, [_, gateway, .., flag]) in (0..).zip(FAMILIES) {
        let source = if flag == "-4" { "10.77.0.2" } else { "2001:db8:77::2" };
        scene.relay(&format!("{flag} addr add {source} dev r13 {}", if flag == "-4" { "" } else { "nodad" }));
        let pair = pair(source, gateway);
        scene.wait_for_source(pair);
        assert_eq!(scene.acquire(pair), Hop { slot, state: Ok(TO_PEER) });
        scene.relay(&format!("{flag} addr del {source} dev r13"));
        let refusal = Some(Refusal::Source);
        assert!(scene.process().contains(&HopEvent::RouteChanged { pair, slot, refusal }));
    }
}

/// Older kernels do not notify that a route of IPv4 goes with the address that it prefers.
#[test]
fn an_address_that_goes_takes_the_routes_along_that_prefer_it() {
    let Some(mut scene) = Scene::require() else { return };
    scene.relay("-4 addr add 10.77.0.2 dev r13");
    scene.relay("-4 route add 10.200.0.0/16 via 10.92.0.1 src 10.77.0.2");
    scene.process();
    let pair = pair("10.92.0.2", "10.200.1.2");
    assert_eq!(scene.acquire(pair), Hop { slot: 0, state: Ok(TO_PEER) });
    scene.relay("-4 addr del 10.77.0.2 dev r13");
    let refusal = Some(Refusal::Unreachable);
    assert!(scene.process().contains(&HopEvent::RouteChanged { pair, slot: 0, refusal }));
}

#[test]
fn a_change_without_a_notification_is_found_after_15_s() {
    let Some(mut scene) = Scene::require() else { return };
    scene.relay("-4 route add 10.200.0.0/16 via 10.91.0.1 metric 1");
    scene.relay("-4 route add 10.200.0.0/16 via 10.92.0.1 metric 2");
    let pair = pair("10.92.0.2", "10.200.1.2");
    assert_eq!(scene.acquire(pair), Hop { slot: 0, state: Ok(TO_CLIENT) });
    run("ip", &format!("-n {} link set f12 down", scene.network.0[Side::Client as usize])).unwrap();
    scene.wait_for_state(0, Err(Refusal::LinkDown));
    let name = &scene.network.0[Side::Relay as usize];
    run("ip", &format!("netns exec {name} sysctl -qw net.ipv4.conf.r11.ignore_routes_with_linkdown=1")).unwrap();
    let events = scene.process_at(Nanos(NOW.0 + 15 * Nanos::PER_SECOND));
    assert!(events.contains(&HopEvent::RouteChanged { pair, slot: 0, refusal: None }), "{events:?}");
}

#[test]
fn a_detached_interface_has_no_hops() {
    let Some(mut scene) = Scene::require() else { return };
    let pair = pair("10.92.0.2", "10.92.0.1");
    let slot = scene.acquire(pair).slot;
    scene.hops.detach(TOWARD_PEER.0).unwrap();
    assert_eq!(scene.hops.hop(slot).state, Err(Refusal::Changing));
    assert_eq!(scene.hops.deadline(), Nanos(0), "the pair waits for an answer");
    let refusal = Some(Refusal::NotAttached);
    assert!(scene.process().contains(&HopEvent::RouteChanged { pair, slot, refusal }));
    assert_eq!(scene.hops.deadline(), Nanos(NOW.0 + 15 * Nanos::PER_SECOND));
}

/// The relay's entries for the peer are stale; each confirmation is due after 15 s.
#[test]
fn neighbours_in_use_are_kept_alive() {
    let Some(mut scene) = Scene::require() else { return };
    let pairs = FAMILIES.map(|[source, gateway, ..]| pair(source, gateway));
    for AddressPair { destination, .. } in pairs {
        scene.set_neighbour(&destination.to_string(), "r13", PEER.1, "stale");
    }
    pairs.into_iter().for_each(|pair| assert_eq!(scene.acquire(pair).state, Ok(TO_PEER)));
    scene.set_neighbour("10.92.0.60", "r13", OTHER_MAC, "stale");
    scene.process();
    scene.process_at(Nanos(NOW.0 + 15 * Nanos::PER_SECOND - 1));
    let state = |scene: &Scene, address: &str| {
        let states = scene.neighbour_states();
        let line = states.lines().find(|line| line.starts_with(&format!("{address} dev r13 ")));
        line.unwrap().split_whitespace().last().unwrap().to_owned()
    };
    let is_confirming = |state: &str| ["DELAY", "PROBE", "REACHABLE"].contains(&state);
    for AddressPair { destination, .. } in pairs {
        assert_eq!(state(&scene, &destination.to_string()), "STALE", "it is too early");
    }
    scene.process_at(Nanos(NOW.0 + 15 * Nanos::PER_SECOND));
    for AddressPair { destination, .. } in pairs {
        let state = state(&scene, &destination.to_string());
        assert!(is_confirming(&state), "{state}");
    }
    assert_eq!(state(&scene, "10.92.0.60"), "STALE", "it is not in use");
    // NTF_USE would make an ordinary entry of a permanent one.
    scene.set_neighbour("10.92.0.1", "r13", PEER.1, "permanent");
    scene.process_at(Nanos(NOW.0 + 31 * Nanos::PER_SECOND));
    assert_eq!(state(&scene, "10.92.0.1"), "PERMANENT");
}

#[test]
fn an_interface_is_described_with_its_driver() {
    let Some(network) = require(Requirement::NetNamespace, Network::make()) else { return };
    let [veth, loopback, missing] =
        network.on(Side::Relay, || ["r13", "lo", "r99"].map(tt_path::drivers::Device::read));
    let veth = veth.unwrap();
    let interface = Interface { name: "r13".to_owned(), index: TOWARD_PEER.0, mac: TOWARD_PEER.1, redirects: true };
    assert_eq!((veth.interface, veth.driver.as_deref(), veth.mtu), (interface, Some("veth"), 1500));
    assert_eq!(loopback.unwrap().native_use().native, NativeUse::Never);
    let error = missing.unwrap_err();
    assert!(error.to_string().contains("there is no interface r99"), "{error}");
}

/// The second part runs in a process that gives its privileges up for a time.
#[test]
fn without_cap_net_admin_a_stale_neighbour_is_left_to_the_sockets() {
    let Some(()) = require(Requirement::Privilege, in_kernel::root()) else { return };
    let Some(mut scene) = Scene::require() else { return };
    if std::env::var_os(in_kernel::CHILD).is_none() {
        let test = "next_hops::without_cap_net_admin_a_stale_neighbour_is_left_to_the_sockets";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", test, "--nocapture"]).env(in_kernel::CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("confirmed with privileges only"), "{text}");
    } else {
        scene.set_neighbour("10.92.0.1", "r13", PEER.1, "stale");
        let slot = scene.acquire(pair("10.92.0.2", "10.92.0.1")).slot;
        let other = scene.acquire(pair("10.91.0.2", "10.91.0.1")).slot;
        let root = Uid::from_raw(0);
        setresuid(in_kernel::NOBODY, in_kernel::NOBODY, root).unwrap();
        let mut events = Vec::new();
        let error = scene.hops.process(Nanos(NOW.0 + 15 * Nanos::PER_SECOND), &mut events).unwrap_err();
        assert!(matches!(error, PathError::Netlink { step: "keep alive", os: Some(1) }), "{error}");
        let stale = Hop { slot, state: Err(Refusal::NeighbourStale) };
        assert_eq!(events, [HopEvent::HopChanged(stale)]);
        assert_eq!(scene.hops.hop(other).state, Ok(TO_CLIENT));
        setresuid(root, root, root).unwrap();
        let events = scene.process_at(Nanos(NOW.0 + 30 * Nanos::PER_SECOND));
        assert_eq!(events, [HopEvent::HopChanged(Hop { slot, state: Ok(TO_PEER) })]);
        eprintln!("confirmed with privileges only");
    }
}

/// Random changes, a few at a time; after each group, what is kept is what a fresh instance finds out.
#[test]
fn after_random_changes_the_kept_hops_are_those_that_the_kernel_gives() {
    const OPERATIONS: [&str; 24] = [
        "route add 10.200.0.0/16 via 10.92.0.1",
        "route del 10.200.0.0/16",
        "route replace 10.200.0.0/16 via 10.91.0.1",
        "route append 10.200.0.0/16 via 10.92.0.9",
        "route add 10.200.1.0/24 via 10.92.0.1 mtu 1300",
        "route del 10.200.1.0/24",
        "route replace 10.200.0.0/16 nexthop via 10.92.0.1 nexthop via 10.91.0.1",
        "route add blackhole 10.200.1.2",
        "route del blackhole 10.200.1.2",
        "route add 2001:db8:200::/48 via 2001:db8:92::1",
        "route del 2001:db8:200::/48",
        "route append 2001:db8:200::/48 dev r11",
        "route replace 2001:db8:200::/48 via 2001:db8:91::1",
        "rule add from 10.92.0.2 lookup 100 pref 50",
        "rule del from 10.92.0.2 pref 50",
        "rule add from 2001:db8:92::2 lookup 100 pref 50",
        "rule del from 2001:db8:92::2 pref 50",
        "neigh replace 10.92.0.1 dev r13 lladdr 02:00:00:00:00:77 nud permanent",
        "neigh replace 10.92.0.1 dev r13 lladdr 02:00:00:00:00:14 nud permanent",
        "neigh del 10.92.0.1 dev r13",
        "neigh replace 2001:db8:92::1 dev r13 lladdr 02:00:00:00:00:14 nud permanent",
        "neigh del 2001:db8:92::1 dev r13",
        "link set r13 mtu 1400",
        "link set r13 mtu 1500",
    ];
    let Some(mut scene) = Scene::require() else { return };
    let pairs = FAMILIES.map(|[source, gateway, _, remote, _]| [pair(source, gateway), pair(source, remote)]);
    let pairs = pairs.as_flattened();
    let mut acquired = vec![None; pairs.len()];
    let mut random = SplitMix64::new(5);
    let (mut valid, mut invalid, mut refused, mut changed) = (0, 0, 0, 0);
    for _ in 0..300 {
        let lines: String = (0..=random.index(3)).map(|_| format!("{}\n", OPERATIONS[random.index(24)])).collect();
        scene.relay_batch(&lines);
        for event in scene.process() {
            let HopEvent::RouteChanged { pair, .. } = event else { continue };
            changed += 1;
            scene.hops.release(pair, NOW);
            acquired[pairs.iter().position(|other| *other == pair).unwrap()] = None;
        }
        let writer = scene.paths.writer().unwrap();
        let mut fresh = scene.network.on(Side::Relay, || NextHops::open(writer).unwrap());
        [TOWARD_CLIENT, TOWARD_PEER].iter().for_each(|(index, _)| fresh.attach(*index));
        // A hop that was invalid because of another pair is valid again.
        scene.process();
        for (pair, acquired) in pairs.iter().zip(&mut acquired) {
            let expected = fresh.resolve(*pair);
            if acquired.is_none() {
                *acquired = scene.hops.acquire(*pair, NOW).ok();
            }
            match acquired {
                Some(Hop { slot, .. }) => assert_eq!(scene.hops.hop(*slot).state, expected, "{pair:?} after {lines}"),
                None => assert!(expected.is_err(), "{pair:?} after {lines}: {expected:?}"),
            }
            valid += usize::from(expected.is_ok());
            invalid += usize::from(acquired.is_some() && expected.is_err());
            refused += usize::from(acquired.is_none());
        }
    }
    let counts = [valid, invalid, refused, changed];
    assert!(counts.iter().all(|count| *count >= 10), "valid, invalid, refused, changed: {counts:?}");
}

/// More notifications than the socket holds, of an entry that is of no interest: the kernel drops the last ones.
#[test]
fn lost_notifications_are_made_up_for() {
    let Some(mut scene) = Scene::require() else { return };
    let slot = scene.acquire(pair("10.92.0.2", "10.92.0.1")).slot;
    let line = |at: usize| format!("neigh replace 10.92.0.66 dev r13 lladdr 02:00:00:00:01:{at:02x} nud permanent\n");
    let lines: String = (0..4_000).map(|at| line(at % 2)).collect();
    scene.relay_batch(&lines);
    scene.set_neighbour("10.92.0.1", "r13", OTHER_MAC, "permanent");
    let moved = Hop { slot, state: Ok(NextHop { to: OTHER_MAC, ..TO_PEER }) };
    assert_eq!(scene.process(), [HopEvent::HopChanged(moved)]);
}

/// Datagrams leave to the Ethernet address that the kernel's neighbour table has.
#[test]
fn relayed_datagrams_leave_by_the_hops() {
    let Some(scene) = namespaces::Scene::require("off") else { return };
    let mut writer = scene.paths.writer().unwrap();
    for slot in 0..2 {
        writer.set_hop(slot, None).unwrap();
    }
    for is_ip4 in [true, false] {
        assert_eq!(scene.exchange(is_ip4, 10), [10, 10], "without hops, sockets have everything");
    }
    let mut hops = scene.network.on(Side::Relay, || NextHops::open(writer).unwrap());
    hops.attach(TOWARD_CLIENT.0);
    hops.attach(TOWARD_PEER.0);
    // The sockets have resolved the neighbours. The scene's paths have the slots 0 and 1.
    let to_peer = hops.acquire(pair("10.92.0.2", "10.92.0.1"), NOW).unwrap();
    let to_client = hops.acquire(pair("10.91.0.2", "10.91.0.1"), NOW).unwrap();
    assert_eq!(to_peer, Hop { slot: 0, state: Ok(TO_PEER) });
    assert_eq!(to_client, Hop { slot: 1, state: Ok(TO_CLIENT) });
    assert_eq!(scene.exchange(true, 100), [64, 64], "the first 64 prove the interfaces");
    // The peer gets another Ethernet address, and its frames are no longer for the old one.
    let [_, relay, peer] = &scene.network.0;
    run("ip", &format!("-n {peer} link set f14 address 02:00:00:00:00:77")).unwrap();
    run("ip", &format!("-n {relay} neigh replace 10.92.0.1 dev r13 lladdr 02:00:00:00:00:77 nud reachable")).unwrap();
    let mut events = Vec::new();
    hops.process(NOW, &mut events).unwrap();
    assert_eq!(events, [HopEvent::HopChanged(Hop { slot: 0, state: Ok(NextHop { to: OTHER_MAC, ..TO_PEER }) })]);
    assert_eq!(scene.exchange(true, 100), [0, 0]);
    run("ip", &format!("-n {relay} neigh del 10.91.0.1 dev r11")).unwrap();
    hops.process(NOW, &mut events).unwrap();
    assert_eq!(hops.hop(1).state, Err(Refusal::NoNeighbour));
    assert_eq!(scene.exchange(true, 10), [0, 10], "without a neighbour, the socket has everything");
    // A datagram of a socket resolves the neighbour again.
    let socket = scene.network.socket(Side::Relay, "10.91.0.2:0".parse().unwrap());
    socket.send_to(b"datagram", "10.91.0.1:9").unwrap();
    while hops.hop(1).state.is_err() {
        assert!(wait(&hops, PATIENCE), "the neighbour does not answer");
        hops.process(NOW, &mut events).unwrap();
    }
    assert_eq!(hops.hop(1).state, Ok(TO_CLIENT));
    assert_eq!(scene.exchange(true, 100), [0, 0]);
    hops.release(pair("10.92.0.2", "10.92.0.1"), NOW);
    hops.process(NOW, &mut events).unwrap();
    assert_eq!(scene.exchange(true, 10), [10, 0], "a slot without users is invalid");
}
