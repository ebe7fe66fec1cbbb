//! Rules that random frames do not meet, in the machine with a clock of the test.

use tt_model::Nanos;
use tt_model::SplitMix64;
use tt_path::{Direction, Meter, Proof, Reason};

use crate::relay::{Binding, Bucket, Relay};
use crate::subject::{IFINDEX, InMachine, Subject};
use crate::vectors::{self, EPOCH, METERS};
use crate::{check, packet};

/// A subject on a proven interface.
fn proven() -> (InMachine, Relay) {
    let mut subject = InMachine::new();
    let mut relay = vectors::relay(&mut subject);
    let frame = to_peer(&relay.bindings[0], 100);
    for _ in 0..64 {
        assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Proving));
    }
    assert_eq!(subject.proof(), Proof::Proven);
    (subject, relay)
}

fn to_peer(binding: &Binding, len: usize) -> Vec<u8> {
    vectors::frame(binding, Direction::ToPeer, &vec![7; len], &mut SplitMix64::new(1))
}

#[test]
fn a_path_ends_with_time_epoch_heartbeat_and_switch() {
    let (mut subject, mut relay) = proven();
    let frame = to_peer(&relay.bindings[0], 100);
    let until = relay.bindings[0].to_peer.until;
    relay.heartbeat = until;
    subject.set_meta(true, EPOCH, until);
    let mut at = |subject: &mut InMachine, now: u64| {
        subject.0.now = now;
        check::frame(subject, &mut relay, &frame)
    };
    assert_eq!(at(&mut subject, until - 1), Some(Reason::Relayed));
    assert_eq!(at(&mut subject, until), Some(Reason::Stale));
    let (mut subject, mut relay) = proven();
    let started = subject.0.now;
    subject.0.now = started + 1_999_999_999;
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Relayed));
    subject.0.now += 1;
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Stale));
    relay.heartbeat = subject.0.now;
    for (is_on, epoch, reason) in
        [(true, EPOCH, Reason::Relayed), (false, EPOCH, Reason::Stale), (true, EPOCH + 1, Reason::Stale)]
    {
        (relay.is_on, relay.epoch) = (is_on, epoch);
        subject.set_meta(is_on, epoch, relay.heartbeat);
        assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(reason));
    }
}

/// Nothing is allowed until it is set.
#[test]
fn marks_that_may_not_leave_are_removed() {
    let (mut subject, mut relay) = proven();
    for allowed in [0, u64::MAX, 1 << 46] {
        relay.dscp = (0..64).filter(|value| allowed >> value & 1 == 1).collect();
        subject.set_dscp(allowed);
        for traffic_class in [46 << 2 | 2, 5, 3_u8] {
            let mut ipv4 = to_peer(&relay.bindings[0], 100);
            ipv4[15] = traffic_class;
            packet::seal(&mut ipv4[14..34]);
            let mut ipv6 = to_peer(&relay.bindings[6], 100);
            ipv6[14..16].copy_from_slice(&(6 << 12 | u16::from(traffic_class) << 4).to_be_bytes());
            for frame in [ipv4, ipv6] {
                assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Relayed));
            }
        }
    }
}

#[test]
fn a_closed_path_is_no_flow_and_an_extended_one_lives_on() {
    let (mut subject, mut relay) = proven();
    let frame = to_peer(&relay.bindings[0], 100);
    let [mut spec, _] = vectors::specs(&relay.bindings[0]);
    spec.until = Nanos(subject.0.now + 10);
    relay.bindings[0].to_peer.until = subject.0.now + 10;
    subject.open(&spec);
    subject.0.now += 9;
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Relayed));
    subject.0.now += 1;
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Stale));
    spec.until = Nanos(subject.0.now + 1);
    relay.bindings[0].to_peer.until = subject.0.now + 1;
    subject.open(&spec);
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Relayed));
    assert!(subject.close(&spec.key) && !subject.close(&spec.key));
    relay.bindings.remove(0);
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::NoFlow));
}

