//! Codec and framing: cases A01 to A25.

use tt_turn::DropReason;

use super::vectors::{LONG_TERM, REQUEST, RESPONSE_V4, bytes};
use super::wire::{self, BINDING, Reading, Writer};
use super::world::{Out, UDP, World, addr, config, key};

fn binding(world: &mut World) -> Writer {
    let tid = world.tid();
    Writer::new(BINDING, 0, tid)
}

#[test]
fn case_a01_short_datagrams() {
    let mut world = World::new();
    let message = binding(&mut world).0;
    for len in 0..20 {
        world.dropped(addr("192.0.2.1:1"), &message[..len], DropReason::Short);
    }
    world.probe();
}

#[test]
fn case_a02_first_bytes_of_other_protocols() {
    let mut world = World::new();
    for first in (4u8..16).chain(80..128).chain(192..=255) {
        let mut message = binding(&mut world).0;
        message[0] = first;
        let from = addr("192.0.2.1:1");
        let before = world.server.counters().received;
        assert!(matches!(world.client(from, &message), Out::Drop(DropReason::NotStun | DropReason::Method)), "{first}");
        assert_eq!(world.server.counters().received, before + 1);
    }
    world.probe();
}

#[test]
fn case_a03_a04_cookie_and_length() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    for at in 4..8 {
        let mut message = binding(&mut world).0;
        message[at] ^= 0x10;
        world.dropped(from, &message, DropReason::NotStun);
    }
    for length in [1, 2, 3, 4, 8, 0xFFFC, 0xFFFF] {
        let mut message = binding(&mut world);
        message.set_length(length);
        world.dropped(from, &message.0, DropReason::Length);
    }
    for junk in 1..9 {
        let mut message = binding(&mut world).0;
        message.extend(vec![0; junk]);
        world.dropped(from, &message, DropReason::Length);
    }
    world.probe();
}

#[test]
fn case_a07_attribute_past_the_end() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    for length in [5u16, 8, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF] {
        let mut message = binding(&mut world).attr(wire::SOFTWARE, b"four").0;
        message[22..24].copy_from_slice(&length.to_be_bytes());
        world.dropped(from, &message, DropReason::Attribute);
    }
    world.probe();
}

/// A datagram of a client, or of the peer that it has permitted.
enum Step {
    Client(Vec<u8>),
    Peer(Vec<u8>),
}

impl Step {
    /// Plays it from `offset` bytes behind an aligned address.
    fn play(&self, world: &mut World, relay: tt_turn::relay::RelayId, offset: usize) -> Out {
        let at = |datagram: &[u8]| [&vec![0; offset], datagram].concat();
        match self {
            Self::Client(datagram) => world.client(addr(CLIENT), &at(datagram)[offset..]),
            Self::Peer(datagram) => world.peer(relay, addr(PEER), &at(datagram)[offset..]),
        }
    }
}

const CLIENT: &str = "192.0.2.1:1";
const PEER: &str = "8.8.8.8:53";

