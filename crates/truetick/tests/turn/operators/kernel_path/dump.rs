//! `truetick paths dump`: what it writes is compared with what was sent, byte by byte.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use testkit::{Requirement, find_program, require};

use super::scene::{CHANNEL, CLIENT, IPV4, LEN, ROUTER, SERVER, Scene, network};
use crate::operators::namespaces::Network;
use crate::operators::operated::wait;

/// A running `truetick paths dump`.
struct Dumping {
    child: Child,
    stderr: BufReader<ChildStderr>,
    folder: TempDir,
}

impl Dumping {
    /// `None`: the maps of another process are not accessible here.
    fn require(scene: &Scene, arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(crate::server::program());
        command.args(["paths", "dump"]).args(arguments).arg("--out").arg(folder.path().join("pcap"));
        Self::require_by(scene, command, folder)
    }

    fn require_by(scene: &Scene, command: Command, folder: TempDir) -> Option<Self> {
        let started = Self::try_start(scene, command, folder);
        let denied = started.as_ref().err().filter(|line| line.contains("the kernel denies access")).cloned();
        require(Requirement::Privilege, denied.map_or(Ok(()), Err))?;
        Some(started.unwrap_or_else(|line| panic!("{line}")))
    }

    fn try_start(scene: &Scene, mut command: Command, folder: TempDir) -> Result<Self, String> {
        let mut child = scene.network.on(SERVER, || command.stderr(Stdio::piped()).spawn().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let dumping = Self { child, stderr, folder };
        if line.starts_with("packets that the kernel relays from ") { Ok(dumping) } else { Err(line) }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Its status, what it says at its end, and the file.
    fn ended(mut self) -> (Option<i32>, String, Vec<Captured>) {
        wait("the dump's end", || self.has_ended());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let file = fs::read(self.folder.path().join("pcap")).unwrap_or_default();
        (self.child.wait().unwrap().code(), said, read_pcap(&file))
    }
}

impl Drop for Dumping {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Captured {
    at_ns: u64,
    bytes: Vec<u8>,
}

/// Reads a file as `draft-ietf-opsawg-pcap` describes it.
fn read_pcap(file: &[u8]) -> Vec<Captured> {
    let Some((header, mut rest)) = file.split_at_checked(24) else { return Vec::new() };
    let word = |bytes: &[u8], at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    assert_eq!((word(header, 0), &header[4..8], word(header, 20)), (0xa1b2_3c4d, &[2, 0, 4, 0][..], 1));
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let (kept, len, nanoseconds) = (word(rest, 8), word(rest, 12), word(rest, 4));
        assert!(kept == len && len <= word(header, 16) && nanoseconds < 1_000_000_000, "{kept} of {len} bytes");
        let bytes = rest[16..16 + kept as usize].to_vec();
        frames.push(Captured { at_ns: word(rest, 0) * 1_000_000_000 + nanoseconds, bytes });
        rest = &rest[16 + kept as usize..];
    }
    frames
}

/// A link, and the ends of what is sent over it.
struct Way {
    macs: [Vec<u8>; 2],
    ends: [SocketAddr; 2],
    has_channel: bool,
}

impl Way {
    /// Returns the application data of a frame that was sent this way; panics if a field is not as it has to be.
    fn payload_of<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let [from, to] = &self.macs;
        assert_eq!((&frame[..6], &frame[6..12], &frame[12..14]), (&to[..], &from[..], &[8, 0][..]));
        let (ip, udp) = (&frame[14..34], &frame[34..]);
        assert_eq!((ip[0], ip[9], sum(ip, 0)), (0x45, 17, 0xffff));
        let port = |at: usize| u16::from_be_bytes(udp[at..at + 2].try_into().unwrap());
        let address = |at: usize| IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap()));
        assert_eq!([(address(12), port(0)), (address(16), port(2))], self.ends.map(|end| (end.ip(), end.port())));
        assert_eq!((usize::from(port(4)), u16::from_be_bytes([ip[2], ip[3]])), (udp.len(), port(4) + 20));
        let pseudo_header = u64::from(sum(&ip[12..20], 17 + u64::from(port(4))));
        assert_eq!(sum(udp, pseudo_header), 0xffff, "the UDP checksum");
        if !self.has_channel {
            return &udp[8..];
        }
        let (channel, payload) = udp[8..].split_at(4);
        assert_eq!(channel, [CHANNEL.to_be_bytes(), (payload.len() as u16).to_be_bytes()].concat());
        payload
    }
}

