//! The XDP program against a reference relay written from the RFCs: in a machine for BPF, without privileges, and in the
//! kernel by `BPF_PROG_TEST_RUN`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

mod check;
mod hostile;
mod in_kernel;
mod machine;
mod namespaces;
mod next_hops;
mod object;
mod packet;
mod relay;
mod rules;
mod subject;
mod vectors;

use std::collections::BTreeMap;

use testkit::{Requirement, require};
use tt_model::SplitMix64;
use tt_path::{Meter, PathError, Proof, Reason};

use subject::{InKernel, InMachine, Subject};
use vectors::{BYTE_NS_FP24, EPOCH, METERS};

const FRAMES: usize = 30_000;
/// Frames in the machine of an optimised build.
const FRAMES_OPTIMISED: usize = 1_000_000;

/// Loads the program into the kernel; without the privilege, the test is skipped with the kernel's error.
fn require_kernel() -> Option<InKernel> {
    match InKernel::new() {
        Err(error @ PathError::Load { os: Some(1), .. }) => {
            require(Requirement::Privilege, Err(format!("{error} (errno 1)")))
        }
        loaded => Some(loaded.expect("a kernel that permits BPF accepts the program")),
    }
}

/// Random frames; before each, switch, epoch, heartbeat and meters may change.
fn agree(subject: &mut impl Subject, frames: usize, clock_lag_ns: u64) {
    let mut random = SplitMix64::new(17);
    let mut relay = vectors::relay(subject);
    let mut counts: BTreeMap<Option<Reason>, usize> = BTreeMap::new();
    for step in 0..frames {
        let now = subject.now();
        let is_early = step < frames / 20;
        relay.is_on = random.below(100) != 0;
        relay.epoch = if random.below(100) == 0 { EPOCH + 1 } else { EPOCH };
        relay.heartbeat = if random.below(100) == 0 { 1 } else { now };
        subject.set_meta(relay.is_on, relay.epoch, relay.heartbeat);
        relay.dscp = [0..64, 0..1, 32..64, 0..0][random.index(4)].clone().collect();
        subject.set_dscp(relay.dscp.iter().fold(0, |set, value| set | 1 << value));
        for meter in METERS {
            let full_at = if random.below(4) == 0 { now + 10_000_000_000 } else { 0 };
            relay.buckets[meter as usize] = relay::Bucket { full_at, byte_ns_fp24: BYTE_NS_FP24 };
            subject.set_meter(meter, Meter { full_at, byte_ns_fp24: BYTE_NS_FP24 });
        }
        let may_prove = if relay.proof == Proof::Unproven { 50 } else { 500 };
        if !is_early && random.below(may_prove) == 0 {
            (relay.proof, relay.proven) = (Proof::Proving, 0);
            subject.prove_again();
        }
        let frame = if is_early { honest(&relay, &mut random) } else { vectors::any(&relay.bindings, &mut random) };
        *counts.entry(check::frame(subject, &mut relay, &frame)).or_default() += 1;
        for meter in METERS {
            let (expected, found) = (relay.buckets[meter as usize].full_at, subject.meter_full_at(meter));
            let range = expected.saturating_sub(clock_lag_ns)..=expected + clock_lag_ns;
            assert!(range.contains(&found), "{expected} {found}");
        }
    }
    for (path, expected) in relay.tallies.iter().enumerate() {
        assert_eq!(subject.tally(path as u32), *expected, "path {path}");
    }
    // No kernel or single test meets these in random frames; `rules` has them.
    let elsewhere = [Reason::Interface, Reason::Contended, Reason::Headroom, Reason::Lost];
    for reason in Reason::ALL.into_iter().filter(|reason| !elsewhere.contains(reason)) {
        assert!(counts.get(&Some(reason)).is_some_and(|count| *count >= 5), "{reason:?}: {counts:?}");
    }
    assert!(counts[&Some(Reason::Relayed)] > frames / 10 && counts[&None] > 100, "{counts:?}");
}

/// A frame without a defect of a usable binding.
fn honest(relay: &relay::Relay, random: &mut SplitMix64) -> Vec<u8> {
    let binding = relay.bindings[random.index(2) * 6];
    let direction = [tt_path::Direction::ToPeer, tt_path::Direction::ToClient][random.index(2)];
    let len = 40 + random.index(1400);
    let data = vectors::data(len, random);
    vectors::frame(&binding, direction, &data, random)
}

#[test]
fn program_agrees_with_the_reference_relay() {
    let frames = if cfg!(debug_assertions) { FRAMES } else { FRAMES_OPTIMISED };
    agree(&mut InMachine::new(), frames, 0);
}

#[test]
fn program_in_the_kernel_agrees_with_the_reference_relay() {
    let Some(mut subject) = require_kernel() else { return };
    // Between two readings of the clock lie a run and a tick of the coarse clock.
    agree(&mut subject, FRAMES, 5_000_000_000);
}
