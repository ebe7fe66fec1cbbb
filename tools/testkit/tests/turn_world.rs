//! The TURN world itself: that it finds faults, that a seed determines the run, and that the engine passes some seeds.
//!
//! `cargo xtask test worlds` plays hundreds of seeds in the release profile; here are as many as a debug build can.

use testkit::turn_world::{Planted, Script, Size, Telling, minimise, play};

const SEEDS: u64 = 24;
/// A planted fault is found within so many seeds.
const PLANTED_SEEDS_MAX: u64 = 40;

#[test]
fn no_seed_breaks_an_invariant() {
    for seed in 0..SEEDS {
        let outcome = play(&Script::of(seed, Size::Drawn), None, Telling::Hash);
        assert_eq!(outcome.failure, None, "seed {seed}: cargo xtask sim turn --seed {seed}");
    }
}

#[test]
fn a_seed_is_one_story() {
    let hash = |seed| play(&Script::of(seed, Size::Drawn), None, Telling::Hash).hash;
    let hashes: Vec<u64> = (0..8).map(hash).collect();
    assert_eq!(hashes, (0..8).map(hash).collect::<Vec<_>>());
    assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]), "{hashes:x?}");
    // Whether somebody listens makes no difference.
    assert_eq!(play(&Script::of(3, Size::Drawn), None, Telling::Lines).hash, hashes[3]);
}

/// The first seed at which a server with this fault breaks the invariant.
fn found(planted: Planted, invariant: u8) -> Option<u64> {
    (0..PLANTED_SEEDS_MAX).find(|seed| {
        let outcome = play(&Script::of(*seed, Size::Drawn), Some(planted), Telling::Hash);
        outcome.failure.is_some_and(|failure| failure.invariant == invariant)
    })
}

macro_rules! planted {
    ($($name:ident: $planted:ident;)*) => {
        $(#[test]
        fn $name() {
            let planted = Planted::ALL.iter().find(|(planted, _)| *planted == Planted::$planted);
            let (planted, invariant) = planted.expect("it is listed");
            assert!(found(*planted, *invariant).is_some());
        })*
    };
}

planted! {
    invariant_1_finds_a_relay_without_permission: IgnoresPermission;
    invariant_2_finds_an_address_given_twice: SharedAddress;
    invariant_3_finds_a_drop_that_was_not_counted: LosesCount;
    invariant_4_finds_a_second_answer: AnswersTwice;
    invariant_5_finds_state_for_a_stranger: TrustsAnybody;
    invariant_6_finds_a_changed_payload: LeaksPayload;
    invariant_7_finds_late_timers: LateTimers;
    invariant_8_finds_what_is_kept_too_long: HoardsPermissions;
    invariant_9_finds_a_wrong_code: WrongCode;
    invariant_10_finds_a_client_that_gets_no_answers: LosesAnswers;
}

#[test]
fn a_failing_script_shrinks_and_fails_as_before() {
    let planted = Some(Planted::LeaksPayload);
    let script = Script::of(found(Planted::LeaksPayload, 6).expect("it is found"), Size::Drawn);
    let least = minimise(&script, planted, 6, 400);
    let failure = play(&least, planted, Telling::Hash).failure.expect("it still fails");
    assert_eq!(failure.invariant, 6);
    assert!(least.actions.len() <= 8 && script.actions.len() > 20, "{} actions", least.actions.len());
}
