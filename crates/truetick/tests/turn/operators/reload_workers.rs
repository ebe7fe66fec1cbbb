//! A reload with more and with fewer workers, while calls go on.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testkit::turn_client::Client;

use super::operated::{Operated, TOKEN, peer, wait};
use crate::stream_client::{StreamClient, connect};

const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]\nrelay_ip = [\"127.0.0.1\"]\nquotas.user_share_percent = 100";
const CHANNEL: u16 = 0x4000;

/// Sets the number of workers from `from` to `to`.
fn set(server: &Operated, from: usize, to: usize) {
    server.edit(|text| text.replace(&format!("workers = {from}\n"), &format!("workers = {to}\n")));
    let answer = server.ask("POST", "/api/v1/reload", Some(TOKEN));
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// Returns the numbers of the threads of workers that run.
fn threads(server: &Operated) -> Vec<usize> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let mut numbers: Vec<usize> = names.filter_map(|name| name.trim().strip_prefix("turn-")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the workers that have allocations.
fn owners(server: &Operated) -> Vec<u64> {
    let page = server.ask("GET", "/api/v1/turn/allocations?limit=1000", Some(TOKEN)).json();
    let rows = page["list"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
    let mut workers: Vec<u64> = rows.map(|row| row["worker"].as_u64().unwrap()).collect();
    workers.sort_unstable();
    workers.dedup();
    workers
}

/// A call with a peer that sends everything back.
fn call(server: &Operated, peer: SocketAddr) -> Client {
    let mut client = server.client("ann");
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(CHANNEL, peer), 0);
    client
}

/// Relays there and back over every call.
fn relay(calls: &mut [Client], number: u64) {
    calls.iter_mut().for_each(|call| call.send_channel(CHANNEL, &number.to_be_bytes()));
    for (index, call) in calls.iter_mut().enumerate() {
        assert_eq!(call.receive_channel(), (CHANNEL, number.to_be_bytes().to_vec()), "call {index}");
    }
}

fn echo(peer: &UdpSocket, stop: &AtomicBool) {
    peer.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let mut bytes = [0; 2_048];
    while !stop.load(Ordering::Relaxed) {
        // The time-out is for the look at `stop`.
        let Ok((length, from)) = peer.recv_from(&mut bytes) else { continue };
        peer.send_to(&bytes[..length], from).unwrap();
    }
}

struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn workers_come_and_go_and_no_datagram_of_a_call_is_lost() {
    let server = Operated::start(KEYS, &[]);
    let (near, stop, done) = (peer(), AtomicBool::new(false), AtomicBool::new(false));
    let addr = near.local_addr().unwrap();
    thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| echo(&near, &stop));
        let mut calls: Vec<Client> = (0..24).map(|_| call(&server, addr)).collect();
        let relaying = scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                relay(&mut calls, number);
                number += 1;
            }
            relay(&mut calls, number);
            calls
        });
        let _done = Stops(&done);
        let mut later = Vec::new();
        for (from, to) in [(2, 4), (4, 1), (1, 3), (3, 4), (4, 2), (2, 1), (1, 4)] {
            set(&server, from, to);
            later.extend((0..8).map(|_| call(&server, addr)));
            relay(&mut later, to as u64);
            assert!(later.iter_mut().all(|call| call.refresh(600) == 0), "{from} to {to}");
        }
        done.store(true, Ordering::Relaxed);
        let mut calls = relaying.join().unwrap();
        assert!(calls.iter_mut().all(|call| call.refresh(600) == 0));
        assert_eq!((threads(&server), owners(&server)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
        let drops = server.ask("GET", "/api/v1/turn/drops", None).json();
        assert!(drops["kernel_lost"] == 0 && drops["dropped"] == 0, "{drops}");

        // Workers that retire end with their last allocation.
        set(&server, 4, 1);
        relay(&mut calls, 7);
        assert_eq!((threads(&server), owners(&server)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
        assert!(later.iter_mut().chain(&mut calls).all(|call| call.refresh(0) == 0));
        wait("one worker", || threads(&server) == [0]);
        let mut calls: Vec<Client> = (0..24).map(|_| call(&server, addr)).collect();
        relay(&mut calls, 8);
        assert_eq!(owners(&server), [0]);

        // New ones take their numbers.
        set(&server, 1, 3);
        calls.extend((0..24).map(|_| call(&server, addr)));
        relay(&mut calls, 9);
        assert_eq!((threads(&server), owners(&server)), (vec![0, 1, 2], vec![0, 1, 2]));
        wait("the sum", || server.ask("GET", "/api/v1/turn/drops", None).json()["closes"] == true);
        let allocations = server.ask("GET", "/api/v1/turn/allocations", None).json()["allocations"].clone();
        assert!(allocations["live"] == 48 && allocations["created"] == 24 + 56 + 48, "{allocations}");
    });
}

#[test]
fn connections_of_a_worker_that_retires_go_on_and_new_workers_accept() {
    let server = Operated::start(KEYS, &[]);
    let open = || StreamClient::of_user(connect(server.tcp.unwrap()), "ann", "ann-secret");
    set(&server, 2, 4);
    let mut connections: Vec<_> = (0..24).map(|_| open()).collect();
    assert!(connections.iter_mut().all(|client| client.allocate().is_ok()));
    assert_eq!(owners(&server), [0, 1, 2, 3]);
    set(&server, 4, 1);
    assert!(connections.iter_mut().all(|client| client.refresh(600) == 0));
    let mut later: Vec<_> = (0..24).map(|_| open()).collect();
    assert!(later.iter_mut().all(|client| client.allocate().is_ok()));
    drop((connections, later));
    wait("one worker", || threads(&server) == [0]);
    assert!(open().allocate().is_ok());
}
