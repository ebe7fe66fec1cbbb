//! Every level of captured books, after every update: the engine's, those of a reader of its changes, and the true ones.

use crate::captured::{Capture, Feed};
use crate::truth::{Book, Truth};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tt_market::BookSide;
use tt_market::changes::{BookEventKind, LevelChange};
use tt_model::InstrumentId;

/// Both sides as (price, quantity), best first.
type Sides = [Vec<(i64, i64)>; 2];

/// A book that knows the engine's changes alone.
#[derive(Default)]
struct Mirror([BTreeMap<i64, i64>; 2]);

impl Mirror {
    fn replace(&mut self, sides: &Sides) {
        self.0 = sides.clone().map(|side| side.into_iter().collect());
    }

    fn apply(&mut self, change: &LevelChange) {
        let side = &mut self.0[change.side as usize];
        let old =
            if change.new_qty.0 == 0 { side.remove(&change.px.0) } else { side.insert(change.px.0, change.new_qty.0) };
        assert_eq!(old.unwrap_or(0), change.old_qty.0, "{change:?}");
        assert_ne!(change.old_qty, change.new_qty);
    }

    fn sides(&self) -> Sides {
        let [bids, asks] = &self.0;
        let level = |(px, qty): (&i64, &i64)| (*px, *qty);
        [bids.iter().rev().map(level).collect(), asks.iter().map(level).collect()]
    }
}

fn sides_of(feed: &Feed, id: InstrumentId) -> Sides {
    [BookSide::Bid, BookSide::Ask]
        .map(|side| feed.engine.levels(id, side).unwrap().map(|level| (level.px.0, level.qty.0)).collect())
}

fn hash(sides: &Sides) -> u64 {
    let mut hasher = DefaultHasher::new();
    sides.hash(&mut hasher);
    hasher.finish()
}

/// The books of the first instrument after each update, in one row for each snapshot: update id, hash and levels.
fn books(capture: &Capture) -> Vec<Vec<(u64, u64, usize)>> {
    let mut feed = Feed::new(capture);
    feed.engine.follow_changes(4096);
    let mut mirrors: Vec<Mirror> = capture.specs.iter().map(|_| Mirror::default()).collect();
    let (mut rows, mut last_ids) = (Vec::new(), vec![0; mirrors.len()]);
    for frame in &capture.frames {
        let _ = feed.feed(frame);
        let mut changed = None;
        while let Some(event) = feed.engine.poll_book_event() {
            let (id, kind, update_id) = (event.instrument, event.kind, event.update_id);
            let mirror = &mut mirrors[id.0 as usize];
            event.changes.iter().for_each(|change| mirror.apply(change));
            if kind == BookEventKind::Delta {
                assert_eq!(event.previous_id, last_ids[id.0 as usize], "no update is left out");
            }
            last_ids[id.0 as usize] = update_id;
            changed = (kind != BookEventKind::Status).then_some((id, kind, update_id)).or(changed);
        }
        let Some((id, kind, update_id)) = changed else { continue };
        let (mirror, sides) = (&mut mirrors[id.0 as usize], sides_of(&feed, id));
        let lens = feed.engine.levels_len(id).unwrap();
        assert_eq!((sides[0].len(), sides[1].len()), lens);
        if kind == BookEventKind::Snapshot {
            mirror.replace(&sides);
        }
        assert!(mirror.sides() == sides, "{} after {update_id}", capture.specs[id.0 as usize].symbol);
        if id.0 == 0 {
            if kind == BookEventKind::Snapshot {
                rows.push(Vec::new());
            }
            let row: &mut Vec<_> = rows.last_mut().unwrap();
            row.push((update_id, hash(&sides), lens.0.max(lens.1)));
        }
    }
    rows
}

/// Holds every level against the truth; the book has at least `levels_min` levels of a side.
fn check(mut capture: Capture, levels_min: usize) {
    capture.frames.truncate(3000);
    let truth = Truth::of(&capture, 0);
    let row = books(&capture).into_iter().max_by_key(Vec::len).unwrap();
    let (mut book, mut at): (Book, usize) = (truth.start.clone(), 0);
    let mut compared = 0;
    // The snapshot itself may hold what was kept for it.
    for (update_id, hashed, _) in &row[1..] {
        loop {
            let update = &truth.updates[at];
            book.apply(update, truth.spec.depth_max);
            at += 1;
            if update.last_id == 0 || update.last_id >= *update_id {
                assert!(update.last_id == *update_id || update.last_id == 0);
                break;
            }
        }
        assert_eq!(hash(&book.levels(usize::MAX)), *hashed, "{} after {update_id}", truth.spec.symbol);
        compared += 1;
    }
    assert_eq!(at, truth.updates.len(), "{}", truth.spec.symbol);
    assert!(compared > 0 && row.iter().any(|(_, _, levels)| *levels >= levels_min), "{}", truth.spec.symbol);
}

#[test]
fn every_level_of_usdm_is_the_true_one_after_every_update() {
    let Some(capture) = Capture::require_usdm() else { return };
    check(capture, 300);
}

#[test]
fn every_level_of_spot_is_the_true_one_after_every_update() {
    let Some(capture) = Capture::require_spot() else { return };
    check(capture, 1000);
}

#[test]
fn every_level_of_coinm_is_the_true_one_after_every_update() {
    let Some(capture) = Capture::require_coinm() else { return };
    check(capture, 300);
}

#[test]
fn every_level_of_kraken_is_the_true_one_after_every_update() {
    for depth in [25, 10] {
        let Some(capture) = Capture::require_kraken(depth) else { return };
        check(capture, depth);
    }
}

#[test]
fn every_level_of_bybit_is_the_true_one_after_every_update() {
    let Some(capture) = Capture::require_bybit() else { return };
    check(capture, 500);
}

#[test]
fn every_level_of_okx_is_the_true_one_after_every_update() {
    let Some(capture) = Capture::require_okx() else { return };
    check(capture, 400);
}

#[test]
fn every_level_of_deribit_is_the_true_one_after_every_update() {
    let Some(capture) = Capture::require_deribit() else { return };
    check(capture, 1);
}