/// Ones' complement sum (RFC 1071).
fn sum(bytes: &[u8], start: u64) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = start + words.sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What goes to the peer and back: as received and as sent.
fn ways(scene: &Scene) -> [[Way; 2]; 2] {
    let mac = |place, device| mac(&scene.network, place, device);
    let (client, listen) = (scene.client.socket.local_addr().unwrap(), scene.server.listen);
    let (relayed, peer) = (scene.relayed, scene.peer.local_addr().unwrap());
    let (c0, r0, s0, router) = (mac(SERVER, "c0"), mac(SERVER, "r0"), mac(CLIENT, "s0"), mac(ROUTER, "s0"));
    let way =
        |from: &Vec<u8>, to: &Vec<u8>, ends, has_channel| Way { macs: [from.clone(), to.clone()], ends, has_channel };
    [
        [way(&s0, &c0, [client, listen], true), way(&r0, &router, [relayed, peer], false)],
        [way(&router, &r0, [peer, relayed], false), way(&c0, &s0, [listen, client], true)],
    ]
}

/// Ethernet address of an interface.
fn mac(network: &Network, place: usize, device: &str) -> Vec<u8> {
    let path = format!("/sys/class/net/{device}/address");
    let arguments = ["netns", "exec", &network.names[place], "cat", &path];
    let output = Command::new("ip").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// A payload whose length and bytes say which one it is.
fn payload(number: u32, way: u8) -> Vec<u8> {
    let filler = (0..150 + number % 50).map(|at| (at * 7 + number) as u8);
    number.to_be_bytes().into_iter().chain([way]).chain(filler).collect()
}

/// Relays a payload to the peer and one back, and waits for both.
fn exchange(scene: &mut Scene, number: u32) {
    let [out, back] = [0, 1].map(|way| payload(number, way));
    scene.client.send_channel(CHANNEL, &out);
    let mut received = [0; 2 * LEN];
    let length = scene.peer.recv(&mut received).unwrap();
    assert_eq!(received[..length], out);
    scene.peer.send_to(&back, scene.relayed).unwrap();
    assert_eq!(scene.client.receive_channel(), (CHANNEL, back));
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_dump_has_each_packet_as_received_and_as_sent() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let started_ns = unix_ns();
    let Some(mut dumping) = Dumping::require(&scene, &["--count", "200"]) else { return };
    let mut sent = 0;
    wait("200 packets", || {
        exchange(&mut scene, sent);
        sent += 1;
        dumping.has_ended()
    });
    let (status, said, frames) = dumping.ended();
    assert_eq!((status, said.as_str(), frames.len()), (Some(0), "200 packets written, 0 lost\n", 400));
    let ways = ways(&scene);
    let mut found = Vec::new();
    for pair in frames.chunks(2) {
        let [received, left] = pair else { panic!("an odd number of frames") };
        let way = usize::from(received.bytes[6..12] != ways[0][0].macs[0]);
        let payload_received = ways[way][0].payload_of(&received.bytes);
        let number = u32::from_be_bytes(payload_received[..4].try_into().unwrap());
        assert_eq!(payload_received, payload(number, way as u8));
        assert_eq!(payload_received, ways[way][1].payload_of(&left.bytes));
        assert!(received.bytes[22] == left.bytes[22] + 1, "one hop less");
        assert!(started_ns <= received.at_ns && received.at_ns <= left.at_ns && left.at_ns <= unix_ns());
        found.push((number, way));
    }
    // One in 65,536 checksums looks like a partial one: such a packet went by a socket.
    let expected: Vec<(u32, usize)> = (0..sent).flat_map(|number| [(number, 0), (number, 1)]).collect();
    assert!(found.is_sorted() && found.iter().all(|packet| expected.contains(packet)), "{found:?}");
    assert!(expected.len() <= 210, "{} payloads were sent for 200 packets", expected.len());
    scene.wait_for_kernel();
}

#[test]
fn one_packet_in_ten_of_one_interface_is_dumped_until_a_signal() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let arguments = ["r0", "--every", "10", "--form", "sent"];
    let Some(dumping) = Dumping::require(&scene, &arguments) else { return };
    (0..300).for_each(|number| exchange(&mut scene, number));
    dumping.signal(Signal::SIGINT);
    let (status, said, frames) = dumping.ended();
    let expected = format!("{} packets written, 0 lost\n", frames.len());
    assert_eq!((status, said), (Some(0), expected));
    // Each CPU counts for itself, and the first one of each is written.
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert!((29..=30 + cpus).contains(&frames.len()), "{} frames", frames.len());
    let [_, [_, to_client]] = &ways(&scene);
    for frame in &frames {
        let found = to_client.payload_of(&frame.bytes);
        assert_eq!(found, payload(u32::from_be_bytes(found[..4].try_into().unwrap()), 1));
    }
}

