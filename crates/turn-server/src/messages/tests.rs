//! Messages of a server in process, with a database that the test controls.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard};

use testkit::turn_client::Client;
use tt_status::allocation_messages::{KeyChange, MessageStatus};
use tt_turn::config::GrantReports;

use super::*;
use crate::{PassedSockets, Running, TurnConfig, User, start_with};

const PATIENCE: Duration = Duration::from_secs(60);

/// A database that keeps what it gets.
#[derive(Clone, Default)]
struct Database(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    messages: Vec<AllocationMessage>,
    is_away: bool,
    /// Held by the test while the database hangs.
    hanging: Arc<Mutex<()>>,
}

impl MessageOutput for Database {
    fn send(&mut self, messages: &[AllocationMessage]) -> Result<(), String> {
        let hanging = Arc::clone(&self.kept().hanging);
        drop(hanging.lock().unwrap());
        let mut kept = self.kept();
        if kept.is_away {
            return Err("away".to_owned());
        }
        kept.messages.extend_from_slice(messages);
        Ok(())
    }
}

impl Database {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap()
    }

    fn start(&self) -> Running {
        let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
        config.workers = 1;
        config.grant_reports = GrantReports::Kept;
        config.users.push(User::parse("ann:secret").unwrap());
        config.allow_own_hosts.push("127.0.0.0/8".parse().unwrap());
        start_with(&config, PassedSockets::default(), Some(Box::new(self.clone()))).unwrap()
    }
}

fn status(running: &Running) -> MessageStatus {
    running.reading()().messages.unwrap()
}

fn dropped(status: &MessageStatus, name: &str) -> u64 {
    status.dropped.iter().find(|count| count.name == name).unwrap().count
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

/// Every message is published or lost under one name.
fn adds_up(status: &MessageStatus) -> bool {
    status.input == status.published + status.dropped.iter().map(|count| count.count).sum::<u64>()
}

#[test]
fn an_allocation_has_the_messages_of_coturn() {
    let database = Database::default();
    let running = database.start();
    let peer = UdpSocket::bind("127.0.0.2:0").unwrap();
    let mut client = Client::new(running.listen()[0], "ann", "secret");
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    assert_eq!(client.refresh(1_200), 0);
    for _ in 0..2_100 {
        client.send_channel(0x4000, b"four");
        let (_, relayed) = peer.recv_from(&mut [0; 16]).unwrap();
        peer.send_to(b"eight888", relayed).unwrap();
        client.receive_channel();
    }
    wait("a message about traffic", || database.kept().messages.len() >= 4);
    assert_eq!(client.refresh(0), 0);
    wait("the last message", || status(&running).published == 9);
    let from = client.binding();
    let totals = status(&running);
    assert!(totals.is_up && adds_up(&totals), "{totals:?}");
    let messages = std::mem::take(&mut database.kept().messages);
    let key = |name: &str| format!("turn/realm/truetick/user/ann/allocation/000000000000000001/{name}");
    let of = |name: &str| {
        let named = messages.iter().filter(|message| message.key == key(name));
        named.map(|message| (message.text.clone(), message.change)).collect::<Vec<_>>()
    };
    let to = running.listen()[0];
    let granted = |what: &str, lifetime_s: u32| {
        let rest = format!("type=UDP, local={to}, remote={from}, ssl=NONE, cipher=NONE");
        (format!("{what} lifetime={lifetime_s}, {rest}"), KeyChange::Set { lifetime_s })
    };
    let ended = ("deleted".to_owned(), KeyChange::Remove);
    assert_eq!(of("status"), [granted("new", 600), granted("refreshed", 1_200), ended]);
    let total = |text: &str| vec![(text.to_owned(), KeyChange::Keep)];
    assert_eq!(of("total_traffic"), total("rcvp=2100, rcvb=8400, sentp=2100, sentb=16800"));
    assert_eq!(of("total_traffic/peer"), total("rcvp=2100, rcvb=16800, sentp=2100, sentb=8400"));
    let sums = |name: &str| {
        let all = of(name).into_iter().map(|(text, _)| {
            let numbers = text.split(", ").map(|word| word.split_once('=').unwrap().1.parse::<u64>().unwrap());
            numbers.collect::<Vec<_>>()
        });
        let all: Vec<_> = all.collect();
        assert_eq!(all.len(), 2, "one in between and the rest: {all:?}");
        assert!(all[0][0] + all[0][2] >= 2_048, "{all:?}");
        (0..4).map(|place| all.iter().map(|numbers| numbers[place]).sum::<u64>()).collect::<Vec<_>>()
    };
    assert_eq!(
        (sums("traffic"), sums("traffic/peer")),
        (vec![2_100, 8_400, 2_100, 16_800], vec![2_100, 16_800, 2_100, 8_400])
    );
    running.stop();
}

#[test]
fn a_database_that_is_away_loses_messages_by_name_and_comes_back() {
    let database = Database::default();
    let running = database.start();
    let mut client = Client::new(running.listen()[0], "ann", "secret");
    client.allocate().unwrap();
    wait("the first message", || status(&running).published == 1);
    database.kept().is_away = true;
    wait("it is noticed without a message", || !status(&running).is_up);
    assert_eq!(client.refresh(0), 0);
    wait("five messages are lost", || dropped(&status(&running), "no_connection") == 5);
    database.kept().is_away = false;
    wait("it is back", || status(&running).is_up);
    client.allocate().unwrap();
    wait("the next message", || status(&running).published == 2);
    let totals = status(&running);
    assert!(adds_up(&totals), "{totals:?}");
    assert!(database.kept().messages[1].key.ends_with("/000000000000000002/status"));
    running.stop();
    // The end of the server is the end of the allocation.
    assert_eq!(database.kept().messages.len(), 7);
}

#[test]
fn a_database_that_hangs_never_holds_up_a_worker() {
    let database = Database::default();
    let running = database.start();
    let hanging = Arc::clone(&database.kept().hanging);
    let held = hanging.lock().unwrap();
    let mut client = Client::new(running.listen()[0], "ann", "secret");
    client.allocate().unwrap();
    // Those in the queue, those that the thread has, and one more.
    for _ in 0..ENTRIES_MAX + BATCH_MAX {
        assert_eq!(client.refresh(600), 0);
    }
    wait("all have come", || status(&running).input == (ENTRIES_MAX + BATCH_MAX + 1) as u64);
    let before = status(&running);
    assert!(before.published == 0 && dropped(&before, "queue_full") > 0, "{before:?}");
    drop(held);
    wait("all is counted", || adds_up(&status(&running)));
    let after = status(&running);
    assert_eq!(after.published, after.input - dropped(&after, "queue_full"));
    assert_eq!(client.refresh(600), 0);
    wait("the next message", || status(&running).published == after.published + 1);
    running.stop();
}
