//! The ladder against a sorted map.

use super::*;
use crate::drop_reason::DropReason;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::vec::Vec;

extern crate std;

/// What a ladder must hold.
#[derive(Default)]
struct Reference(BTreeMap<i64, i64>);

impl Reference {
    fn set(&mut self, key: i64, qty: i64) {
        if qty == 0 {
            self.0.remove(&key);
        } else {
            self.0.insert(key, qty);
        }
    }

    fn best_first(&self) -> Vec<(i64, i64)> {
        self.0.iter().rev().map(|(key, qty)| (*key, *qty)).collect()
    }
}

fn levels_of(ladder: &Ladder, slab: &PageSlab) -> Vec<(i64, i64)> {
    let mut levels = Vec::new();
    ladder.walk(slab, |key, qty| {
        levels.push((key, qty));
        true
    });
    levels
}

/// Steps from a level to the next worse one.
fn gap() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 1_i64..100, 2 => 100_i64..5_000, 1 => 5_000_i64..100_000]
}

fn check(ladder: &Ladder, slab: &PageSlab, reference: &Reference) {
    assert_eq!(levels_of(ladder, slab), reference.best_first());
    assert_eq!(ladder.levels(slab).collect::<Vec<_>>(), reference.best_first());
    assert!(reference.0.iter().all(|(key, qty)| ladder.qty(slab, *key) == *qty));
    assert_eq!(ladder.len(), reference.0.len());
    assert_eq!(ladder.best(slab), reference.best_first().first().copied());
    assert_eq!(ladder.worst(slab), reference.best_first().last().copied());
}

