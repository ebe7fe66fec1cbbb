//! A book whose every frame carries a checksum: read, change, cut to its depth, verify.

use std::collections::BTreeMap;
use std::hint::black_box;

use crate::books::Timing;
use crate::gauge::Gauge;
use crate::input::Verified;
use crate::wire::fixed;
use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Decimals of BTC/USD.
const PX_DECIMALS: usize = 1;
const QTY_DECIMALS: usize = 8;
/// Levels of each side in the checksum.
const SUMMED: usize = 10;

#[derive(Deserialize)]
struct Frame<L> {
    data: [Change<L>; 1],
}

#[derive(Deserialize)]
struct Change<L> {
    bids: Vec<L>,
    asks: Vec<L>,
    checksum: u32,
}

/// serde_json's level: numbers as they stand in the frame, because their digits count.
#[derive(Deserialize)]
struct SerdeLevel<'a> {
    #[serde(borrow)]
    price: &'a RawValue,
    #[serde(borrow)]
    qty: &'a RawValue,
}

/// sonic-rs's.
#[derive(Deserialize)]
struct SonicLevel<'a> {
    #[serde(borrow)]
    price: sonic_rs::LazyValue<'a>,
    #[serde(borrow)]
    qty: sonic_rs::LazyValue<'a>,
}

fn pair(px: &str, qty: &str) -> Option<(i64, i64)> {
    Some((fixed(px, PX_DECIMALS)?, fixed(qty, QTY_DECIMALS)?))
}

/// A book that takes frames and says whether their checksum agrees.
pub(crate) trait Summed: Default {
    fn take(&mut self, frame: &[u8], depth: usize) -> bool;
}

/// serde_json and a BTreeMap a side.
#[derive(Default)]
pub(crate) struct SerdeBTree {
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
}

impl Summed for SerdeBTree {
    fn take(&mut self, frame: &[u8], depth: usize) -> bool {
        let Ok(Frame { data: [change] }) = serde_json::from_slice::<Frame<SerdeLevel<'_>>>(frame) else { return false };
        for (side, levels) in [(&mut self.bids, &change.bids), (&mut self.asks, &change.asks)] {
            for level in levels {
                let Some((px, qty)) = pair(level.price.get(), level.qty.get()) else { return false };
                if qty == 0 {
                    side.remove(&px)
                } else {
                    side.insert(px, qty)
                };
            }
        }
        while self.bids.len() > depth {
            self.bids.pop_first();
        }
        while self.asks.len() > depth {
            self.asks.pop_last();
        }
        let level = |(px, qty): (&i64, &i64)| (*px, *qty);
        let asks = self.asks.iter().take(SUMMED).map(level);
        checksum(asks.chain(self.bids.iter().rev().take(SUMMED).map(level))) == change.checksum
    }
}

/// sonic-rs and a vector a side, the best level last.
#[derive(Default)]
pub(crate) struct SonicVec {
    bids: Vec<(i64, i64)>,
    asks: Vec<(i64, i64)>,
}

impl Summed for SonicVec {
    fn take(&mut self, frame: &[u8], depth: usize) -> bool {
        let Ok(Frame { data: [change] }) = sonic_rs::from_slice::<Frame<SonicLevel<'_>>>(frame) else { return false };
        for (side, levels, sign) in [(&mut self.bids, &change.bids, 1), (&mut self.asks, &change.asks, -1)] {
            for level in levels {
                let Some((px, qty)) = pair(level.price.as_raw_str(), level.qty.as_raw_str()) else { return false };
                match (side.binary_search_by_key(&(sign * px), |level| sign * level.0), qty) {
                    (Ok(at), 0) => drop(side.remove(at)),
                    (Ok(at), qty) => side[at].1 = qty,
                    (Err(_), 0) => {}
                    (Err(at), qty) => side.insert(at, (px, qty)),
                }
            }
            side.drain(..side.len().saturating_sub(depth));
        }
        let asks = self.asks.iter().rev().take(SUMMED).copied();
        checksum(asks.chain(self.bids.iter().rev().take(SUMMED).copied())) == change.checksum
    }
}

/// CRC-32 of the digits of offers from low to high, then bids from high to low.
fn checksum(levels: impl Iterator<Item = (i64, i64)>) -> u32 {
    let mut text = [0_u8; 2 * SUMMED * 2 * 19];
    let mut len = 0;
    for number in levels.flat_map(|(px, qty)| [px, qty]) {
        let mut digits = [0_u8; 20];
        let (mut at, mut rest) = (digits.len(), number.unsigned_abs());
        while rest != 0 {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let count = digits.len() - at;
        text[len..len + count].copy_from_slice(&digits[at..]);
        len += count;
    }
    crc32fast::hash(&text[..len])
}

/// All frames after the snapshot, each verified.
pub(crate) fn verified<S: Summed>(session: &Verified, gauge: &Gauge) -> anyhow::Result<Timing> {
    let (first, live) = session.frames.split_first().context("no frame")?;
    let mut book = S::default();
    ensure!(book.take(&first.payload, session.depth), "the snapshot does not agree with its checksum");
    let mut agreed = 0;
    let begin = gauge.begin();
    for record in live {
        agreed += u64::from(book.take(black_box(&record.payload), session.depth));
    }
    let ns = gauge.end(begin);
    ensure!(agreed == live.len() as u64, "{agreed} of {} frames agree with their checksum", live.len());
    Ok(Timing { ns, units: live.len() as u64 })
}
