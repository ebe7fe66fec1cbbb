//! Messages about allocations in a real Redis: those of coturn's `redis-statsdb`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;

use super::REALM;
use super::redis::{PASSWORD, Redis};
use crate::clients::keys::Coturn;
use crate::clients::uclient::require_coturn;
use crate::operators::operated::{Operated, TOKEN, peer, relays, wait, write_secret};
use crate::server::program;

/// Channel and text of each message, in their order; it ends with Redis.
struct Subscriber {
    child: Child,
    messages: Arc<Mutex<Vec<(String, String)>>>,
}

impl Subscriber {
    fn new(redis: &Redis) -> Self {
        let mut command = Command::new("redis-cli");
        command.args([
            "-p",
            &redis.port.to_string(),
            "--no-auth-warning",
            "-a",
            PASSWORD,
            "--csv",
            "psubscribe",
            "turn/*",
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let (mut lines, sink) = (BufReader::new(child.stdout.take().unwrap()).lines(), Arc::clone(&messages));
        while !lines.next().unwrap().unwrap().contains("psubscribe") {}
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let fields: Vec<_> = line.trim_matches('"').split("\",\"").map(str::to_owned).collect();
                sink.lock().unwrap().push((fields[2].clone(), fields[3].clone()));
            }
        });
        Self { child, messages }
    }

    /// The texts of all channels whose name ends so.
    fn texts(&self, end: &str) -> Vec<String> {
        let messages = self.messages.lock().unwrap();
        messages.iter().filter(|(channel, _)| channel.ends_with(end)).map(|(_, text)| text.clone()).collect()
    }

    /// What kinds of messages came: channels and texts without their numbers.
    fn kinds(&self) -> BTreeSet<(String, String)> {
        let messages = self.messages.lock().unwrap();
        messages.iter().map(|(channel, text)| (without_numbers(channel), without_numbers(text))).collect()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every run of digits as `#` and its length, if it is an id of 18 digits.
fn without_numbers(text: &str) -> String {
    let mut kind = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match digits {
            0 => {}
            18 => kind.push_str("#18"),
            _ => kind.push('#'),
        }
        kind.push_str(&part[digits..]);
    }
    kind
}

/// The numbers of `rcvp=1, rcvb=2, sentp=3, sentb=4`.
fn traffic(text: &str) -> [u64; 4] {
    let names = ["rcvp=", "rcvb=", "sentp=", "sentb="];
    let words: Vec<_> = text.split(", ").collect();
    assert_eq!(words.len(), names.len(), "{text}");
    std::array::from_fn(|place| words[place].strip_prefix(names[place]).unwrap().parse().unwrap())
}

fn sum(texts: &[String]) -> [u64; 4] {
    texts
        .iter()
        .map(|text| traffic(text))
        .fold([0; 4], |sum, more| std::array::from_fn(|place| sum[place] + more[place]))
}

fn start(redis: &Redis) -> Operated {
    let keys = format!(
        "allow_own_host = [\"127.0.0.0/8\"]\nrfc5766_channel_numbers = true\n\
         stats_database = \"redis:ip=127.0.0.1 dbname=3 port={}\"\n\
         stats_database_password_file = \"{{folder}}/redis\"",
        redis.port
    );
    let folder = Operated::configured("127.0.0.1:0", &keys);
    write_secret(&folder, "redis", PASSWORD);
    Operated::start_in(folder, &[])
}

fn metric(server: &Operated, series: &str) -> u64 {
    let text = server.ask("GET", "/metrics", None).body;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("truetick_turn_stats_{series} ")));
    line.unwrap_or_else(|| panic!("{series}: {text}")).parse().unwrap()
}

fn dropped(server: &Operated) -> u64 {
    let text = server.ask("GET", "/metrics", None).body;
    let values = text.lines().filter(|line| line.starts_with("truetick_turn_stats_messages_dropped_total{"));
    values.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Runs uclient over the server at `port`: two clients that send each other 2,100 payloads of 100 bytes.
fn uclient(port: u16) {
    let mut uclient = Command::new("turnutils_uclient");
    uclient.args(["-y", "-c", "-m", "1", "-n", "2100", "-l", "100", "-z", "1", "-u", "ann", "-w", "ann-secret", "-p"]);
    let output = uclient.args([&port.to_string(), "127.0.0.1"]).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && report.contains("Total lost packets 0 (0.000000%)"), "{output:?}");
}

