//! Encode an address, parse a message.

use std::hint::black_box;
use std::net::SocketAddr;

use anyhow::ensure;
use tt_model::SplitMix64;
use tt_turn::codec::{Class, Message, Method, XorAddress};

use super::label;
use super::wire::{self, INPUTS, Packed};
use crate::harness::operation::{Label, Operation};

pub(super) fn label_v4() -> Label {
    label("xor_mapped_v4", "XOR-MAPPED-ADDRESS of 65,536 IPv4 addresses encoded", 34.5, "encode the attribute")
}

pub(super) fn label_v6() -> Label {
    label("xor_mapped_v6", "XOR-MAPPED-ADDRESS of 65,536 IPv6 addresses encoded", 125.8, "encode the attribute")
}

pub(super) fn label_parse() -> Label {
    label(
        "stun_parse",
        "Binding request of 84 to 100 bytes with six attributes (USERNAME, PRIORITY, ICE-CONTROLLED, SOFTWARE, \
         MESSAGE-INTEGRITY, FINGERPRINT): header, lengths, attributes indexed in place",
        68.4,
        "zero-copy, header and attributes, nothing allocated",
    )
}

pub(super) fn label_parse_20() -> Label {
    label("stun_parse_20", "Binding request of 20 bytes without attributes", 68.4, "zero-copy, header and attributes")
}

/// Addresses of a run.
const XORS: usize = 8;

/// `XorAddress::encode`, eight addresses a run.
pub(super) struct XorMapped {
    inputs: Vec<[(SocketAddr, [u8; 12]); XORS]>,
}

impl XorMapped {
    pub(super) fn new(v6: bool) -> Self {
        let mut random = SplitMix64::new(if v6 { 6 } else { 4 });
        let runs = INPUTS / XORS;
        let one = |random: &mut SplitMix64| (wire::address(random, v6), random.bytes());
        Self { inputs: (0..runs).map(|_| std::array::from_fn(|_| one(&mut random))).collect() }
    }
}

impl Operation for XorMapped {
    fn per_run(&self) -> u32 {
        XORS as u32
    }

    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        let mut digest = 0;
        for (address, transaction_id) in &self.inputs[index] {
            let value = black_box(XorAddress::encode(*address, transaction_id));
            digest = digest_of(digest, value.as_bytes());
        }
        digest
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let mut digest = 0;
        for (address, transaction_id) in &self.inputs[index] {
            let expected = wire::xor_value(*address, transaction_id);
            let value = XorAddress::encode(*address, transaction_id);
            ensure!(value.as_bytes() == expected, "{address} became {:x?}", value.as_bytes());
            digest = digest_of(digest, &expected);
        }
        Ok(digest)
    }
}

/// The last four bytes: the address's, whatever the family.
#[inline(always)]
fn digest_of(digest: u64, value: &[u8]) -> u64 {
    let last = value.last_chunk::<4>().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    digest.wrapping_add(u64::from(last))
}

/// `Message::parse`.
pub(super) struct Parse {
    datagrams: Packed,
    bare: bool,
}

impl Parse {
    pub(super) fn new(bare: bool) -> Self {
        let mut random = SplitMix64::new(20);
        let mut datagrams = Packed::default();
        for _ in 0..INPUTS {
            let id = random.bytes();
            let (user, software) = (random.bytes::<16>(), random.bytes::<16>());
            let (user, software) = (&user[..8 + random.index(8)], &software[..8 + random.index(8)]);
            let (priority, tie_breaker, mac) = (random.bytes::<4>(), random.bytes::<8>(), random.bytes::<20>());
            let attributes: &[(u16, &[u8])] =
                &[(0x0006, user), (0x0024, &priority), (0x8029, &tie_breaker), (0x8022, software), (0x0008, &mac)];
            let datagram = if bare {
                wire::message(0x0001, &id, &[])
            } else {
                wire::with_fingerprint(wire::message(0x0001, &id, attributes))
            };
            datagrams.push(&datagram);
        }
        Self { datagrams, bare }
    }
}

impl Operation for Parse {
    fn inputs(&self) -> usize {
        self.datagrams.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        match black_box(Message::parse(self.datagrams.get(index))) {
            Ok(message) => digest_message(&message),
            Err(_) => u64::MAX,
        }
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let datagram = self.datagrams.get(index);
        let message = Message::parse(datagram).map_err(|reason| anyhow::anyhow!("{reason:?}: {datagram:x?}"))?;
        ensure!(message.method() == Ok(Method::Binding) && message.class() == Class::Request);
        ensure!(message.transaction_id() == datagram[8..20] && message.bytes() == datagram);
        ensure!(message.has_fingerprint() != self.bare && message.has_valid_fingerprint());
        // PRIORITY is the one attribute here that requires comprehension and is none of a server's.
        ensure!(message.unknown_required() <= 1);
        let words = [8, 12, 16].map(|at| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| datagram[at + byte])));
        let id: u64 = words.into_iter().map(u64::from).sum();
        // A Binding request: method 1, class 0.
        Ok(id + 1 + u64::from(message.unknown_required()) + u64::from(!self.bare))
    }
}

/// Everything that the header says, and whether there is a FINGERPRINT.
#[inline(always)]
fn digest_message(message: &Message<'_>) -> u64 {
    let method = message.method().map_or(0, |method| method as u64);
    let id = message.transaction_id();
    let words: u64 = id.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let counts = u64::from(message.unknown_required()) + u64::from(message.has_fingerprint());
    words + method + message.class() as u64 + counts
}
