//! The time of a response must not reveal whether a user exists: Welch's t-test over interleaved requests, as dudect
//! does it (Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?").

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use testkit::measured;
use tt_meter::Off;
use tt_model::{FiveTuple, Transport};
use tt_turn::config::REQUEST_MAX;
use tt_turn::credential::Secrets;

use super::wire::{self, NONCE, REFRESH, Writer};
use super::world::{self, Out, REALM, World, addr};

/// Requests of one round.
const REQUESTS: usize = 20_000;
/// Names of each class.
const NAMES: usize = 64;
/// dudect's threshold: below it there is no evidence of a leak.
const T_MAX: f64 = 4.5;
/// Of the answer's time: a nanosecond or so. In the quiet of one thread t passes any threshold at a quarter of a cycle,
/// for which line of a cache a record lies in is enough; no network carries that.
const PART_MAX: f64 = 0.005;
/// The middle one of so many rounds counts: what else the machine does is in some of them.
const ROUNDS: usize = 9;

/// How the times of two classes differ.
#[derive(Clone, Copy, Debug)]
struct Difference {
    /// Welch's t.
    t: f64,
    /// Of the mean time.
    part: f64,
}

impl Difference {
    fn is_a_leak(self) -> bool {
        self.t.abs() >= T_MAX && self.part.abs() >= PART_MAX
    }
}

/// The difference of the times of two classes, the slowest tenth of both left out.
fn difference(times: &[(bool, u32)]) -> Difference {
    let mut sorted: Vec<u32> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_unstable();
    let longest = sorted[sorted.len() * 9 / 10];
    let moments = |class: bool| {
        let kept =
            || times.iter().filter(|(of, time)| *of == class && *time <= longest).map(|(_, time)| f64::from(*time));
        let count = kept().count() as f64;
        let mean = kept().sum::<f64>() / count;
        let variance = kept().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    };
    let ((mean_a, error_a), (mean_b, error_b)) = (moments(true), moments(false));
    Difference { t: (mean_a - mean_b) / (error_a + error_b).sqrt(), part: (mean_a - mean_b) / mean_b }
}

/// The middle one of several rounds, by size.
fn middle(mut round: impl FnMut() -> Difference) -> Difference {
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_by(|a, b| a.part.total_cmp(&b.part));
    rounds[ROUNDS / 2]
}

/// Times the answers to requests of two classes, drawn at random. All have one length, and each class has several, so
/// that where a name lies in memory and what it hashes to is not taken for the class.
fn time(world: &mut World, classes: [&[Vec<u8>]; 2]) -> Vec<(bool, u32)> {
    let flow = FiveTuple { client: addr("192.0.2.1:1"), server: world.listener, transport: Transport::Udp };
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut datagram = classes[0][0].clone();
    let one = |_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let class = (random >> 40 & 1) as usize;
        let requests = classes[class];
        // From one place in memory, so that only the bytes differ.
        datagram.copy_from_slice(&requests[(random >> 48) as usize % requests.len()]);
        let started = Instant::now();
        black_box(world.server.handle_client(world.now, &flow, black_box(&datagram), &mut world.out, &mut Off));
        (class == 0, started.elapsed().as_nanos() as u32)
    };
    (0..REQUESTS).map(one).collect()
}

fn request(world: &mut World, name: &str, algorithms: bool) -> Vec<u8> {
    let (nonce, tid) = (world.nonce(addr("192.0.2.1:1")), world.tid());
    let request = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, name.as_bytes());
    let request = request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce);
    if algorithms {
        let request = request.attr(wire::PASSWORD_ALGORITHMS, &[0, 2, 0, 0, 0, 1, 0, 0]);
        request.attr(wire::PASSWORD_ALGORITHM, &[0, 2, 0, 0]).integrity_sha256(b"wrong").0
    } else {
        request.integrity(b"wrong").0
    }
}

/// Names of one length, which start with `letter`.
fn names(letter: char) -> impl Iterator<Item = String> {
    (0..NAMES).map(move |number| format!("{letter}{:04}", number * 7_919 % 10_000))
}

