//! 10,000 allocations of several users on several workers, within about a minute.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::turn_client::Client;

use super::{lines_counted, records, wait_written};
use crate::operators::operated::Operated;

const CLIENTS: usize = 4;
const EACH: usize = 2_500;
/// Each client leaves so many for the end of the server.
const LEFT: usize = 25;
/// Sockets of each client.
const SOCKETS: usize = 50;
const USERS: [&str; 2] = ["ann", "bob"];

/// What a client knows of its allocation.
struct Seen {
    user: &'static str,
    client: SocketAddr,
    relayed: SocketAddr,
    /// A moment between creation and end, milliseconds since 1970.
    at_ms: u64,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// Makes allocations one after the other, each from the next socket in turn, and deletes all but the last ones.
fn allocate_many(listen: SocketAddr) -> Vec<Seen> {
    let client = |user: &'static str| {
        let mut client = Client::new(listen, user, &format!("{user}-secret"));
        client.retransmits_after = Some(Duration::from_millis(500));
        (user, client)
    };
    let mut clients: Vec<_> = USERS.into_iter().cycle().take(SOCKETS).map(client).collect();
    let mut seen = Vec::new();
    while seen.len() < EACH {
        let (user, client) = &mut clients[seen.len() % SOCKETS];
        // Without a free port the client tries again: ports rest after use.
        let Ok(relayed) = client.allocate() else { continue };
        seen.push(Seen { user, client: client.socket.local_addr().unwrap(), relayed, at_ms: now_ms() });
        if seen.len() <= EACH - LEFT {
            assert_eq!(client.refresh(0), 0);
        }
    }
    seen
}

fn ms(time: &Value) -> u64 {
    let time = humantime::parse_rfc3339(time.as_str().unwrap()).unwrap();
    time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// "Who had relayed address X at time T" has one answer for every allocation, and the right one. Ports are used again.
#[test]
fn ten_thousand_allocations_are_found_by_address_and_time() {
    let keys = "relay_ports = \"14000-17999\"\ncdr = \"{folder}/records\"\n\
                [turn.quotas]\nuser_share_percent = 100\nuser_allocations_per_second = 0";
    let server = Operated::start(keys, &[]);
    let (started, listen) = (SystemTime::now(), server.listen);
    let seen: Vec<Seen> = thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(move || allocate_many(listen))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    println!("{} allocations in {:?}", seen.len(), started.elapsed().unwrap());
    let (all, left) = ((CLIENTS * EACH) as u64, (CLIENTS * LEFT) as u64);
    wait_written(&server, 2 * all - left);
    assert_eq!((lines_counted(&server, "write_failed"), lines_counted(&server, "queue_full")), (0, 0));
    server.signal(Signal::SIGINT);
    let path = server.folder().join("records");
    let _folder = server.ended_with_folder();

    let lines = records(&path);
    let of = |event: &'static str| lines.iter().filter(move |line| line["event"] == event);
    let ids = |event| of(event).map(|line| line["id"].as_str().unwrap()).collect::<HashSet<_>>();
    assert_eq!((lines.len(), of("start").count(), of("end").count()), (2 * all as usize, all as usize, all as usize));
    assert_eq!((ids("start").len(), ids("start")), (all as usize, ids("end")));
    assert_eq!(of("end").filter(|line| line["reason"] == "shutdown").count() as u64, left);
    let workers: HashSet<_> = ids("start").iter().map(|id| id.split('-').nth(1).unwrap()).collect();
    assert_eq!(workers.len(), 2, "the kernel spreads clients over the workers");

    let mut holders: HashMap<&str, Vec<&Value>> = HashMap::new();
    for line in of("end") {
        holders.entry(line["relayed"][0]["address"].as_str().unwrap()).or_default().push(line);
    }
    assert!(holders.len() < all as usize, "some ports were used again");
    for one in &seen {
        let held = |line: &&&Value| (ms(&line["start"])..=ms(&line["relayed"][0]["until"])).contains(&one.at_ms);
        let found: Vec<_> = holders[&*one.relayed.to_string()].iter().filter(held).collect();
        let [holder] = found[..] else { panic!("{} at {}: {found:?}", one.relayed, one.at_ms) };
        assert_eq!((&holder["user"], &holder["client"]), (&one.user.into(), &one.client.to_string().into()));
    }
}
