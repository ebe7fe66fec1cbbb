//! The kernel path of the shipped program: client, server, router and peer in network namespaces.

mod changes;
mod clients;
mod doctor;
mod dump;
mod page;
mod rules;
pub(crate) mod scene;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::operated::wait;
use scene::{CHANNEL, LEN, PROOF, SERVER, Scene};

/// Both directions, with every payload counted once in the record of the allocation.
#[test]
fn the_kernel_relays_and_every_payload_is_counted_once() {
    let Some(mut scene) = Scene::require("native", "off") else { return };
    let mut sent = scene.prove();
    for _ in 0..500 {
        scene.relay_out();
        scene.relay_back();
        sent += 1;
    }
    wait("the kernel's share", || {
        let [to_peers, to_clients] =
            ["to_peers", "to_clients"].map(|way| format!("truetick_turn_path_packets_total{{direction=\"{way}\"}}"));
        scene.metric(&to_peers) >= 500 && scene.metric(&to_clients) >= 500
    });
    assert_eq!((scene.metric("truetick_turn_paths"), scene.metric("truetick_turn_path_write_failed_total")), (1, 0));
    // Close comes before the response: what is sent behind it goes nowhere.
    assert_eq!(scene.client.refresh(0), 0);
    assert_eq!(scene.metric("truetick_turn_paths"), 0);
    scene.client.send_channel(CHANNEL, &[7; LEN]);
    scene.peer.send_to(&[9; LEN], scene.relayed).unwrap();
    // What was relayed would be there before the response.
    let _ = scene.client.binding();
    assert!(scene.client.is_silent());
    let records = scene.server.folder().join("records");
    let end = || -> Option<Value> {
        let text = std::fs::read_to_string(&records).ok()?;
        let line = text.lines().find(|line| line.contains("packets_to_peers"))?;
        serde_json::from_str(line).ok()
    };
    wait("the record of the end", || end().is_some());
    let end = end().unwrap();
    for (packets, bytes) in [("packets_to_peers", "bytes_to_peers"), ("packets_to_client", "bytes_to_client")] {
        assert_eq!((end[packets].as_u64(), end[bytes].as_u64()), (Some(sent), Some(sent * LEN as u64)), "{end}");
    }
    let ledger = scene.ask("/api/v1/turn/drops");
    assert_eq!(ledger["in"], Value::from(ledger["out"].as_u64().unwrap() + ledger["dropped"].as_u64().unwrap()));
}

/// The program ends with the process, also by SIGKILL.
#[test]
fn a_killed_server_relays_nothing() {
    let Some(mut scene) = Scene::require("native", "off") else { return };
    scene.prove();
    let Scene { network, server, mut client, peer, relayed, .. } = scene;
    server.signal(Signal::SIGKILL);
    drop(server);
    client.send_channel(CHANNEL, &[7; LEN]);
    peer.send_to(&[9; LEN], relayed).unwrap();
    let attached = network.on(SERVER, || Command::new("ip").args(["link", "show", "dev", "c0"]).output().unwrap());
    let text = String::from_utf8(attached.stdout).unwrap();
    assert!(!text.contains("xdp"), "{text}");
    // An ICMP error is all that may come back.
    for socket in [&peer, &client.socket] {
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0; LEN]).is_err());
    }
}

/// No thread that reads packets or HTTP keeps the two privileges that the program needs.
#[test]
fn privileges_are_dropped_after_the_program_is_attached() {
    let Some(scene) = Scene::require("native", "off") else { return };
    const CAP_NET_ADMIN: u64 = 1 << 12;
    const CAP_BPF: u64 = 1 << 39;
    let tasks = format!("/proc/{}/task", scene.server.id());
    let mut dropped = 0;
    for task in std::fs::read_dir(tasks).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        for set in ["CapEff:", "CapPrm:"] {
            let held = u64::from_str_radix(&field(set), 16).unwrap() & (CAP_BPF | CAP_NET_ADMIN);
            let reads_nothing = ["turn-paths", "signals"].contains(&field("Name:").as_str());
            assert!(held == 0 || reads_nothing, "{set} {held:x} of {}", field("Name:"));
            dropped += u32::from(held == 0);
        }
    }
    assert!(dropped >= 8, "{dropped} sets of threads");
}

