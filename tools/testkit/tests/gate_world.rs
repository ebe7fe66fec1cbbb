//! The gate world itself: that a seed determines the run, and that the gate passes some seeds.
//!
//! `cargo xtask test worlds` plays hundreds of seeds in an optimised build; here are as many as a debug build can.
//! `cargo xtask qualify planted-worlds` shows that it finds faults: they are planted in the engine.

use testkit::gate_world::{Script, Tally, play};

const SEEDS: u64 = 48;

#[test]
fn no_seed_breaks_an_invariant() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        let outcome = play(&Script::of(seed), false);
        assert_eq!(outcome.failure, None, "seed {seed}: cargo xtask sim gate --seed {seed}");
        tally.add(&outcome.tally);
    }
    // A world in which nothing happens proves nothing.
    let words = tally.to_words();
    assert!(words.iter().filter(|count| **count > 0).count() > Tally::WORDS - 4, "{tally:?}");
    assert!(tally.accepted > SEEDS * 5, "{tally:?}");
}

#[test]
fn a_seed_is_one_story() {
    let hash = |seed| play(&Script::of(seed), false).hash;
    let hashes: Vec<u64> = (0..4).map(hash).collect();
    assert_eq!(hashes, (0..4).map(hash).collect::<Vec<_>>());
    assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]), "{hashes:x?}");
    // Whether somebody listens makes no difference.
    assert_eq!(play(&Script::of(3), true).hash, hashes[3]);
}