/// Standard output, read by another program.
#[test]
fn tcpdump_reads_a_dump() {
    let Some(_) = require(Requirement::Program, find_program("tcpdump", "tcpdump")) else { return };
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let mut command = Command::new(crate::server::program());
    command.args(["paths", "dump", "--count", "20"]).stdout(Stdio::piped());
    let Some(mut dumping) = Dumping::require_by(&scene, command, tempfile::tempdir().unwrap()) else { return };
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-nnevv", "-r", "-"]).stdin(dumping.child.stdout.take().unwrap());
    let tcpdump = tcpdump.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut number = 0;
    wait("20 packets", || {
        exchange(&mut scene, number);
        number += 1;
        dumping.has_ended()
    });
    let Output { status, stdout, stderr } = tcpdump.wait_with_output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!((text.matches(", ethertype IPv4 ").count(), text.matches("[udp sum ok] UDP, length").count()), (40, 40));
    let peer = scene.peer.local_addr().unwrap();
    assert!(text.contains(&format!("10.92.0.2.{} > 10.93.0.2.{}: [", scene.relayed.port(), peer.port())), "{text}");
}

/// A reader that is too slow costs packets of the dump, which are counted, and none of the relay's.
#[test]
fn packets_that_find_no_room_are_counted() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let relayed = |scene: &Scene| scene.metric("truetick_turn_path_packets_total{direction=\"to_peers\"}");
    // What was relayed before is counted once a second.
    scene.kernel_relayed();
    let before = relayed(&scene);
    // A pipe without a reader.
    let mut command = Command::new(crate::server::program());
    command.args(["paths", "dump", "c0"]).stdout(Stdio::piped());
    let Some(mut dumping) = Dumping::require_by(&scene, command, tempfile::tempdir().unwrap()) else { return };
    scene.peer.set_nonblocking(true).unwrap();
    // Both forms of 400 of them fill the ring of 1 MiB.
    wait("1,000 packets", || {
        (0..50).for_each(|_| scene.client.send_channel(CHANNEL, &[5; 1_400]));
        relayed(&scene) >= before + 1_000
    });
    wait("the last one", || {
        scene.client.send_channel(CHANNEL, b"the last one of all that are sent");
        let mut received = [0; 2_000];
        std::iter::from_fn(|| scene.peer.recv(&mut received).ok()).any(|length| length < 1_400)
    });
    dumping.signal(Signal::SIGINT);
    let mut file = Vec::new();
    dumping.child.stdout.take().unwrap().read_to_end(&mut file).unwrap();
    let (status, said, _) = dumping.ended();
    let (written, rest) = said.split_once(" packets written, ").unwrap();
    let (written, lost): (u64, _) = (written.parse().unwrap(), rest.strip_suffix(" lost\n").unwrap());
    let lost: u64 = lost.parse().unwrap();
    assert_eq!((status, 2 * written), (Some(0), read_pcap(&file).len() as u64), "{said}");
    assert!(lost > 0, "{said}");
    wait("every packet is written or counted", || relayed(&scene) - before == written + lost);
}