/// What a client and its peer send in a short life, and much that they should not.
fn corpus() -> Vec<Step> {
    let (mut world, from) = (World::new(), addr(CLIENT));
    let mut datagrams = [REQUEST, LONG_TERM, RESPONSE_V4].map(bytes).to_vec();
    let allocate = world.unsigned(from, "alice", wire::ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
    let allocate = allocate.integrity(&key("alice")).0;
    datagrams.extend((0..=allocate.len()).map(|len| allocate[..len].to_vec()));
    for at in 0..allocate.len() {
        let mut changed = allocate.clone();
        changed[at] ^= 1 << (at % 8);
        datagrams.push(changed);
    }
    let peer = world.peer_attr(addr(PEER));
    let permit = world.unsigned(from, "alice", wire::CREATE_PERMISSION, &[peer]);
    datagrams.push(permit.integrity(&key("alice")).fingerprint().0);
    let bind = [(wire::CHANNEL_NUMBER, vec![0x40, 0, 0, 0]), world.peer_attr(addr(PEER))];
    datagrams.push(world.unsigned(from, "alice", wire::CHANNEL_BIND, &bind).integrity(&key("alice")).0);
    let unknown: Vec<_> = (0..5).map(|number| (0x7000 + number, vec![1; usize::from(number)])).collect();
    datagrams.push(world.unsigned(from, "alice", wire::REFRESH, &unknown).integrity(&key("alice")).0);
    let mut steps: Vec<_> = datagrams.into_iter().map(Step::Client).collect();
    for len in 0..9 {
        let tid = world.tid();
        let send = Writer::new(wire::SEND, 1, tid).address(wire::PEER_ADDRESS, addr(PEER));
        steps.push(Step::Client(send.attr(wire::DATA, &vec![7; len]).0));
        steps.push(Step::Client([&[0x40, 0, 0, len as u8][..], &vec![8; len]].concat()));
        steps.push(Step::Client([&[0x40, 0, 0, 9][..], &vec![8; len]].concat()));
        steps.push(Step::Client(binding(&mut world).attr(wire::SOFTWARE, &vec![b's'; len]).fingerprint().0));
        steps.push(Step::Peer(vec![9; len]));
    }
    steps
}

#[test]
fn case_a08_any_alignment_gives_the_same_bytes() {
    let steps = corpus();
    let relay = World::new().allocate(addr(CLIENT)).0;
    let play = |offset: usize| {
        let mut world = World::new();
        let outs: Vec<_> = steps.iter().map(|step| step.play(&mut world, relay, offset)).collect();
        (outs, *world.server.counters())
    };
    let aligned = play(0);
    assert!(aligned.1.relayed() >= 27, "{:?}", aligned.1);
    for offset in 1..8 {
        assert!(play(offset) == aligned, "at offset {offset}");
    }
}

#[test]
fn case_a09_four_thousand_empty_attributes() {
    let mut world = World::new();
    let mut fastest = |count: usize| {
        let mut message = binding(&mut world);
        message.0.extend([0x80, 0x22, 0, 0].repeat(count));
        message.set_length(4 * count);
        let times = (0..50).map(|_| {
            let started = testkit::cpu_time();
            let reply = world.client(addr("192.0.2.1:1"), &message.0).reply();
            let elapsed = testkit::cpu_time() - started;
            assert_eq!((reply.code(), reply.bytes.len()), (0, 32));
            elapsed
        });
        times.min().expect("fifty").as_secs_f64()
    };
    let ratio = fastest(4_000) / fastest(1_000);
    assert!(ratio < 8.0, "four times the attributes, {ratio:.1} times the time: four is linear, sixteen is square");
}

#[test]
fn case_a10_unknown_required_attributes() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    let attrs: Vec<(u16, Vec<u8>)> = (0..300).map(|number| (0x4000 + number, Vec::new())).collect();
    let request = world.unsigned(from, "alice", wire::REFRESH, &attrs).integrity(&key("alice")).0;
    let reply = world.client(from, &request).reply();
    assert_eq!(reply.code(), 420);
    assert!(reply.is_signed(&key("alice")) && reply.bytes.len() <= request.len());
    let listed: Vec<u8> = (0..300u16).flat_map(|number| (0x4000 + number).to_be_bytes()).collect();
    assert_eq!(reply.get(wire::UNKNOWN_ATTRIBUTES), Some(&listed[..]));
    // Without credentials 401 comes first (R010); Binding needs none.
    let tid = world.tid();
    let bare = Writer::new(wire::ALLOCATE, 0, tid).attr(0x4000, &[]).0;
    assert_eq!(world.client(from, &bare).reply().code(), 401);
    let unknown = binding(&mut world).attr(0x7FFE, &[1, 2, 3]).attr(0x0024, &[]).attr(0x0025, &[]).0;
    let reply = world.client(from, &unknown).reply();
    assert_eq!((reply.code(), reply.get(wire::UNKNOWN_ATTRIBUTES)), (420, Some(&[0x7F, 0xFE, 0, 0x24, 0, 0x25][..])));
    // Comprehension-optional ones and known ones out of place are passed over (R007, R008).
    let optional =
        binding(&mut world).attr(0x8FFF, &[1]).attr(wire::MAPPED_ADDRESS, &[9; 3]).attr(wire::LIFETIME, &[]).0;
    assert_eq!(world.client(from, &optional).reply().code(), 0);
}