/// A price near the touch, farther away, or outside of any window around it; and where the touch goes.
fn step() -> impl Strategy<Value = (i64, i64, i64)> {
    let distance = prop_oneof![6 => -200_i64..200, 3 => -40_000_i64..40_000, 1 => -3_000_000_i64..3_000_000];
    let drift = prop_oneof![40 => Just(0_i64), 4 => -300_i64..300, 1 => -150_000_i64..150_000];
    (distance, prop_oneof![Just(0_i64), 1_i64..1000], drift)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ladder_holds_what_a_sorted_map_holds(start in -1_000_000_i64..1_000_000, steps in prop::collection::vec(step(), 1..400),
                                              settle_each in 1_usize..12) {
        let mut slab = PageSlab::new(4096);
        let mut ladder = Ladder::new(4096);
        let mut reference = Reference::default();
        let mut touch = start;
        for (i, (distance, qty, drift)) in steps.into_iter().enumerate() {
            touch += drift;
            let old = reference.0.get(&(touch + distance)).copied().unwrap_or(0);
            prop_assert_eq!(ladder.replace(&mut slab, touch + distance, qty), Replaced::Level(old));
            reference.set(touch + distance, qty);
            if i % settle_each == 0 {
                ladder.settle(&mut slab);
                check(&ladder, &slab, &reference);
            }
        }
        ladder.settle(&mut slab);
        check(&ladder, &slab, &reference);
        prop_assert_eq!(ladder.dropped(), 0);
        ladder.clear(&mut slab);
        prop_assert_eq!((ladder.len(), slab.used()), (0, 0));
    }

    /// A side that is filled at once holds all of its levels, and at the cap says how many it does not; again and again
    /// in the same ladder.
    #[test]
    fn a_filled_ladder_holds_the_side(
        sides in prop::collection::vec((-1_000_000_i64..1_000_000, prop::collection::vec((gap(), 1_i64..1000), 0..300)), 1..4),
        (pages, overflow) in prop_oneof![3 => Just((4096_usize, 4096_usize)), 1 => (1_usize..20, 0_usize..20)],
    ) {
        let (mut slab, mut ladder) = (PageSlab::new(pages), Ladder::new(overflow));
        for (best, steps) in sides {
            let mut key = best;
            let levels: Vec<(i64, i64)> = steps.into_iter().map(|(gap, qty)| { key -= gap; (key, qty) }).collect();
            ladder.clear(&mut slab);
            prop_assert_eq!((ladder.len(), slab.used()), (0, 0));
            prop_assert_eq!(ladder.fill(&mut slab, &levels, |level| Ok(*level)), Ok(()));
            ladder.settle(&mut slab);
            let kept = levels_of(&ladder, &slab);
            prop_assert_eq!((kept.len(), kept.len() + ladder.dropped() as usize), (ladder.len(), levels.len()));
            prop_assert!(pages < 4096 || kept.len() == levels.len());
            let mut rest = levels.iter();
            prop_assert!(kept.iter().all(|level| rest.any(|other| other == level)), "in order, and nothing else");
            prop_assert_eq!(ladder.best(&slab), levels.first().copied());
            prop_assert_eq!(ladder.worst(&slab), kept.last().copied());
            // What is set afterwards finds the levels where they are.
            for (key, _) in &kept {
                ladder.set(&mut slab, *key, 0);
            }
            prop_assert_eq!((ladder.len(), slab.used()), (0, 0));
        }
    }

    /// At the cap the best levels stay right, or the ladder says that it does not know them.
    #[test]
    fn a_full_ladder_never_claims_a_wrong_best(steps in prop::collection::vec(step(), 50..600)) {
        let mut slab = PageSlab::new(3);
        let mut ladder = Ladder::new(8);
        let mut reference = Reference::default();
        for (distance, qty, drift) in steps {
            let key = distance + drift;
            ladder.set(&mut slab, key, qty);
            reference.set(key, qty);
            ladder.settle(&mut slab);
            let kept = levels_of(&ladder, &slab);
            prop_assert_eq!(kept.len(), ladder.len());
            prop_assert!(kept.windows(2).all(|pair| pair[0].0 > pair[1].0));
            if ladder.knows_best(&slab) {
                prop_assert_eq!(ladder.best(&slab), reference.best_first().first().copied());
            } else {
                prop_assert!(ladder.dropped() > 0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A reader of what became of each level has the ladder's levels at the cap too.
    #[test]
    fn a_full_ladder_reports_each_level_that_it_drops(steps in prop::collection::vec(step(), 50..600), pages in 3_usize..40) {
        let mut slab = PageSlab::new(pages);
        let mut ladder = Ladder::new(8);
        let mut mirror = Reference::default();
        for (distance, qty, drift) in steps {
            let key = distance + drift;
            let dropped = match ladder.replace(&mut slab, key, qty) {
                Replaced::Level(old) => {
                    prop_assert_eq!(mirror.0.get(&key).copied().unwrap_or(0), old);
                    mirror.set(key, qty);
                    ladder.dropped()
                }
                Replaced::Displaced { old, worst } => {
                    prop_assert_eq!(mirror.0.remove(&worst.0), Some(worst.1));
                    prop_assert_eq!(mirror.0.get(&key).copied().unwrap_or(0), old);
                    mirror.set(key, qty);
                    ladder.dropped()
                }
                Replaced::Refused => ladder.dropped(),
                Replaced::Page => u64::MAX,
            };
            ladder.settle(&mut slab);
            let kept = levels_of(&ladder, &slab);
            prop_assert_eq!(&ladder.levels(&slab).collect::<Vec<_>>(), &kept);
            if ladder.dropped() != dropped {
                mirror.0 = kept.iter().copied().collect();
            }
            prop_assert_eq!(mirror.best_first(), kept);
        }
    }
}

#[test]
fn a_side_that_is_out_of_order_or_holds_nothing_fills_no_ladder() {
    let off_step: &[Result<(i64, i64), DropReason>] = &[Ok((9, 1)), Err(DropReason::OffTickSize)];
    let sides = [
        (&[Ok((9, 1)), Ok((9, 2))][..], DropReason::SnapshotOrder),
        (&[Ok((9, 1)), Ok((8, 2)), Ok((70, 2))], DropReason::SnapshotOrder),
        (&[Ok((-900_000, 1)), Ok((-999_999, 2)), Ok((-900_001, 2))], DropReason::SnapshotOrder),
        (&[Ok((9, 0))], DropReason::SnapshotOrder),
        (off_step, DropReason::OffTickSize),
    ];
    let (mut slab, mut ladder) = (PageSlab::new(16), Ladder::new(16));
    for (side, reason) in sides {
        assert_eq!(ladder.fill(&mut slab, side, |level| *level), Err(reason), "{side:?}");
        ladder.clear(&mut slab);
        assert_eq!((ladder.len(), slab.used(), ladder.best(&slab)), (0, 0, None), "{side:?}");
    }
}

#[test]
fn case_m35_a_flood_of_far_prices_keeps_the_touch() {
    let mut slab = PageSlab::new(2000);
    let mut ladder = Ladder::new(100);
    ladder.set(&mut slab, 1_000_000, 5);
    for i in 0..1_000_000_i64 {
        ladder.set(&mut slab, 900_000 - i * 7, 1);
    }
    ladder.settle(&mut slab);
    assert_eq!(ladder.best(&slab), Some((1_000_000, 5)));
    assert!(ladder.knows_best(&slab) && ladder.dropped() > 900_000);
    assert!(slab.used() <= 1024);
}