/// The path of every closed channel goes for good, also while others look for their next hop.
#[test]
fn channels_that_come_and_go_leave_nothing_behind() {
    let Some(mut scene) = Scene::require("native", "off") else { return };
    scene.prove();
    let (started, mut rounds) = (Instant::now(), 0);
    // Some looks for next hops, each half a second, fall into the 20 ms after a close.
    while started.elapsed() < Duration::from_secs(4) || rounds < 40 {
        rounds += 1;
        assert_eq!(scene.client.refresh(0), 0, "{rounds}");
        scene.relayed = scene.client.allocate().unwrap();
        for number in 1..16 {
            let to = SocketAddr::new("10.93.0.2".parse().unwrap(), 9_000 + number);
            assert_eq!(scene.client.bind_channel(0x4000 + number, to), 0);
            scene.client.send_channel(0x4000 + number, &[7; LEN]);
        }
        assert_eq!(scene.client.bind_channel(CHANNEL, scene.peer.local_addr().unwrap()), 0);
        scene.relay_out();
        scene.relay_back();
    }
    wait("sixteen paths", || scene.metric("truetick_turn_paths") == 16);
    assert_eq!(scene.client.refresh(0), 0);
    assert_eq!(scene.metric("truetick_turn_paths"), 0);
}

/// A server that hangs gives no heartbeat: after two seconds the packets wait in its sockets, and none is lost.
#[test]
fn a_server_that_hangs_relays_nothing_and_goes_on() {
    let Some(mut scene) = Scene::require("native", "off") else { return };
    scene.prove();
    scene.server.signal(Signal::SIGSTOP);
    let stat = format!("/proc/{}/stat", scene.server.id());
    wait("the server stops", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    scene.peer.set_nonblocking(true).unwrap();
    let payload = |number: u32| [&number.to_be_bytes()[..], &[7; LEN]].concat();
    let (mut sent, mut has_relayed, mut silent) = (0, false, 0);
    wait("the kernel relays, and then no longer", || {
        scene.client.send_channel(CHANNEL, &payload(sent));
        sent += 1;
        silent += 1;
        while scene.peer.recv(&mut [0; 2 * LEN]).is_ok() {
            (has_relayed, silent) = (true, 0);
        }
        has_relayed && silent == 50
    });
    scene.server.signal(Signal::SIGCONT);
    scene.peer.set_nonblocking(false).unwrap();
    // One in 65,536 checksums looks like a partial one: such a packet has waited since then.
    let mut missing: BTreeSet<u32> = (sent - silent..sent).collect();
    while !missing.is_empty() {
        let mut received = [0; 2 * LEN];
        scene.peer.recv(&mut received).unwrap();
        missing.remove(&u32::from_be_bytes(received[..4].try_into().unwrap()));
    }
    scene.relay_back();
}

/// Senders on the same machine leave checksums to their devices, and a relayed packet would have a wrong one.
#[test]
fn partial_checksums_leave_the_relaying_to_the_sockets() {
    let Some(mut scene) = Scene::require("native", "on") else { return };
    for _ in 0..2 * PROOF {
        scene.relay_out();
        scene.relay_back();
    }
    wait("an interface without proof", || {
        let status = scene.status();
        let mut interfaces = status["interfaces"].as_array().into_iter().flatten();
        interfaces.any(|interface| interface["proof"] == "unproven")
    });
    scene.server.wait_log("ethtool -K IFACE tx off", 1);
    for _ in 0..PROOF {
        scene.relay_out();
        scene.relay_back();
    }
    assert_eq!(scene.status()["to_clients"], 0);
}

/// `auto` leaves virtual devices alone.
#[test]
fn auto_attaches_to_no_virtual_device() {
    let Some(mut scene) = Scene::require("auto", "off") else { return };
    for _ in 0..2 * PROOF {
        scene.relay_out();
        scene.relay_back();
    }
    assert_eq!(scene.status()["open"], Value::Null);
    let log = scene.server.log();
    assert!(log.contains("the sockets relay") && log.contains("--data-path native"), "{log}");
}
