//! The market world itself: that it finds faults, that a seed determines the run, and that the engine passes some seeds.
//!
//! `cargo xtask test worlds` plays hundreds of seeds in the release profile; here are as many as a debug build can.

use testkit::market_world::{Action, Planted, Script, Tally, minimise, play};

const SEEDS: u64 = 12;
/// A planted fault is found within so many seeds.
const PLANTED_SEEDS_MAX: u64 = 40;

#[test]
fn no_seed_breaks_an_invariant() {
    for seed in 0..SEEDS {
        let outcome = play(&Script::of(seed), None, false);
        assert_eq!(outcome.failure, None, "seed {seed}: cargo xtask sim market --seed {seed}");
    }
}

#[test]
fn a_seed_is_one_story() {
    let hash = |seed| play(&Script::of(seed), None, false).hash;
    let hashes: Vec<u64> = (0..4).map(hash).collect();
    assert_eq!(hashes, (0..4).map(hash).collect::<Vec<_>>());
    assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]), "{hashes:x?}");
    // Whether somebody listens makes no difference.
    assert_eq!(play(&Script::of(3), None, true).hash, hashes[3]);
}

/// The first seed at which a world with this fault breaks the invariant.
fn found(planted: Planted) -> Option<u64> {
    let (_, invariant) = Planted::ALL.into_iter().find(|(listed, _)| *listed == planted)?;
    (0..PLANTED_SEEDS_MAX).find(|seed| {
        let outcome = play(&Script::of(*seed), Some(planted), false);
        outcome.failure.is_some_and(|failure| failure.invariant == invariant)
    })
}

macro_rules! planted {
    ($($name:ident: $planted:ident;)*) => {
        $(#[test]
        fn $name() {
            assert!(found(Planted::$planted).is_some());
        })*
    };
}

planted! {
    invariant_1_finds_a_wrong_level: WrongLevel;
    invariant_2_finds_a_stale_book_that_looks_verified: HidesStale;
    invariant_3_finds_a_frame_of_another_epoch: MixesEpochs;
    invariant_4_finds_a_second_request: AsksTwice;
    invariant_5_finds_a_frame_that_was_not_counted: LosesCount;
    invariant_6_finds_books_that_never_heal: LosesSnapshots;
    invariant_7_finds_an_input_that_is_missing_in_the_replay: LosesInput;
    invariant_8_finds_a_message_that_never_reached_its_reader: LosesMessages;
    invariant_9_finds_a_ban_that_is_ignored: IgnoresBan;
}

/// The script of a seed with the planned changes of connections alone.
fn planned(seed: u64, deed: &str) -> Script {
    let script = Script::of(seed);
    let is_planned = |action: &&Action| action.to_string().contains(deed);
    script.with(script.actions.iter().filter(is_planned).copied().collect())
}

#[test]
fn a_connection_takes_over_without_a_gap() {
    let scripts = (0..400).map(|seed| planned(seed, ": Replace ")).filter(|script| !script.actions.is_empty());
    let mut successions = 0;
    for script in scripts.take(12) {
        let outcome = play(&script, None, false);
        assert_eq!(outcome.failure, None, "{}", script.summary());
        let first = script.with(Vec::new());
        let before = play(&first, None, false).tally;
        let held = (outcome.tally.gaps, outcome.tally.resyncs);
        assert_eq!(held, (before.gaps, before.resyncs), "seed {}: {}", script.seed, script.summary());
        successions += outcome.tally.successions;
    }
    assert!(successions > 12, "{successions} connections took over");
}

#[test]
fn an_end_that_is_announced_is_replaced_before_it_comes() {
    let announced = |script: &Script| {
        let venues = script.summary();
        !script.actions.is_empty() && ["Kraken", "Bybit", "Deribit"].iter().all(|venue| !venues.contains(venue))
    };
    let scripts = (0..600).map(|seed| planned(seed, ": PlannedEnd(")).filter(announced);
    let mut successions = 0;
    for script in scripts.take(8) {
        let outcome = play(&script, None, false);
        assert_eq!(outcome.failure, None, "{}", script.summary());
        successions += outcome.tally.successions;
    }
    assert!(successions >= 8, "{successions} connections took over");
}

/// What the first scripts of which `is_it` is true of the summary come to.
fn tally_of(scripts: usize, is_it: impl Fn(&str) -> bool) -> Tally {
    let mut sum = Tally::default();
    for script in (0..).map(Script::of).filter(|script| is_it(&script.summary())).take(scripts) {
        let outcome = play(&script, None, false);
        assert_eq!(outcome.failure, None, "seed {}: {}", script.seed, script.summary());
        sum.add(&outcome.tally);
    }
    sum
}

#[test]
fn slow_readers_get_marks_for_what_they_and_the_publisher_lost() {
    let tally = tally_of(10, |summary| !summary.contains("; 0 readers"));
    assert!(tally.messages > 1_000 && tally.marks > 10, "{tally:?}");
    assert!(tally.unread > tally.marks && tally.unsent > 10, "{tally:?}");
}

#[test]
fn feeds_of_one_address_wait_for_its_limits_and_bans() {
    let tally = tally_of(10, |summary| summary.starts_with("Binance") && !summary.contains("; 0 share"));
    assert!(tally.put_off > 10 && tally.banned > 0 && tally.repeated > 0, "{tally:?}");
}

#[test]
fn a_failure_is_minimised_to_what_breaks_the_same_invariant() {
    let planted = Planted::HidesStale;
    let seed = found(planted).expect("the planted fault is found");
    let script = Script::of(seed);
    let least = minimise(&script, Some(planted), 2, 200);
    assert!(least.actions.len() < script.actions.len() || script.actions.len() == 1);
    let failure = play(&least, Some(planted), false).failure.expect("what is left still breaks it");
    assert_eq!(failure.invariant, 2);
}
