//! What happens to the network below open paths.

use std::net::UdpSocket;
use std::process::Command;

use serde_json::Value;
use testkit::{Requirement, find_program, require};

use super::scene::{CHANNEL, CLIENT, IPV4, IPV6, LEN, ROUTER, SERVER, Scene};
use crate::operators::namespaces::ip;
use crate::operators::operated::{PATIENCE, wait};

const WAY: &str = "10.93.0.0/24 via 10.92.0.1";

#[test]
fn an_interface_that_goes_down_and_up_is_used_again() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.ip("link set r0 down");
    wait("the path is closed", || scene.metric("truetick_turn_paths") == 0);
    scene.ip("link set r0 up");
    scene.ip(&format!("route add {WAY}"));
    // What the sockets send makes the kernel look for its neighbour again.
    scene.relay_out();
    scene.wait_for_kernel();
}

#[test]
fn a_route_that_changes_is_followed() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.ip("route replace unreachable 10.93.0.0/24");
    wait("the path is closed", || scene.metric("truetick_turn_paths") == 0);
    scene.ip(&format!("route replace {WAY}"));
    wait("the path is open", || scene.metric("truetick_turn_paths") == 1);
    scene.wait_for_kernel();
}

/// A payload that does not fit the next hop goes to the sockets, whose packets the kernel may fragment.
#[test]
fn a_smaller_mtu_of_the_route_is_kept() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    scene.ip(&format!("route replace {WAY} mtu lock 600"));
    let passed = |scene: &Scene| scene.metric("truetick_turn_path_passed_total{reason=\"too_big\"}");
    scene.wait_for_kernel();
    let payload = vec![5; 1_000];
    wait("a payload is too big", || {
        scene.client.send_channel(CHANNEL, &payload);
        let mut received = [0; 2_000];
        let (length, _) = scene.peer.recv_from(&mut received).unwrap();
        assert_eq!(received[..length], payload);
        passed(&scene) > 0
    });
    scene.wait_for_kernel();
}

/// The router gets another Ethernet address, and says so.
#[test]
fn a_neighbour_that_changes_is_followed() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let router = scene.network.names[ROUTER].clone();
    ip(&format!("netns exec {router} sysctl -q -w net.ipv4.conf.s0.arp_notify=1")).unwrap();
    ip(&format!("-n {router} link set s0 address 02:00:00:00:00:77")).unwrap();
    scene.peer.set_nonblocking(true).unwrap();
    wait("a payload comes through", || {
        scene.client.send_channel(CHANNEL, &[7; 100]);
        scene.peer.recv(&mut [0; 200]).is_ok()
    });
    let _ = scene.client.binding();
    while scene.peer.recv(&mut [0; 200]).is_ok() {}
    scene.peer.set_nonblocking(false).unwrap();
    scene.wait_for_kernel();
}

/// `ip link set .. xdp off` does not remove a program that a process holds. Who detaches its link does, and the sockets
/// relay.
#[test]
fn a_program_that_another_one_detaches_leaves_the_relaying_to_the_sockets() {
    let Some(_) = require(Requirement::Program, find_program("bpftool", "bpftool")) else { return };
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let server = scene.network.names[SERVER].clone();
    assert!(ip(&format!("-n {server} link set dev c0 xdp off")).is_err(), "the kernel keeps it");
    scene.wait_for_kernel();
    let program = crate::server::program();
    let report = scene
        .network
        .on(SERVER, || Command::new(program).args(["doctor", "paths", "c0", "--json"]).output().unwrap().stdout);
    let report: Value = serde_json::from_slice(&report).unwrap();
    let number = &report["interfaces"][0]["program"]["id"];
    let bpftool = |words: &[&str]| scene.network.on(SERVER, || Command::new("bpftool").args(words).output().unwrap());
    let links: Value = serde_json::from_slice(&bpftool(&["-j", "link", "show"]).stdout).unwrap();
    let is_ours = |link: &&Value| link["prog_id"] == *number;
    // Links are numbered as they were made: that of c0 first.
    let link = links.as_array().unwrap().iter().find(is_ours).unwrap_or_else(|| panic!("{number}: {links}"));
    let detached = bpftool(&["link", "detach", "id", &link["id"].to_string()]);
    let proof_of = |scene: &Scene, name: &str| {
        let all = scene.status()["interfaces"].clone();
        let of = all.as_array().unwrap().iter().find(|interface| interface["name"] == name);
        of.unwrap_or_else(|| panic!("{name}: {all}"))["proof"].clone()
    };
    assert!(detached.status.success(), "{detached:?}");
    assert_eq!((&proof_of(&scene, "c0"), &proof_of(&scene, "r0")), (&"detached".into(), &"proven".into()));
    scene.server.wait_log("the kernel path was detached", 1);
    let before = scene.status()["to_peers"].clone();
    for _ in 0..100 {
        scene.relay_out();
        scene.relay_back();
    }
    assert_eq!(scene.status()["to_peers"], before, "the kernel relays nothing to peers");
    scene.ip("link del r0");
    scene.server.wait_log("the kernel path was detached", 2);
    assert_eq!(proof_of(&scene, "r0"), "detached");
}

/// The same way over IPv6, with both directions in the kernel.
#[test]
fn ipv6_is_relayed_in_the_kernel() {
    let Some(mut scene) = Scene::require_proven(&IPV6, "") else { return };
    scene.wait_for_kernel();
    assert_eq!(scene.client.refresh(0), 0);
    scene.assert_cut_off();
}

/// Clients and peers behind one interface: what arrives there leaves there.
#[test]
fn one_interface_is_enough_for_clients_and_peers() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let peer = scene.network.on(CLIENT, || UdpSocket::bind("10.91.0.3:0").unwrap());
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(scene.client.bind_channel(0x4001, peer.local_addr().unwrap()), 0);
    scene.client.send_channel(0x4001, &[1; LEN]);
    let (_, relayed) = peer.recv_from(&mut [0; LEN]).unwrap();
    wait("two paths", || scene.metric("truetick_turn_paths") == 2);
    let before = scene.counted()[1];
    for number in 0..50 {
        scene.client.send_channel(0x4001, &[number; LEN]);
        let mut received = [0; LEN];
        peer.recv(&mut received).unwrap();
        assert_eq!(received, [number; LEN]);
        peer.send_to(&[number; LEN], relayed).unwrap();
        assert_eq!(scene.client.receive_channel(), (0x4001, vec![number; LEN]));
    }
    wait("the kernel has relayed them", || scene.counted()[1] >= before + 90);
}
