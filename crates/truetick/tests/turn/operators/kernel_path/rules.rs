//! Every rule of the server holds for a path that was open before the rule: own host, deny, allow, bans, orders, quotas.

use std::net::SocketAddr;

use super::scene::{CHANNEL, CLIENT, IPV4, LEN, Scene};
use crate::operators::namespaces::ip;
use crate::operators::operated::wait;

const NO_TCP: &str = "no_tcp = true";

#[test]
fn a_reload_that_denies_the_peer_cuts_the_kernel_off() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.reload(NO_TCP, "no_tcp = true\ndeny_peer = [\"10.93.0.0/24\"]");
    scene.assert_cut_off();
    assert_eq!(scene.client.bind_channel(CHANNEL, scene.peer.local_addr().unwrap()), 403);
}

/// A rule about ports of a peer's address leaves the packets to the sockets, which know the ports.
#[test]
fn a_reload_that_denies_a_port_of_the_peer_leaves_the_rest_to_the_sockets() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.reload(NO_TCP, "no_tcp = true\ndeny_peer = [\"10.93.0.0/24:0-1023\"]");
    wait("the path is closed", || scene.metric("truetick_turn_paths") == 0);
    scene.relay_out();
    scene.relay_back();
    scene.reload("deny_peer = [\"10.93.0.0/24:0-1023\"]", "");
    wait("the path is open", || scene.metric("truetick_turn_paths") == 1);
    scene.wait_for_kernel();
}

#[test]
fn a_reload_without_the_allowance_of_the_peer_cuts_the_kernel_off() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.reload("allow_peer = [\"10.0.0.0/8\"]", "");
    scene.assert_cut_off();
}

/// The peer's address becomes one of this host.
#[test]
fn an_address_that_becomes_this_hosts_cuts_the_kernel_off() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.ip("addr add 10.93.0.2/32 dev c0");
    let peer = scene.peer.local_addr().unwrap();
    wait("the address is denied", || scene.client.bind_channel(CHANNEL, peer) == 403);
    scene.assert_cut_off();
}

#[test]
fn a_ban_of_the_source_cuts_the_kernel_off() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let mut other = scene.other_client("10.91.0.3", "ann");
    other.allocate().unwrap();
    assert_eq!(scene.order("PUT", "/api/v1/turn/bans/10.91.0.1"), 200);
    scene.assert_cut_off();
    assert_eq!(other.refresh(600), 0, "the next address is not banned");
}

#[test]
fn orders_that_end_allocations_cut_the_kernel_off() {
    for by_user in [true, false] {
        let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
        let path = if by_user { "users/ann".to_owned() } else { format!("allocations/{}", scene.relayed) };
        assert_eq!(scene.order("DELETE", &format!("/api/v1/turn/{path}")), 200, "{path}");
        scene.assert_cut_off();
    }
}

/// A drain refuses new allocations and leaves those that there are.
#[test]
fn a_drain_leaves_the_path_open_until_its_allocation_ends() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    assert_eq!(scene.order("POST", "/api/v1/turn/drain"), 200);
    scene.wait_for_kernel();
    assert!(scene.other_client("10.91.0.3", "bob").allocate().is_err());
    assert_eq!(scene.client.refresh(0), 0);
    scene.assert_cut_off();
}

/// Without `kick_removed_users` a removed user keeps what it has.
#[test]
fn a_removed_user_is_cut_off_if_the_operator_wants_that() {
    for is_kicked in [true, false] {
        let Some(mut scene) = Scene::require_proven(&IPV4, &format!("kick_removed_users = {is_kicked}")) else {
            return;
        };
        scene.server.rewrite("users", "bob:bob-secret\n");
        let line = scene.server.reload();
        assert!(line.contains("INFO"), "{line}");
        if is_kicked {
            scene.assert_cut_off();
        } else {
            scene.wait_for_kernel();
        }
    }
}

