//! A panic in one worker, in process: no input makes a worker panic.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::*;
use crate::commands::WorkerCommand;

use testkit::turn_client::Client;

const PATIENCE: Duration = Duration::from_secs(60);

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

fn relays(client: &mut Client, peer: &UdpSocket) {
    client.send_channel(0x4000, b"on");
    let (length, relayed) = peer.recv_from(&mut [0; 64]).unwrap();
    assert_eq!(length, 2);
    peer.send_to(b"back", relayed).unwrap();
    assert_eq!(client.receive_channel(), (0x4000, b"back".to_vec()));
}

/// A83: the others relay on, the status shows the worker as down until it serves again, and no quota, lock or count is left behind.
#[test]
fn case_a83_a_workers_panic_is_its_own() {
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    config.workers = 4;
    config.restart_delay = Duration::from_secs(3);
    config.users.push(User::parse("ann:secret").unwrap());
    config.allow_own_hosts.push("127.0.0.0/8".parse().unwrap());
    let running = start(&config).unwrap();
    let peer = UdpSocket::bind("127.0.0.2:0").unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let admin = running.allocation_admin();

    let mut clients: Vec<(usize, Client)> = Vec::new();
    // The kernel spreads them; with this many each of two workers has one, or the kernel is broken.
    for _ in 0..32 {
        let mut client = Client::new(running.listen()[0], "ann", "secret");
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
        let row = runtime.block_on(admin.find(relayed)).unwrap().unwrap();
        clients.push((row.worker, client));
    }
    let broken = clients[0].0;
    let (mut gone, mut others): (Vec<_>, Vec<_>) = clients.into_iter().partition(|(worker, _)| *worker == broken);
    assert!(!others.is_empty());

    assert!(running.worker_set.workers.all()[broken].send(WorkerCommand::new(|_, _| panic!("injected by the test"))));
    let reading = running.reading();
    wait("the worker is down", || reading().workers_down == 1);
    others.iter_mut().for_each(|(_, client)| relays(client, &peer));
    wait("the worker serves again", || reading().workers_down == 0);
    assert_eq!(reading().panics, 1);

    assert_eq!(running.allocations() as usize, others.len(), "quotas are given back");
    others.iter_mut().for_each(|(_, client)| relays(client, &peer));
    for (_, client) in &mut gone {
        assert_eq!(client.refresh(600), 437, "its allocation has ended");
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
        relays(client, &peer);
    }
    wait("the count is published", || reading().allocations.live as usize == others.len() + gone.len());
    assert_eq!(reading().allocations.ended as usize, gone.len());
    let counters = running.stop().accounting();
    assert!(counters.closes, "{counters:?}");
}

/// Every proper prefix and suffix and every changed byte of a name or password is rejected, also after a reload.
#[test]
fn only_the_whole_name_and_the_whole_password_are_accepted() {
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    config.workers = 1;
    config.users.push(User::parse("ann:former").unwrap());
    let running = start(&config).unwrap();
    let server = running.listen()[0];
    let allocate = |name: &str, password: &str| Client::new(server, name, password).allocate().err();
    assert_eq!(allocate("ann", "former"), None);

    let (name, password) = ("berta", "Secret7");
    config.users = vec![User::parse(&format!("{name}:{password}")).unwrap()].into();
    running.reload(config).unwrap();
    wait("the reload", || allocate(name, password).is_none());
    assert_eq!(allocate("ann", "former"), Some(401), "the reload removed this user");
    for wrong in partial(password) {
        assert_eq!(allocate(name, &wrong), Some(401), "password {wrong}");
    }
    for wrong in partial(name) {
        assert_eq!(allocate(&wrong, password), Some(401), "name {wrong}");
    }
    running.stop();
}

/// The key is what coturn's `turnadmin -k -u ann -r truetick -p secret` prints.
#[test]
fn a_key_serves_its_user_before_and_after_a_reload() {
    let with = |text: &str| {
        let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
        config.workers = 1;
        config.users = ["bob:other", text].map(|text| User::parse(text).unwrap()).to_vec().into();
        config.set_password_algorithms(&TurnSection::default()).unwrap();
        config
    };
    let key = "ann:0x7a6d2237e63cae3ac3d61e9088aaba8f";
    let running = start(&with(key)).unwrap();
    let server = running.listen()[0];
    let allocate = |name: &str, password: &str| Client::new(server, name, password).allocate().err();
    let both = || (allocate("ann", "secret"), allocate("bob", "other"));
    assert_eq!(both(), (None, None));
    for wrong in partial("secret").iter().map(String::as_str).chain(["7a6d2237e63cae3ac3d61e9088aaba8f", &key[4..]]) {
        assert_eq!(allocate("ann", wrong), Some(401), "password {wrong}");
    }
    for digit in 6..key.len() {
        let other = if key.as_bytes()[digit] == b'0' { "1" } else { "0" };
        let mut wrong = key.to_owned();
        wrong.replace_range(digit..=digit, other);
        running.reload(with(&wrong)).unwrap();
        wait("a wrong key", || both() == (Some(401), None));
        running.reload(with(if digit % 2 == 0 { "ann:secret" } else { key })).unwrap();
        wait("the password or key", || both() == (None, None));
    }
    running.stop();
}

/// Returns every proper prefix and suffix of `text` that is not empty, and `text` with each byte changed and one added.
fn partial(text: &str) -> Vec<String> {
    let lengths = 1..text.len();
    let prefixes = lengths.clone().map(|length| text[..length].to_owned());
    let suffixes = lengths.map(|length| text[text.len() - length..].to_owned());
    let changed = (0..text.len()).map(|at| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1;
        String::from_utf8(bytes).unwrap()
    });
    prefixes.chain(suffixes).chain(changed).chain([format!("{text}x")]).collect()
}
