//! More than a hundred reloads, each of one thing, under a thousand calls: nothing is lost, and no worker pauses.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use testkit::turn_client::Client;

use crate::certificates::Certificates;
use crate::operators::operated::{Operated, TOKEN, write_secret};
use crate::user_files::{PAUSE_MAX, Waits, waits_until};

const CALLS: usize = 1_000;
/// Datagrams under way: the receive buffers of all sockets have room for them.
const WINDOW: usize = 100;
const ROUNDS: usize = 5;
/// How long the fastest rate is looked for.
const RAMP: Duration = Duration::from_secs(5);
const CHANNEL: u16 = 0x4000;
/// Ports below those that the kernel chooses; no other test has them.
const KEYS: &str = "relay_ip = [\"127.0.0.1\"]
relay_ports = \"20000-22999\"
allow_own_host = [\"127.0.0.0/8\"]
auth_secret_file = [\"{folder}/secrets\"]
quotas.user_allocations_per_second = 0";

/// Keys that a reload replaces, as they are first and then. Each change is one reload, and so is its way back.
const CHANGES: [(&str, &str); 17] = [
    ("workers = 2\n", "workers = 2\nsoftware = \"Relay 19\"\n"),
    ("workers = 2\n", "workers = 2\nlifetime_s = 700\n"),
    ("workers = 2\n", "workers = 2\ndeny_peer = [\"198.51.100.0/24\"]\n"),
    ("workers = 2\n", "workers = 2\nquotas.user_bytes_per_second = 1000000000\n"),
    ("relay_ports = \"20000-22999\"", "relay_ports = \"24000-26999\""),
    ("relay_ip = [\"127.0.0.1\"]", "relay_ip = [\"127.0.0.1\", \"127.0.0.3\"]"),
    ("[http]", "[[turn.realms]]\nname = \"b.example\"\norigins = [\"https://b.example\"]\n[http]"),
    ("workers = 2\n", "workers = 3\n"),
    ("workers = 2\n", "workers = 2\nallocations_max = 20000\n"),
    ("workers = 2\n", "workers = 2\ndscp_allow = \"none\"\n"),
    ("workers = 2\n", "workers = 2\nno_tcp = true\n"),
    ("workers = 2\n", "workers = 2\nrealm = \"calls.example\"\n"),
    ("workers = 2\n", "workers = 2\nproxy_protocol_from = [\"127.0.0.9\"]\n"),
    ("workers = 2\n", "workers = 2\nquotas.ipv6_prefix_bits = 56\n"),
    ("workers = 2\n", "workers = 2\nstreams.handshakes_max = 77\n"),
    ("listen = [\"127.0.0.1:0\"]", "listen = [\"127.0.0.1:0\", \"127.0.0.5:0\"]"),
    ("[http]", "[log]\nlevel = \"warn\"\n[http]"),
];

/// Allocations with a channel each to one peer, which sends everything back.
struct Calls {
    clients: Vec<Client>,
    /// The number in the datagram that is under way.
    sent: Vec<Option<u64>>,
    relayed: u64,
}

impl Calls {
    fn start(server: &Operated, peer: SocketAddr) -> Self {
        let client = |_| {
            let mut client = server.client("ann");
            client.allocate().unwrap();
            assert_eq!(client.bind_channel(CHANNEL, peer), 0);
            client
        };
        Self { clients: (0..CALLS).map(client).collect(), sent: vec![None; CALLS], relayed: 0 }
    }

    /// Relays over one call after the other until `is_done`, at most `rate` datagrams a second each way. A loss is a
    /// time-out.
    fn relay(&mut self, rate: Option<f64>, is_done: impl Fn() -> bool) -> f64 {
        let (started, before) = (Instant::now(), self.relayed);
        for call in (0..CALLS).cycle() {
            if is_done() {
                break;
            }
            self.step(call);
            let due = rate.map(|rate| Duration::from_secs_f64((self.relayed - before) as f64 / rate));
            while let Some(rest) = due.and_then(|due| due.checked_sub(started.elapsed())).filter(|rest| !rest.is_zero())
            {
                thread::park_timeout(rest);
            }
        }
        (0..CALLS).for_each(|call| self.finish(call));
        (self.relayed - before) as f64 / started.elapsed().as_secs_f64()
    }

    /// Sends the next datagram of the call, after the one that was sent `WINDOW` calls ago has come back.
    fn step(&mut self, call: usize) {
        self.finish((call + CALLS - WINDOW) % CALLS);
        self.clients[call].send_channel(CHANNEL, &self.relayed.to_be_bytes());
        self.sent[call] = Some(self.relayed);
        self.relayed += 1;
    }

    /// Every call refreshes its allocation, and relays once more.
    fn check(&mut self) {
        assert!(self.clients.iter_mut().all(|client| client.refresh(600) == 0));
        (0..CALLS).for_each(|call| self.step(call));
        (0..CALLS).for_each(|call| self.finish(call));
    }

    /// Takes back what the call has sent.
    fn finish(&mut self, call: usize) {
        if let Some(sent) = self.sent[call].take() {
            assert_eq!(self.clients[call].receive_channel(), (CHANNEL, sent.to_be_bytes().to_vec()), "call {call}");
        }
    }
}

/// Sets a flag at its end.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Sends back what arrives until `stop`; returns how much it was.
fn echo(peer: &UdpSocket, stop: &AtomicBool) -> u64 {
    let (mut bytes, mut count) = ([0; 2_048], 0);
    while !stop.load(Relaxed) {
        // The time-out is for the look at `stop`.
        let Ok((length, from)) = peer.recv_from(&mut bytes) else { continue };
        peer.send_to(&bytes[..length], from).unwrap();
        count += 1;
    }
    count
}

/// Reloads over the API while Binding requests are answered.
fn reload(server: &Operated) -> Waits {
    let is_probed = AtomicBool::new(false);
    thread::scope(|scope| {
        let reload = scope.spawn(|| {
            while !is_probed.load(Relaxed) {
                thread::yield_now();
            }
            let answer = server.ask("POST", "/api/v1/reload", Some(TOKEN));
            assert_eq!(answer.status, 200, "{}", answer.body);
        });
        let waits = waits_until(server, || {
            // From here on nothing of the reload is missed.
            is_probed.store(true, Relaxed);
            reload.is_finished()
        });
        reload.join().unwrap();
        waits
    })
}

/// Makes every change and takes it back; returns what each of these reloads made Bindings wait for.
fn change_everything(server: &Operated, certificates: &Certificates) -> Vec<(String, Waits)> {
    let mut all = Vec::new();
    for (was, is) in CHANGES {
        for (from, to) in [(was, is), (is, was)] {
            server.edit(|text| text.replacen(from, to, 1));
            all.push((to.to_owned(), reload(server)));
        }
    }
    for users in ["ann:ann-secret\nbob:bob-secret\neve:eve-secret\n", "ann:ann-secret\nbob:bob-secret\n"] {
        server.rewrite("users", users);
        all.push((users.to_owned(), reload(server)));
    }
    server.rewrite("secrets", &format!("north-{}\n", all.len()));
    all.push(("a secret".to_owned(), reload(server)));
    certificates.renew();
    all.push(("a certificate".to_owned(), reload(server)));
    all
}

#[test]
fn a_hundred_reloads_under_a_thousand_calls_lose_nothing() {
    tt_net::raise_descriptor_limit().unwrap();
    let certificates = Certificates::new();
    let path = |path: std::path::PathBuf| path.display().to_string();
    let tls = format!("\ncert = {:?}\nkey = {:?}", path(certificates.cert()), path(certificates.key()));
    let folder = Operated::configured("127.0.0.1:0", &(KEYS.to_owned() + &tls));
    write_secret(&folder, "secrets", "north\n");
    let server = Operated::start_in(folder, &[]);
    let peer = UdpSocket::bind("127.0.0.2:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let rounds: Vec<_> = thread::scope(|scope| {
        // A failure ends the echo, too, for which the scope waits.
        let _stops = SetWhenDropped(&stop);
        let echoed = scope.spawn(|| echo(&peer, &stop));
        let mut calls = Calls::start(&server, peer.local_addr().unwrap());
        let ramp = Instant::now();
        let fastest = calls.relay(None, || ramp.elapsed() >= RAMP);
        let (done, _done) = (&done, SetWhenDropped(&done));
        let relaying = scope.spawn(move || {
            let reached = calls.relay(Some(fastest / 2.0), || done.load(Relaxed));
            (calls, reached)
        });
        let rounds = (0..ROUNDS).map(|_| change_everything(&server, &certificates)).collect();
        done.store(true, Relaxed);
        let (mut calls, reached) = relaying.join().unwrap();
        println!("{CALLS} calls, datagrams a second each way: {fastest:.0} without reloads, {reached:.0} with them");
        calls.check();
        stop.store(true, Relaxed);
        assert_eq!(echoed.join().unwrap(), calls.relayed, "the peer gets each once");
        rounds
    });
    let drops = server.ask("GET", "/api/v1/turn/drops", None).json();
    assert!(drops["kernel_lost"] == 0 && drops["dropped"] == 0, "{drops}");
    let live = server.ask("GET", "/api/v1/turn/allocations", None).json()["allocations"]["live"].clone();
    assert_eq!(live, CALLS, "no allocation is lost");
    assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 190);
    judge(&rounds);
}

/// Interrupts and a hypervisor stop threads too, and no counter of a thread shows it: the best of the five reloads with the
/// same change counts.
fn judge(rounds: &[Vec<(String, Waits)>]) {
    let longest = |of: fn(&Waits) -> &Vec<Duration>| {
        let of_change = |change: usize| rounds.iter().filter_map(move |round| of(&round[change].1).last().copied());
        let all = (0..rounds[0].len()).flat_map(of_change).max();
        (all.unwrap(), (0..rounds[0].len()).map(|change| of_change(change).min().unwrap()).collect::<Vec<_>>())
    };
    for (what, of) in [
        ("waited, without the load of the machine,", (|waits| &waits.of_server) as fn(&Waits) -> &Vec<Duration>),
        ("waited for a worker that computed", |waits| &waits.computed),
    ] {
        let (all, best) = longest(of);
        let worst = (0..best.len()).max_by_key(|change| best[*change]).unwrap();
        let change = rounds[0][worst].0.replace('\n', " ");
        println!("a Binding {what} {all:?} at most, {:?} at the best of five with {change:?}", best[worst]);
        assert!(best[worst] <= PAUSE_MAX, "{change}: {best:?}");
    }
}
