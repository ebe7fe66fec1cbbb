//! Whatever comes in: no panic, and in = out + the named drops.

use std::net::SocketAddr;

use proptest::prelude::*;
use tt_turn::relay::RelayId;

use super::vectors::{LONG_TERM, REQUEST, RESPONSE_V4, RESPONSE_V6, bytes};
use super::wire::{self, Writer};
use super::world::{Out, UDP, World, addr, key};

const FROM: &str = "192.0.2.1:1";

/// A world with one allocation, a permission and a channel, and valid messages for it.
fn world_with_messages() -> (World, Vec<Vec<u8>>) {
    let mut world = World::new();
    let (from, peer) = (addr(FROM), addr("8.8.8.8:53"));
    world.allocate(from);
    assert_eq!((world.permit(from, addr("9.9.9.9:9")), world.bind(from, 0x4000, peer)), (0, 0));
    let tid = world.tid();
    let peer_attr = world.peer_attr(peer);
    let number = (wire::CHANNEL_NUMBER, vec![0x40, 1, 0, 0]);
    let mut messages: Vec<Vec<u8>> = [REQUEST, RESPONSE_V4, RESPONSE_V6, LONG_TERM].map(bytes).to_vec();
    messages.push(Writer::new(wire::BINDING, 0, tid).fingerprint().0);
    messages.push(Writer::new(wire::ALLOCATE, 0, tid).attr(wire::TRANSPORT, &UDP).0);
    messages.push(Writer::new(wire::SEND, 1, tid).address(wire::PEER_ADDRESS, peer).attr(wire::DATA, b"hello").0);
    messages.push(vec![0x40, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]);
    for (method, attrs) in [
        (wire::ALLOCATE, vec![(wire::TRANSPORT, UDP.to_vec()), (wire::EVEN_PORT, vec![0])]),
        (wire::REFRESH, vec![(wire::LIFETIME, vec![0, 0, 4, 0])]),
        (wire::CREATE_PERMISSION, vec![peer_attr.clone(), peer_attr.clone()]),
        (wire::CHANNEL_BIND, vec![number, peer_attr]),
    ] {
        messages.push(world.unsigned(from, "alice", method, &attrs).integrity(&key("alice")).fingerprint().0);
    }
    (world, messages)
}

/// One change to a message.
#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Append(Vec<u8>),
    Insert(prop::sample::Index, Vec<u8>),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Change::Cut),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Change::Append),
        1 => (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 4..8))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(a, b)| Change::Swap(a, b)),
    ]
}

fn apply(message: &mut Vec<u8>, change: &Change) {
    if message.is_empty() {
        return;
    }
    match change {
        Change::Set(at, byte) => {
            let at = at.index(message.len());
            message[at] = *byte;
        }
        Change::Cut(at) => message.truncate(at.index(message.len())),
        Change::Append(bytes) => message.extend(bytes),
        Change::Insert(at, bytes) => {
            let at = at.index(message.len());
            message.splice(at..at, bytes.iter().copied());
        }
        Change::Swap(a, b) => {
            let (a, b) = (a.index(message.len()), b.index(message.len()));
            message.swap(a, b);
        }
    }
}

/// Makes the header's length right, so that more of a changed message is read.
fn mend(message: &mut Vec<u8>) {
    if message.len() >= 20 && message[0] < 4 {
        while !message.len().is_multiple_of(4) {
            message.push(0);
        }
        let length = (message.len() - 20) as u16;
        message[2..4].copy_from_slice(&length.to_be_bytes());
    }
}

fn check(world: &mut World, from: SocketAddr, message: &[u8]) -> Result<(), TestCaseError> {
    let before = *world.server.counters();
    let out = world.client(from, message);
    let after = *world.server.counters();
    prop_assert!(after.is_balanced());
    prop_assert_eq!(after.received, before.received + 1);
    match out {
        Out::Reply(bytes) => {
            let reading = wire::Reading::of(&bytes);
            prop_assert_eq!(&bytes[8..20], &message[8..20]);
            prop_assert!(reading.class == 2 || reading.class == 3);
        }
        Out::ToPeer { payload, .. } => prop_assert!(payload.len() <= message.len()),
        Out::ToClient { .. } | Out::ToWorker { .. } | Out::HandOff(_) => prop_assert!(false, "not from a client"),
        Out::Drop(reason) => prop_assert_eq!(after.dropped(reason), before.dropped(reason) + 1),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn changed_messages_close(
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(change(), 0..5), any::<bool>()), 1..40),
    ) {
        let (mut world, messages) = world_with_messages();
        for (pick, changes, mended) in picks {
            let mut message = messages[pick.index(messages.len())].clone();
            changes.iter().for_each(|change| apply(&mut message, change));
            if mended {
                mend(&mut message);
            }
            check(&mut world, addr(FROM), &message)?;
            check(&mut world, addr("[2a00::1]:7"), &message)?;
        }
    }

    #[test]
    fn random_bytes_close(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..40)) {
        let (mut world, _) = world_with_messages();
        for datagram in datagrams {
            check(&mut world, addr(FROM), &datagram)?;
            let relay = RelayId(u32::from(datagram.len() as u8) % 70);
            world.peer(relay, addr("8.8.8.8:53"), &datagram);
            prop_assert!(world.server.counters().is_balanced());
        }
    }

    /// Attributes of known types with any value, rightly signed: the server decides, and answers rightly signed.
    #[test]
    fn any_attributes_with_credentials_are_answered(
        method in prop::sample::select(vec![wire::ALLOCATE, wire::REFRESH, wire::CREATE_PERMISSION, wire::CHANNEL_BIND]),
        attrs in prop::collection::vec((
            prop::sample::select(vec![
                wire::TRANSPORT, wire::LIFETIME, wire::PEER_ADDRESS, wire::CHANNEL_NUMBER, wire::EVEN_PORT,
                wire::ADDRESS_FAMILY, wire::ADDITIONAL_FAMILY, wire::RESERVATION_TOKEN, wire::DONT_FRAGMENT, wire::DATA,
            ]),
            prop::collection::vec(any::<u8>(), 0..24),
        ), 0..6),
    ) {
        let (mut world, _) = world_with_messages();
        let reply = world.ask(addr(FROM), method, &attrs);
        prop_assert!(matches!(reply.code(), 0 | 400 | 403 | 420 | 437 | 440 | 442 | 443 | 508));
    }
}

#[test]
fn a_short_output_buffer_is_a_counted_drop() {
    let (mut world, messages) = world_with_messages();
    for message in &messages {
        for size in [0, 1, 19, 20, 31, 32, 60, 100, 200] {
            world.out = vec![0; size];
            let _ = world.client(addr(FROM), message);
            assert!(world.server.counters().is_balanced());
        }
    }
}