#[test]
fn a_flow_of_another_kind_or_family_is_not_used() {
    let (mut subject, relay) = proven();
    let frame = to_peer(&relay.bindings[0], 100);
    // The last two bytes of a value: kind and family.
    for (at, value) in [(62, 2), (62, 3), (63, 6)] {
        let kept = std::mem::replace(&mut subject.0.table("flows4").values[at], value);
        let before = subject.reasons()[Reason::NoFlow as usize - 1];
        assert_eq!(subject.run(&frame).action, 2);
        assert_eq!(subject.reasons()[Reason::NoFlow as usize - 1], before + 1);
        subject.0.table("flows4").values[at] = kept;
    }
    assert_eq!(subject.run(&frame).action, 3);
}

#[test]
fn a_meter_gives_a_second_at_once_and_then_its_rate() {
    let (mut subject, mut relay) = proven();
    let frame = to_peer(&relay.bindings[1], 972);
    let meter = METERS[0] as usize;
    // 1 MB/s, and packets of 1,000 bytes with the IPv4 and UDP headers.
    let bucket = Bucket { full_at: 0, byte_ns_fp24: vectors::BYTE_NS_FP24 };
    relay.buckets[meter] = bucket;
    subject.set_meter(METERS[0], Meter { full_at: 0, byte_ns_fp24: bucket.byte_ns_fp24 });
    let mut passed = 0;
    for step in 0..6_000 {
        subject.0.now += 500_000;
        relay.heartbeat = subject.0.now;
        subject.set_meta(true, EPOCH, relay.heartbeat);
        passed += u32::from(check::frame(&mut subject, &mut relay, &frame) == Some(Reason::Relayed));
        assert_eq!(subject.meter_full_at(METERS[0]), relay.buckets[meter].full_at, "{step}");
    }
    // Twice the rate for 3 s: the second of the bucket, and the rate.
    assert!((3_960..=4_040).contains(&passed), "{passed}");
    let path = relay.bindings[1].to_peer.path;
    let tally = subject.tally(path);
    assert_eq!((tally.packets, tally.dropped_meter), (passed.into(), u64::from(6_000 - passed)));
    assert_eq!(tally.bytes, u64::from(passed) * 972);
}

#[test]
fn a_meter_with_a_small_rate_does_not_overflow() {
    let (mut subject, mut relay) = proven();
    let frame = to_peer(&relay.bindings[1], 1400);
    let bucket = Bucket { full_at: 0, byte_ns_fp24: 1_000_000_000 << 24 };
    relay.buckets[METERS[0] as usize] = bucket;
    subject.set_meter(METERS[0], Meter { full_at: 0, byte_ns_fp24: bucket.byte_ns_fp24 });
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Relayed));
    assert_eq!(subject.meter_full_at(METERS[0]), subject.0.now + 1428 * 1_000_000_000);
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::Bandwidth));
}

#[test]
fn a_meter_that_other_cpus_change_hands_the_packet_up() {
    let (mut subject, relay) = proven();
    let frame = to_peer(&relay.bindings[1], 100);
    subject.0.is_contended = true;
    let done = subject.run(&frame);
    assert_eq!((done.action, &done.frame), (2, &frame));
    assert_eq!(subject.reasons()[Reason::Contended as usize - 1], 1);
    assert_eq!(subject.meter_full_at(METERS[0]), 4, "only the other CPU's changes");
}

#[test]
fn without_headroom_the_packet_goes_up_and_its_meter_gets_the_bytes_back() {
    let (mut subject, relay) = proven();
    let now = subject.0.now;
    subject.set_meter(METERS[1], Meter { full_at: now, byte_ns_fp24: vectors::BYTE_NS_FP24 });
    subject.0.headroom = 3;
    let data = vec![1; 100];
    let frame = vectors::frame(&relay.bindings[1], Direction::ToClient, &data, &mut SplitMix64::new(1));
    let done = subject.run(&frame);
    assert_eq!((done.action, &done.frame), (2, &frame));
    assert_eq!(subject.reasons()[Reason::Headroom as usize - 1], 1);
    assert_eq!(subject.meter_full_at(METERS[1]), now);
    assert_eq!(subject.tally(relay.bindings[1].to_client.path).packets, 0);
    subject.0.headroom = 4;
    assert_eq!(subject.run(&frame).action, 4);
}

