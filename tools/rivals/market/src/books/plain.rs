//! A JSON library and a collection of the standard library: serde_json with a BTreeMap, sonic-rs with a sorted vector.

use std::collections::BTreeMap;

use super::Book;
use crate::input::{Feed, Sides};
use crate::wire::{Body, Depth, Levels, Wrapped, level_of};

/// serde_json and a BTreeMap a side.
#[derive(Default)]
pub(crate) struct SerdeBTree {
    last_id: u64,
    sides: [BTreeMap<i64, i64>; 2],
}

impl SerdeBTree {
    #[inline]
    fn set(side: &mut BTreeMap<i64, i64>, (px, qty): (i64, i64)) {
        if qty == 0 {
            side.remove(&px)
        } else {
            side.insert(px, qty)
        };
    }
}

impl Book for SerdeBTree {
    type Parsed = Levels;

    fn new(_session: &Feed) -> Self {
        Self::default()
    }

    fn prepare(levels: &Levels) -> Levels {
        levels.clone()
    }

    fn load(&mut self, snapshot: &Levels) {
        self.last_id = snapshot.last_id;
        self.sides = [&snapshot.bids, &snapshot.asks].map(|levels| levels.iter().copied().collect());
    }

    fn apply(&mut self, frame: &Levels) -> bool {
        let continues = frame.before_id == self.last_id;
        self.last_id = frame.last_id;
        frame.bids.iter().for_each(|level| Self::set(&mut self.sides[0], *level));
        frame.asks.iter().for_each(|level| Self::set(&mut self.sides[1], *level));
        continues
    }

    fn load_bytes(&mut self, body: &[u8]) -> bool {
        let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else { return false };
        let side = |levels: &[[&str; 2]]| levels.iter().map(level_of).collect::<Option<BTreeMap<i64, i64>>>();
        let (Some(bids), Some(asks)) = (side(&body.bids), side(&body.asks)) else { return false };
        (self.last_id, self.sides) = (body.last_update_id, [bids, asks]);
        true
    }

    fn apply_bytes(&mut self, frame: &[u8]) -> bool {
        let Ok(Wrapped { data }) = serde_json::from_slice::<Wrapped<Depth<'_>>>(frame) else { return false };
        let continues = data.pu == self.last_id;
        self.last_id = data.u;
        let mut is_whole = true;
        for (side, levels) in self.sides.iter_mut().zip([&data.b, &data.a]) {
            for level in levels {
                match level_of(level) {
                    Some(level) => Self::set(side, level),
                    None => is_whole = false,
                }
            }
        }
        continues && is_whole
    }

    fn best(&self) -> u64 {
        let [bids, asks] = &self.sides;
        let [bid, ask] = [bids.last_key_value(), asks.first_key_value()];
        [bid, ask]
            .into_iter()
            .flatten()
            .fold(0, |folded, (px, qty)| folded ^ px.unsigned_abs() ^ qty.unsigned_abs() << 32)
    }

    fn sides(&self, _session: &Feed) -> Sides {
        let [bids, asks] = &self.sides;
        let pair = |(px, qty): (&i64, &i64)| (*px, *qty);
        [bids.iter().rev().map(pair).collect(), asks.iter().map(pair).collect()]
    }
}

/// sonic-rs and a vector a side, the best level last.
#[derive(Default)]
pub(crate) struct SonicVec {
    last_id: u64,
    bids: Vec<(i64, i64)>,
    asks: Vec<(i64, i64)>,
}

impl SonicVec {
    /// `key` rises towards the best level.
    #[inline]
    fn set(side: &mut Vec<(i64, i64)>, (px, qty): (i64, i64), key: impl Fn(i64) -> i64) {
        match (side.binary_search_by_key(&key(px), |level| key(level.0)), qty) {
            (Ok(at), 0) => drop(side.remove(at)),
            (Ok(at), qty) => side[at].1 = qty,
            (Err(_), 0) => {}
            (Err(at), qty) => side.insert(at, (px, qty)),
        }
    }

    fn set_bid(&mut self, level: (i64, i64)) {
        Self::set(&mut self.bids, level, |px| px);
    }

    fn set_ask(&mut self, level: (i64, i64)) {
        Self::set(&mut self.asks, level, |px| -px);
    }
}

impl Book for SonicVec {
    type Parsed = Levels;

    fn new(_session: &Feed) -> Self {
        Self::default()
    }

    fn prepare(levels: &Levels) -> Levels {
        levels.clone()
    }

    fn load(&mut self, snapshot: &Levels) {
        self.last_id = snapshot.last_id;
        self.bids.clear();
        self.asks.clear();
        self.bids.extend(snapshot.bids.iter().rev());
        self.asks.extend(snapshot.asks.iter().rev());
    }

    fn apply(&mut self, frame: &Levels) -> bool {
        let continues = frame.before_id == self.last_id;
        self.last_id = frame.last_id;
        frame.bids.iter().for_each(|level| self.set_bid(*level));
        frame.asks.iter().for_each(|level| self.set_ask(*level));
        continues
    }

    fn load_bytes(&mut self, body: &[u8]) -> bool {
        let Ok(body) = sonic_rs::from_slice::<Body<'_>>(body) else { return false };
        self.last_id = body.last_update_id;
        self.bids.clear();
        self.asks.clear();
        self.bids.extend(body.bids.iter().rev().map_while(level_of));
        self.asks.extend(body.asks.iter().rev().map_while(level_of));
        self.bids.len() == body.bids.len() && self.asks.len() == body.asks.len()
    }

    fn apply_bytes(&mut self, frame: &[u8]) -> bool {
        let Ok(Wrapped { data }) = sonic_rs::from_slice::<Wrapped<Depth<'_>>>(frame) else { return false };
        let continues = data.pu == self.last_id;
        self.last_id = data.u;
        let mut is_whole = true;
        for level in &data.b {
            match level_of(level) {
                Some(level) => self.set_bid(level),
                None => is_whole = false,
            }
        }
        for level in &data.a {
            match level_of(level) {
                Some(level) => self.set_ask(level),
                None => is_whole = false,
            }
        }
        continues && is_whole
    }

    fn best(&self) -> u64 {
        let best = [self.bids.last(), self.asks.last()];
        best.into_iter().flatten().fold(0, |folded, (px, qty)| folded ^ px.unsigned_abs() ^ qty.unsigned_abs() << 32)
    }

    fn sides(&self, _session: &Feed) -> Sides {
        [&self.bids, &self.asks].map(|side| side.iter().rev().copied().collect())
    }
}
