//! One user against the pools that all users share, on the built binary: another user's first ten of everything.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use testkit::measured;
use testkit::turn_client::{Client, EVEN_PORT};

use crate::server::{PASSWORD, Server, USER};

/// The second user.
const BOB: &str = "bob";
const BOB_PASSWORD: &str = "pa55";
/// The first ten of everything.
const FIRST: u16 = 10;
const CHURNERS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(10);

fn start(flags: &[&str]) -> Server {
    let bob = format!("{BOB}:{BOB_PASSWORD}");
    let all = ["--listen", "127.0.0.1:0", "--user", &bob];
    Server::start(&[&all[..], flags].concat())
}

fn attacker(server: SocketAddr) -> Client {
    Client::new(server, USER, PASSWORD)
}

fn peer(number: u16) -> SocketAddr {
    SocketAddr::new([8, 9, (number / 250) as u8, 1 + (number % 250) as u8].into(), 9_000 + number)
}

/// Asserts that bob gets his first ten allocations, permissions, channels and reservations.
fn assert_bob_is_served(server: SocketAddr) {
    let mut clients: Vec<_> = (0..FIRST).map(|_| Client::new(server, BOB, BOB_PASSWORD)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.allocate().err(), None, "allocation {number}");
    }
    let client = &mut clients[0];
    for number in 0..FIRST {
        assert_eq!(client.permit(peer(number)), 0, "permission {number}");
    }
    for number in 0..FIRST {
        assert_eq!(client.bind_channel(0x4000 + number, peer(number)), 0, "channel {number}");
    }
    for number in 0..FIRST {
        let mut client = Client::new(server, BOB, BOB_PASSWORD);
        assert_eq!(client.allocate_with(&[(EVEN_PORT, &[0x80])]).err(), None, "reservation {number}");
    }
}

/// Four clients of one user, each with one allocation at most, in a loop.
#[test]
fn one_user_leaves_the_first_ten_of_everything_to_another() {
    let server = start(&[]);
    let listener = server.listen[0];
    let (is_over, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..CHURNERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = attacker(listener);
                    match client.allocate() {
                        Ok(_) => assert_eq!(client.refresh(0), 0),
                        Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        while refused.load(Ordering::Relaxed) < 2_000 {
            thread::yield_now();
        }
        let served = thread::scope(|scope| scope.spawn(|| assert_bob_is_served(listener)).join());
        is_over.store(true, Ordering::Relaxed);
        served.unwrap();
    });
    let refused = refused.into_inner();
    measured(
        "ports and allocations",
        format_args!("{FIRST} of {FIRST} of each while {refused} Allocates of another user were rejected"),
    );
}

/// Takes as many channels and permissions as one allocation may have, and returns of which there were too few.
fn take_all(client: &mut Client) -> [bool; 2] {
    let runs_out = |take: &mut dyn FnMut(u16) -> u16, most: u16| {
        let code = (0..most).map(take).find(|code| *code != 0);
        assert!(matches!(code, None | Some(508)), "{code:?}");
        code.is_some()
    };
    let channels = runs_out(&mut |number| client.bind_channel(0x4000 + number, peer(number)), 64);
    [channels, runs_out(&mut |number| client.permit(peer(number)), 240)]
}

/// 300 allocations with as many permissions and channels as one may have, at the rate of the default.
#[test]
fn permissions_and_channels_of_one_user_leave_the_first_ten_to_another() {
    let server = start(&[]);
    let mut clients: Vec<_> = (0..300).map(|_| attacker(server.listen[0])).collect();
    let mut refused = 0;
    for client in &mut clients {
        let started = Instant::now();
        while let Err(code) = client.allocate() {
            assert!(code == 486 && started.elapsed() < PATIENCE, "{code}");
        }
        refused += usize::from(take_all(client)[1]);
    }
    assert!(refused > 100, "{refused}: the pool of permissions is not used up");
    assert_bob_is_served(server.listen[0]);
    measured(
        "permissions and channels",
        format_args!("{FIRST} of {FIRST} of each after another user's {refused} allocations of 300 got no more"),
    );
}

#[test]
fn a_small_server_leaves_the_first_ten_to_another_user() {
    let server = start(&["--allocations-max", "64"]);
    let mut clients: Vec<_> = (0..64).map(|_| attacker(server.listen[0])).collect();
    let made = clients.iter_mut().filter_map(|client| client.allocate().ok()).count();
    assert_eq!(made, 48, "three quarters");
    let refused = clients[..made].iter_mut().map(take_all).filter(|refused| *refused == [true; 2]).count();
    assert!(refused > 10, "{refused}: the pools are not used up");
    let mut clients: Vec<_> = (0..FIRST).map(|_| Client::new(server.listen[0], BOB, BOB_PASSWORD)).collect();
    for client in &mut clients {
        assert_eq!(client.allocate().err(), None);
        for number in 0..FIRST {
            assert_eq!(client.permit(peer(number)), 0, "permission {number}");
        }
        for number in 0..FIRST {
            assert_eq!(client.bind_channel(0x4000 + number, peer(number)), 0, "channel {number}");
        }
    }
}

/// Each of the allocations is that of another client, and the kernel spreads them unevenly over the workers.
#[test]
fn as_many_allocations_succeed_as_there_are_ports() {
    let flags = ["--relay-ports", "21000-21049", "--workers", "8", "--user-share-percent", "100"];
    let server = start(&flags);
    let mut clients: Vec<_> = (0..50).map(|_| attacker(server.listen[0])).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.allocate().err(), None, "allocation {number}");
    }
    assert_eq!(attacker(server.listen[0]).allocate().err(), Some(508));
}

/// A worker binds sockets in place of those that are taken a few at a time, also while no datagram arrives.
#[test]
fn idle_sockets_are_bound_again_while_nothing_arrives() {
    let server = start(&["--workers", "1"]);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    let before = open();
    // Of 128 idle sockets fewer than 64 are left.
    let mut clients: Vec<_> = (0..65).map(|_| attacker(server.listen[0])).collect();
    for client in &mut clients {
        client.allocate().unwrap();
    }
    let are_open = testkit::wait_until(PATIENCE, || open() >= before + clients.len());
    assert!(are_open, "{} descriptors, {before} before", open());
}