#[test]
fn an_interface_with_the_same_slot_is_another_one() {
    let (mut subject, relay) = proven();
    let frame = to_peer(&relay.bindings[0], 100);
    subject.0.ifindex = IFINDEX + 64;
    assert_eq!(subject.run(&frame).action, 2);
    assert_eq!(subject.reasons()[Reason::Interface as usize - 1], 1);
}

/// The other end of a veth device does not read what is sent back.
#[test]
fn a_device_that_redirects_gets_what_leaves_by_it_again() {
    let (mut subject, relay) = proven();
    let frame = to_peer(&relay.bindings[0], 100);
    assert_eq!(subject.run(&frame).action, 3);
    subject.0.table("ifaces").values[IFINDEX as usize * 32 + 14] = 1;
    let done = subject.run(&frame);
    assert_eq!((done.action, done.redirected), (4, Some(IFINDEX)));
}

#[test]
fn partial_checksums_fail_the_proof_and_always_go_up() {
    let (mut subject, mut relay) = proven();
    let mut frame = to_peer(&relay.bindings[0], 100);
    let right = frame.clone();
    let at = vectors::udp_at(&frame);
    let (from, to) = vectors::ends(&relay.bindings[0], Direction::ToPeer);
    let partial = packet::partial_checksum(from.ip(), to.ip(), frame.len() - at);
    frame[at + 6..at + 8].copy_from_slice(&partial.to_be_bytes());
    // A proven interface stays proven: a stranger could send this.
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::PartialChecksum));
    assert_eq!(check::frame(&mut subject, &mut relay, &right), Some(Reason::Relayed));
    (relay.proof, relay.proven) = (Proof::Proving, 0);
    subject.prove_again();
    assert_eq!(check::frame(&mut subject, &mut relay, &right), Some(Reason::Proving));
    assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(Reason::PartialChecksum));
    assert_eq!(check::frame(&mut subject, &mut relay, &right), Some(Reason::Unproven));
    (relay.proof, relay.proven) = (Proof::Proving, 0);
    subject.prove_again();
    for _ in 0..64 {
        assert_eq!(check::frame(&mut subject, &mut relay, &right), Some(Reason::Proving));
    }
    assert_eq!(check::frame(&mut subject, &mut relay, &right), Some(Reason::Relayed));
}

#[test]
fn one_packet_in_4096_is_verified_for_life() {
    let (mut subject, mut relay) = proven();
    let mut frame = to_peer(&relay.bindings[0], 100);
    *frame.last_mut().unwrap() ^= 1;
    let verified: Vec<usize> = (1..=8_192)
        .filter(|_| match check::frame(&mut subject, &mut relay, &frame) {
            Some(Reason::BadChecksum) => true,
            reason => {
                assert_eq!(reason, Some(Reason::Relayed));
                false
            }
        })
        .collect();
    assert_eq!(verified, [4_096, 8_192]);
}

#[test]
fn every_length_up_to_the_mtu_is_proven_and_relayed() {
    for len in 0..=1_472 {
        let mut subject = InMachine::new();
        let mut relay = vectors::relay(&mut subject);
        let frame = to_peer(&relay.bindings[0], len);
        let expected = if len < 18 { Reason::TooShort } else { Reason::Proving };
        assert_eq!(check::frame(&mut subject, &mut relay, &frame), Some(expected), "{len}");
        if len >= 18 {
            let mut wrong = frame.clone();
            *wrong.last_mut().unwrap() ^= 0x80;
            assert_eq!(check::frame(&mut subject, &mut relay, &wrong), Some(Reason::BadChecksum), "{len}");
        }
    }
}