#[test]
fn case_a38_an_unknown_user_takes_as_long_as_a_wrong_password() {
    let mut secrets = Secrets::new([1; 32], [77; 32]);
    names('k').for_each(|name| secrets.add_user(name.as_bytes(), REALM, b"password"));
    for algorithms in [false, true] {
        let mut world = World::with(world::config(), world::quotas(), world::capacity(), secrets.clone());
        let mut requests =
            |letter| -> Vec<_> { names(letter).map(|name| request(&mut world, &name, algorithms)).collect() };
        let (known, unknown) = (requests('k'), requests('u'));
        for bytes in known.iter().chain(&unknown) {
            assert_eq!(world.client(addr("192.0.2.1:1"), bytes).reply().code(), 401);
        }
        let classes = [&known[..], &unknown[..]];
        let _ = time(&mut world, classes);
        let found = middle(|| difference(&time(&mut world, classes)));
        println!("SHA-256 {algorithms}: {found:.4?}");
        assert!(!found.is_a_leak(), "{found:?}");
    }
}

/// The longest time of a request; without optimisation forty times as long.
const REQUEST_TIME_MAX: Duration = Duration::from_micros(if cfg!(debug_assertions) { 2_000 } else { 50 });

/// Types and values.
type Attributes = Vec<(u16, Vec<u8>)>;

/// The attributes of the most expensive requests that fit into `length` bytes, with a name for each kind.
fn expensive(world: &mut World, length: usize) -> [(&'static str, Attributes); 4] {
    let (peers, empty) = (0..(length / 12) as u32, 0..(length / 4) as u16);
    let address = |number: u32| Ipv4Addr::from_bits(0x0808_0000 + number);
    [
        ("addresses", peers.clone().map(|number| world.peer_attr((address(number), 9).into())).collect()),
        ("ports", peers.map(|number| world.peer_attr((address(1), 1_024 + number as u16).into())).collect()),
        ("unknown attributes", empty.clone().map(|number| (0x0100 + number % 0x7000, Vec::new())).collect()),
        ("empty attributes", empty.map(|_| (0x8022, Vec::new())).collect()),
    ]
}

#[test]
fn case_a09_no_request_takes_longer_than_50_microseconds() {
    let from = addr("192.0.2.1:1");
    let mut world = World::new();
    let _ = world.allocate(from);
    let mut longest = Duration::ZERO;
    // Room for name, realm, nonce and integrity; then the longest datagram that there is.
    for length in [REQUEST_MAX - 200, 65_300] {
        let is_answered = length < REQUEST_MAX;
        for (what, attrs) in expensive(&mut world, length) {
            let unsigned = world.unsigned(from, "alice", wire::CREATE_PERMISSION, &attrs);
            let signed = unsigned.clone().integrity(&world::key("alice"));
            for (key, request) in
                [("", signed), ("wrong key, ", unsigned.clone().integrity(b"wrong")), ("no key, ", unsigned)]
            {
                let times = (0..200).map(|_| {
                    let started = testkit::cpu_time();
                    let out = world.client(from, &request.0);
                    let elapsed = testkit::cpu_time() - started;
                    assert_eq!(matches!(out, Out::Reply(_)), is_answered, "{what}");
                    elapsed
                });
                let fastest = times.min().expect("two hundred");
                println!("{what}, {key}{} bytes: {fastest:?}", request.0.len());
                assert!(fastest <= REQUEST_TIME_MAX, "{what}, {key}{} bytes: {fastest:?}", request.0.len());
                longest = longest.max(fastest);
            }
        }
    }
    measured("one request", format_args!("{longest:.1?} for the most expensive of 24 kinds"));
}

/// The means can see a leak: a message that is longer by one block of the hash takes longer, every round.
#[test]
fn a_leak_of_one_compression_is_seen() {
    let mut world = World::new();
    let (nonce, tid) = (world.nonce(addr("192.0.2.1:1")), world.tid());
    let named = Writer::new(REFRESH, 0, tid).attr(wire::USERNAME, b"alice");
    let rest = |request: Writer| request.attr(wire::REALM, REALM.as_bytes()).attr(NONCE, &nonce).integrity(b"wrong");
    // SOFTWARE behind the message integrity costs next to nothing; before it, one compression.
    let software = [b's'; 60];
    let longer = rest(named.clone().attr(wire::SOFTWARE, &software)).0;
    let shorter = rest(named).attr(wire::SOFTWARE, &software).0;
    let (longer, shorter) = ([longer], [shorter]);
    let found = middle(|| difference(&time(&mut world, [&longer, &shorter])));
    assert!(found.is_a_leak() && found.t > 0.0, "{found:?}");
}