#[test]
fn case_a17_a18_fingerprint() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    let right = binding(&mut world).fingerprint().0;
    let reply = world.client(from, &right).reply();
    assert!(reply.get(wire::FINGERPRINT).is_some());
    for bit in 0..32 {
        let mut wrong = right.clone();
        wrong[24 + bit / 8] ^= 1 << (bit % 8);
        world.dropped(from, &wrong, DropReason::Fingerprint);
    }
    let not_last = binding(&mut world).fingerprint().attr(wire::SOFTWARE, b"x").0;
    world.dropped(from, &not_last, DropReason::Fingerprint);
    let twice = binding(&mut world).fingerprint().fingerprint().0;
    world.dropped(from, &twice, DropReason::Fingerprint);
    for length in [0, 3, 5] {
        let odd = binding(&mut world).attr(wire::FINGERPRINT, &[0; 5][..length]).0;
        world.dropped(from, &odd, DropReason::Fingerprint);
    }
    // Not asked for, not given.
    let plain = binding(&mut world).0;
    assert_eq!(world.client(from, &plain).reply().kinds(), [wire::MAPPED_ADDRESS]);
    world.probe();
}

#[test]
fn case_a19_padding_in_is_ignored_and_out_is_zero() {
    let mut config = config();
    config.software = Some("truetick!".into());
    let mut world = World::with(config, super::world::quotas(), super::world::capacity(), super::world::secrets(1));
    let from = addr("192.0.2.1:1");
    let mut message = binding(&mut world).attr(wire::SOFTWARE, b"odd!!").0;
    message[29..32].fill(0xFF);
    // The buffer is full of 0xEE before every call; `Reading` asserts that padding is zero.
    let reply = world.client(from, &message).reply();
    assert_eq!(reply.get(wire::SOFTWARE), Some(&b"truetick!"[..]));
    world.nonce(from);
    let (relay, _) = world.allocate(from);
    for len in 0..8 {
        let peer = addr("8.8.8.8:53");
        assert_eq!(world.permit(from, peer), 0);
        let Out::ToClient { bytes, .. } = world.peer(relay, peer, &vec![7; len]) else { panic!("not relayed") };
        assert_eq!(Reading::of(&bytes).get(wire::DATA), Some(&vec![7; len][..]));
    }
}

#[test]
fn case_a20_a21_a22_what_a_server_is_never_sent() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    let mut send = |method: u16, class: u16, reason: DropReason| {
        let tid = world.tid();
        let message = Writer::new(method, class, tid).0;
        world.dropped(from, &message, reason);
    };
    for method in [BINDING, wire::ALLOCATE, wire::REFRESH, wire::SEND, wire::DATA_METHOD, wire::CREATE_PERMISSION] {
        send(method, 2, DropReason::Class);
        send(method, 3, DropReason::Class);
    }
    send(wire::DATA_METHOD, 1, DropReason::Class);
    send(wire::ALLOCATE, 1, DropReason::Method);
    send(wire::REFRESH, 1, DropReason::Method);
    send(wire::CREATE_PERMISSION, 1, DropReason::Method);
    send(wire::CHANNEL_BIND, 1, DropReason::Method);
    send(wire::SEND, 0, DropReason::Method);
    send(wire::DATA_METHOD, 0, DropReason::Method);
    send(BINDING, 1, DropReason::BindingIndication);
    for method in [0x000, 0x002, 0x005, 0x00A, 0x011, 0x101, 0xFFF] {
        send(method, 0, DropReason::Method);
    }
    world.probe();
}