/// A dump that is killed, or that hangs, ends in the kernel after two seconds; until then no other one begins.
#[test]
fn a_killed_dump_copies_nothing_and_another_one_begins() {
    let Some(mut scene) = Scene::require_proven(&IPV4, "") else { return };
    let Some(dumping) = Dumping::require(&scene, &[]) else { return };
    exchange(&mut scene, 0);
    let program = crate::server::program();
    let again = |arguments: &[&str]| {
        let output = scene.network.on(SERVER, || {
            Command::new(&program).args(["paths", "dump", "--out", "/dev/null"]).args(arguments).output().unwrap()
        });
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = again(&[]);
    assert_eq!((status, said.as_str()), (Some(1), "truetick: paths dump: another dump of the server's packets runs\n"));
    dumping.signal(Signal::SIGKILL);
    drop(dumping);
    let mut dumping = None;
    wait("another dump begins", || {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(crate::server::program());
        command.args(["paths", "dump", "--count", "1", "--out"]).arg(folder.path().join("pcap"));
        dumping = Dumping::try_start(&scene, command, folder).ok();
        dumping.is_some()
    });
    let mut dumping = dumping.unwrap();
    wait("its packet", || {
        exchange(&mut scene, 77);
        dumping.has_ended()
    });
    let (status, said, frames) = dumping.ended();
    assert_eq!((status, said.as_str()), (Some(0), "1 packets written, 0 lost\n"));
    // What was copied for the first one is not in it.
    let [[received, _], _] = &ways(&scene);
    assert_eq!(received.payload_of(&frames[0].bytes)[..4], 77_u32.to_be_bytes());
}

#[test]
fn a_dump_ends_with_the_server_and_does_not_keep_its_program() {
    let Some(scene) = Scene::require_proven(&IPV4, "") else { return };
    let Some(dumping) = Dumping::require(&scene, &[]) else { return };
    scene.server.signal(Signal::SIGKILL);
    let attached = || {
        let output = scene.network.on(SERVER, || Command::new("ip").args(["link", "show"]).output().unwrap());
        String::from_utf8(output.stdout).unwrap().contains("xdp")
    };
    wait("the program is off", || !attached());
    let (status, said, frames) = dumping.ended();
    assert_eq!(
        (status, said.as_str(), frames.len()),
        (Some(3), "0 packets written, 0 lost; the server has ended\n", 0)
    );
}

#[test]
fn a_dump_that_cannot_begin_says_why_in_one_line() {
    let run = |network: &Network, before: &[&str], arguments: &[&str]| {
        let program = crate::server::program().into_os_string().into_string().unwrap();
        let words = [before, &[&program, "paths", "dump", "--out", "/dev/null"], arguments].concat();
        let output = network.on(SERVER, || Command::new(words[0]).args(&words[1..]).output().unwrap());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let assert_says = |(status, said): (Option<i32>, String), text: &str| {
        assert_eq!((status, said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.starts_with("truetick: paths dump: ") && said.contains(text), "{said}");
    };
    let Some(empty) = require(Requirement::NetNamespace, network("off")) else { return };
    assert_says(run(&empty, &[], &[]), "no interface has an XDP program");
    assert_says(run(&empty, &[], &["c0"]), "no XDP program is on c0: `truetick doctor paths c0` says why");
    assert_says(run(&empty, &[], &["none0"]), "there is no interface none0");
    let Some(scene) = Scene::require_proven(&IPV4, "") else { return };
    let without = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all"];
    assert_says(run(&scene.network, &without, &["c0"]), "run as root");
}