/// coturn and truetick, with the same file and the same client: the same channels, the same texts but for the numbers. And the traffic is
/// what the client says.
#[test]
fn statistics_are_those_of_coturn() {
    let (Some(_), Some(_)) = (require_coturn("turnserver"), require_coturn("turnutils_uclient")) else { return };
    let Some(redis) = Redis::require() else { return };
    let subscriber = Subscriber::new(&redis);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "listening-ip=127.0.0.1\nrelay-ip=127.0.0.1\nlistening-port={port}\nlt-cred-mech\nrealm={REALM}\n\
         user=ann:ann-secret\nallow-loopback-peers\nno-tcp-relay\n\
         redis-statsdb=\"ip=127.0.0.1 dbname=3 password={PASSWORD} port={} connect_timeout=30\"\n",
        redis.port
    );
    write_secret(&folder, "turnserver.conf", &format!("{text}cli-password=unused\n"));
    let file = folder.path().join("turnserver.conf");
    let coturn = Coturn::start(&file, SocketAddr::from(([127, 0, 0, 1], port)));
    uclient(port);
    wait("both allocations end", || subscriber.texts("/total_traffic/peer").len() == 2);
    let of_peers = |subscriber: &Subscriber| sum(&subscriber.texts("/total_traffic/peer"));
    let (kinds, coturn_traffic) = (subscriber.kinds(), of_peers(&subscriber));
    drop((coturn, subscriber));

    let subscriber = Subscriber::new(&redis);
    write_secret(
        &folder,
        "turnserver.conf",
        &format!("{text}rfc5766-channel-numbers\nprometheus\nprometheus-address=127.0.0.1\nprometheus-port=0\n"),
    );
    let mut command = Command::new(program());
    command.args(["turn", "--coturn"]).arg(&file);
    let server = Operated::start_command(command, folder);
    uclient(port);
    wait("both allocations end", || subscriber.texts("/total_traffic/peer").len() == 2);
    assert_eq!(subscriber.kinds(), kinds);
    assert_eq!(of_peers(&subscriber), coturn_traffic, "payloads as coturn counts them on the side of the peers");
    assert_eq!(of_peers(&subscriber), [4_200, 420_000, 4_200, 420_000]);
    for (parts, total) in [("/traffic", "/total_traffic"), ("/traffic/peer", "/total_traffic/peer")] {
        assert_eq!(sum(&subscriber.texts(parts)), sum(&subscriber.texts(total)), "{parts}");
        assert!(subscriber.texts(parts).len() > 2, "one for each end, and others before");
    }
    let adds_up = || metric(&server, "messages_in_total") == metric(&server, "messages_published_total");
    wait("every message is published", adds_up);
    assert_eq!((metric(&server, "up"), dropped(&server)), (1, 0));
    assert!(!server.log().contains(PASSWORD), "{}", server.log());
}

/// The key of a live allocation is there with the time that the allocation has left, and gone with it.
#[test]
fn statistics_have_a_key_for_each_live_allocation() {
    let Some(redis) = Redis::require() else { return };
    let server = start(&redis);
    let mut client = server.client("bob");
    client.allocate().unwrap();
    let keys = || redis.ask(&["KEYS", "turn/*"]).trim().to_owned();
    wait("the key", || keys().starts_with("turn/realm/truetick/user/bob/allocation/"));
    let (key, remote) = (keys(), client.binding());
    let text = format!("new lifetime=600, type=UDP, local={}, remote={remote}, ssl=NONE, cipher=NONE", server.listen);
    assert_eq!(redis.ask(&["GET", &key]).trim(), text);
    assert_eq!(client.refresh(1_800), 0);
    wait("the next lifetime", || redis.ask(&["GET", &key]).starts_with("refreshed lifetime=1800, "));
    let left: u64 = redis.ask(&["TTL", &key]).trim().parse().unwrap();
    assert!((600..=1_800).contains(&left), "{left}");
    assert_eq!(client.refresh(0), 0);
    wait("it is gone", || keys().is_empty());
    // Those that are left at the end of the server end with it.
    client.allocate().unwrap();
    wait("the second key", || keys().contains("bob"));
    server.signal(Signal::SIGKILL);
    drop(server.ended());
    let (server, subscriber) = (start(&redis), Subscriber::new(&redis));
    let mut client = server.client("ann");
    client.allocate().unwrap();
    wait("the third key", || keys().contains("ann"));
    server.signal(Signal::SIGTERM);
    server.signal(Signal::SIGTERM);
    drop(server.ended());
    wait("the end", || subscriber.texts("/status").contains(&"deleted".to_owned()));
    assert!(
        !keys().contains("ann") && keys().contains("bob"),
        "the one that was killed has a time to live: {}",
        keys()
    );
}

/// Redis is killed, is away while allocations begin and end, and comes back; then it hangs.
#[test]
fn statistics_are_lost_by_name_while_redis_is_away_and_come_back() {
    let Some(mut redis) = Redis::require() else { return };
    let server = start(&redis);
    let peer = peer();
    let mut client = server.client("ann");
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    wait("the first message", || metric(&server, "messages_published_total") == 1);
    redis.kill();
    wait("it is noticed", || metric(&server, "up") == 0);
    relays(&mut client, 0x4000, &peer, b"while Redis is away");
    assert!(server.client("bob").log_in().is_ok());
    wait("losses", || metric(&server, "messages_dropped_total{reason=\"no_connection\"}") == 6);
    redis.restart();
    wait("it is back", || metric(&server, "up") == 1);
    let subscriber = Subscriber::new(&redis);
    assert_eq!(client.refresh(700), 0);
    wait("the next message", || subscriber.texts("/status").len() == 1);
    redis.signal(Signal::SIGSTOP);
    relays(&mut client, 0x4000, &peer, b"while Redis hangs");
    assert_eq!(client.refresh(800), 0);
    wait("it is noticed", || metric(&server, "up") == 0);
    assert!(server.log().contains("timeout"), "{}", server.log());
    redis.signal(Signal::SIGCONT);
    wait("it answers", || metric(&server, "up") == 1);
    assert_eq!(client.refresh(0), 0);
    wait("the end", || subscriber.texts("/total_traffic").len() == 1);
    assert_eq!(traffic(&subscriber.texts("/total_traffic")[0]), [2, 36, 0, 0]);
    let sum = || metric(&server, "messages_published_total") + dropped(&server);
    wait("every message counts", || metric(&server, "messages_in_total") == sum());
    assert_eq!(server.ask("POST", "/api/v1/reload", Some(TOKEN)).status, 200);
}