#[test]
fn case_a23_classic_stun_without_a_cookie() {
    let mut world = World::new();
    let mut message = binding(&mut world).0;
    message[4..8].copy_from_slice(&[1, 2, 3, 4]);
    world.dropped(addr("192.0.2.1:1"), &message, DropReason::NotStun);
}

#[test]
fn case_a24_odd_usernames() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    for name in [&b""[..], &[0xFF, 0xFE], b"a\0b", b"a\r\nb", b"\x1B[31m", b"%s%n", &[b'a'; 513], &[b'a'; 764]] {
        let nonce = world.nonce(from);
        let tid = world.tid();
        let request = Writer::new(wire::ALLOCATE, 0, tid)
            .attr(wire::TRANSPORT, &UDP)
            .attr(wire::USERNAME, name)
            .attr(wire::REALM, b"example.org")
            .attr(wire::NONCE, &nonce)
            .integrity(b"whatever");
        assert_eq!(world.client(from, &request.0).reply().code(), 401);
    }
    world.probe();
}

#[test]
fn case_a25_address_attributes_of_a_bad_family_or_length() {
    let mut world = World::new();
    let from = addr("192.0.2.1:1");
    world.allocate(from);
    assert_eq!(world.permit(from, addr("8.8.8.8:53")), 0);
    let (_, right) = world.peer_attr(addr("8.8.8.8:53"));
    for (family, len) in [(0, 8), (3, 8), (1, 7), (1, 0), (1, 20), (2, 8), (2, 19), (1, 4)] {
        let mut value = [&right[..], &[0; 12]].concat();
        value.truncate(len);
        if let Some(byte) = value.get_mut(1) {
            *byte = family;
        }
        assert_eq!(world.ask(from, wire::CREATE_PERMISSION, &[(wire::PEER_ADDRESS, value.clone())]).code(), 400);
        let number = (wire::CHANNEL_NUMBER, vec![0x40, 0, 0, 0]);
        assert_eq!(world.ask(from, wire::CHANNEL_BIND, &[number, (wire::PEER_ADDRESS, value.clone())]).code(), 400);
        let tid = world.tid();
        let send = Writer::new(wire::SEND, 1, tid).attr(wire::PEER_ADDRESS, &value).attr(wire::DATA, b"x").0;
        world.dropped(from, &send, DropReason::SendMalformed);
    }
    // The first byte of an address attribute is not looked at (R023).
    let mut reserved = right;
    reserved[0] = 0xFF;
    assert_eq!(world.ask(from, wire::CREATE_PERMISSION, &[(wire::PEER_ADDRESS, reserved)]).code(), 0);
}

#[test]
fn rfc_r005_every_method_and_class_round_trips() {
    use tt_turn::codec::Message;
    for method in 0..0x1000u16 {
        for class in 0..4 {
            let bytes = Writer::new(method, class, [1; 12]).0;
            let message = Message::parse(&bytes).expect("a message");
            assert_eq!(message.class() as u16, class);
            assert_eq!(message.method().map_or_else(|number| number, |known| known as u16), method);
        }
    }
}

#[test]
fn rfc_r004_r013_binding_answers_the_source_over_both_families() {
    let mut world = World::new();
    for from in ["192.0.2.1:32853", "[2001:db8::77]:9", "255.255.255.255:65535"] {
        let message = binding(&mut world).0;
        let reply = world.client(addr(from), &message).reply();
        assert_eq!((reply.code(), reply.address(wire::MAPPED_ADDRESS)), (0, Some(addr(from))));
        assert_eq!(reply.bytes[8..20], message[8..20]);
    }
    // A dual-stack socket reports IPv4 clients as mapped ones.
    let message = binding(&mut world).0;
    let reply = world.client(addr("[::ffff:192.0.2.9]:5"), &message).reply();
    assert_eq!(reply.address(wire::MAPPED_ADDRESS), Some(addr("192.0.2.9:5")));
}