/// The program does not know the buckets of quotas.
#[test]
fn a_quota_of_traffic_leaves_everything_to_the_sockets_until_it_is_gone() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    for quota in ["user_bytes_per_second", "source_packets_per_second", "bytes_per_second"] {
        let key = format!("quotas.{quota} = 1000000");
        scene.reload(NO_TCP, &format!("no_tcp = true\n{key}"));
        wait("the path is closed", || scene.metric("truetick_turn_paths") == 0);
        let before = scene.kernel_relayed();
        scene.relay_out();
        scene.relay_back();
        assert_eq!(scene.kernel_relayed(), before, "{quota}");
        scene.reload(&key, "");
        wait("the path is open", || scene.metric("truetick_turn_paths") == 1);
        scene.wait_for_kernel();
    }
}

/// The relayed address of another client is a peer, and its packets stay with the server.
#[test]
fn two_clients_of_this_server_reach_each_other_by_sockets() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let mut other = scene.other_client("10.91.0.3", "bob");
    let relayed = other.allocate().unwrap();
    assert_eq!((scene.client.bind_channel(0x4001, relayed), other.bind_channel(0x4001, scene.relayed)), (0, 0));
    assert_eq!(scene.client.bind_channel(0x4002, "10.91.0.2:3478".parse().unwrap()), 403, "the listener");
    assert_eq!(scene.client.bind_channel(0x4002, "10.92.0.2:9".parse().unwrap()), 403, "no relayed address");
    let before = scene.kernel_relayed();
    for _ in 0..10 {
        scene.client.send_channel(0x4001, &[1; LEN]);
        assert_eq!(other.receive_channel(), (0x4001, vec![1; LEN]));
    }
    assert_eq!((scene.counted()[1], scene.metric("truetick_turn_paths")), (before, 1));
}

/// Whoever is not the client or the peer reaches the sockets, which drop it; the tables do not grow.
#[test]
fn strangers_and_unbound_channels_reach_nothing_and_fill_nothing() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let passed = |scene: &Scene| scene.metric("truetick_turn_path_passed_total{reason=\"no_flow\"}");
    let before = passed(&scene);
    let mut forger = scene.other_client("10.91.0.3", "bob");
    let silent = |scene: &Scene| {
        scene.peer.set_nonblocking(true).unwrap();
        let is_silent = scene.peer.recv(&mut [0; LEN]).is_err();
        scene.peer.set_nonblocking(false).unwrap();
        is_silent
    };
    for number in 0x4000..0x5000 {
        forger.send_channel(number, &[1; LEN]);
        if number != CHANNEL {
            scene.client.send_channel(number, &[2; LEN]);
        }
    }
    let stranger = scene.network.on(CLIENT, || std::net::UdpSocket::bind("10.91.0.3:0").unwrap());
    stranger.send_to(&[3; LEN], SocketAddr::new("10.92.0.2".parse().unwrap(), scene.relayed.port())).unwrap();
    wait("they are counted", || passed(&scene) > before + 2_000);
    let _ = (forger.binding(), scene.client.binding());
    assert!(silent(&scene) && scene.client.is_silent());
    assert_eq!(scene.metric("truetick_turn_paths"), 1);
    scene.wait_for_kernel();
}

/// A client may forge the one packet that fails a proof: the proof begins again.
#[test]
fn an_interface_is_proven_again_after_its_senders_are_right() {
    let Some(mut scene) = Scene::require("native", "on") else { return };
    scene.relay_out();
    scene.relay_back();
    let states = |scene: &Scene| scene.status()["interfaces"].to_string();
    wait("both proofs have failed", || {
        scene.relay_out();
        scene.relay_back();
        states(&scene).matches("unproven").count() == 2
    });
    for (place, device) in [(CLIENT, "s0"), (super::scene::ROUTER, "s0"), (super::scene::PEER, "r0")] {
        ip(&format!("netns exec {} ethtool -K {device} tx off", scene.network.names[place])).unwrap();
    }
    scene.wait_for_kernel();
    assert_eq!(states(&scene).matches("\"proven\"").count(), 2);
}
