//! The updates of a session's book, and the book that they make by a plain reader: sorted maps, a JSON library.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use tt_model::Nanos;
use tt_venue::Venue;
use tt_venue::event::{BookDelta, Event, EventBuffer};

use super::rig::{json, level};
use super::source::{Capture, is_of, is_snapshot};

/// Published levels of each side.
const SHOWN: usize = tt_market::board::DEPTH;

/// Price and quantity in steps.
pub(super) type Pair = (i64, i64);

/// Levels of both sides by price.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainBook {
    sides: [BTreeMap<i64, i64>; 2],
}

impl PlainBook {
    fn apply(&mut self, levels: &[Vec<Pair>; 2]) {
        for (side, levels) in self.sides.iter_mut().zip(levels) {
            for (px, qty) in levels {
                if *qty == 0 {
                    side.remove(px);
                } else {
                    side.insert(*px, *qty);
                }
            }
        }
    }

    /// The best `count` levels of both sides, best first.
    fn best(&self, count: usize) -> [Vec<Pair>; 2] {
        let pair = |(px, qty): (&i64, &i64)| (*px, *qty);
        [
            self.sides[0].iter().rev().take(count).map(pair).collect(),
            self.sides[1].iter().take(count).map(pair).collect(),
        ]
    }

    fn cut(&self, count: usize) -> Self {
        let mut sides = <[BTreeMap<i64, i64>; 2]>::default();
        sides.iter_mut().zip(self.best(count)).for_each(|(side, best)| side.extend(best));
        Self { sides }
    }

    fn len_min(&self) -> usize {
        self.sides[0].len().min(self.sides[1].len())
    }
}

/// A REST body of these levels, best first, price in tenths and quantity in thousandths.
pub(super) fn body(last_id: u64, levels: &[Vec<Pair>; 2]) -> String {
    let side = |levels: &Vec<Pair>| {
        let level = |(px, qty): &Pair| format!("[\"{}.{}\",\"{}.{:03}\"]", px / 10, px % 10, qty / 1_000, qty % 1_000);
        levels.iter().map(level).collect::<Vec<_>>().join(",")
    };
    let (bids, asks) = (side(&levels[0]), side(&levels[1]));
    format!(
        "{{\"lastUpdateId\":{last_id},\"E\":1700000000000,\"T\":1700000000000,\"bids\":[{bids}],\"asks\":[{asks}]}}"
    )
}

/// One update.
pub(super) struct Update {
    /// The frame's number in the session.
    pub(super) at: usize,
    pub(super) ts: Nanos,
    pub(super) delta: BookDelta,
    pub(super) buffer: EventBuffer,
    levels: [Vec<Pair>; 2],
}

/// Every update after the book was joined.
pub(super) struct Updates {
    pub(super) all: Vec<Update>,
    /// The book before the first of them, and its last update id.
    joined: (PlainBook, u64),
}

impl Updates {
    pub(super) fn of(capture: &Capture) -> anyhow::Result<Self> {
        let mut joined = None;
        for (_, frame) in capture.frames.iter().filter(|(_, frame)| is_snapshot(frame)).take(1) {
            let body = json(frame)?;
            let mut book = PlainBook::default();
            book.apply(&[levels_of(&body["bids"])?, levels_of(&body["asks"])?]);
            joined = Some((book, body["lastUpdateId"].as_u64().context("no id")?));
        }
        let Some((mut book, mut last_id)) = joined else { bail!("no snapshot in the session") };
        let mut scratch = EventBuffer::new(10_240, 1);
        let mut all: Vec<Update> = Vec::new();
        for (at, (ts, frame)) in capture.frames.iter().enumerate().filter(|(_, (_, frame))| is_of(frame, "depthUpdate"))
        {
            let Ok(Event::BookDelta(delta)) = Venue::BinanceSpot.parse(frame, &mut scratch) else { bail!("no update") };
            if delta.last_id < last_id {
                continue;
            }
            let value = json(frame)?;
            let levels = [levels_of(&value["b"])?, levels_of(&value["a"])?];
            if all.is_empty() && delta.previous_id != Some(last_id) {
                // What overlaps with the snapshot.
                book.apply(&levels);
                last_id = delta.last_id;
                continue;
            }
            let mut buffer = EventBuffer::new(scratch.levels().len().max(1), 1);
            Venue::BinanceSpot.parse(frame, &mut buffer).map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
            all.push(Update { at, ts: Nanos(*ts), delta, buffer, levels });
        }
        ensure!(!all.is_empty(), "no update follows the snapshot");
        Ok(Self { all, joined: (book, last_id) })
    }

    /// `count` places of the session, evenly apart, with `levels` levels of the book there.
    pub(super) fn places(&self, count: usize, levels: usize) -> Places {
        let apart = self.all.len() / count;
        let (mut whole, mut last_id) = self.joined.clone();
        let mut places = Places { apart, bodies: Vec::new(), after: Vec::new(), len_min: usize::MAX };
        let mut book = PlainBook::default();
        for (index, update) in self.all.iter().enumerate() {
            if index % apart == 0 && index / apart < count {
                book = whole.cut(levels);
                let best = book.best(levels);
                places.len_min = places.len_min.min(book.len_min());
                places.bodies.push(Body { text: body(last_id, &best), best: best.map(|side| side.first().copied()) });
            }
            whole.apply(&update.levels);
            book.apply(&update.levels);
            places.after.push(book.best(SHOWN));
            last_id = update.delta.last_id;
        }
        places
    }
}

/// A REST body, and its best levels.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) best: [Option<Pair>; 2],
}

/// Where instruments may begin.
pub(super) struct Places {
    /// Updates from one to the next.
    pub(super) apart: usize,
    pub(super) bodies: Vec<Body>,
    /// The shown levels after each update of a book that began at the place before it.
    pub(super) after: Vec<[Vec<Pair>; 2]>,
    /// Levels of the smallest side.
    pub(super) len_min: usize,
}

fn levels_of(list: &Value) -> anyhow::Result<Vec<Pair>> {
    list.as_array().context("no list")?.iter().map(|entry| level(&entry[0], &entry[1])).collect()
}
