//! A reader of the streams: what it was sent, its own books, and what the documentation promises about them
//! (docs/market-feeds.md).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use market_feed::offline::Sink;
use serde::Deserialize;

use super::books::{Books, DEPTH, Moment, State, share};

/// Messages that wait for a reader: those of a WebSocket have a queue of 1,024.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    messages_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Arc<str>>,
    taken: u64,
    rejected: u64,
}

impl Queue {
    pub(super) fn new(messages_max: usize) -> Self {
        Self { waiting: Mutex::default(), messages_max }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pop(&self) -> Option<Arc<str>> {
        self.waiting().messages.pop_front()
    }

    /// Messages that found room, and those that did not.
    pub(super) fn counts(&self) -> (u64, u64) {
        let waiting = self.waiting();
        (waiting.taken, waiting.rejected)
    }
}

impl Sink for Queue {
    fn has_room(&self) -> bool {
        self.waiting().messages.len() <= self.messages_max / 2
    }

    fn offer(&self, message: &Arc<str>) -> bool {
        let mut waiting = self.waiting();
        if waiting.messages.len() >= self.messages_max {
            waiting.rejected += 1;
            return false;
        }
        waiting.taken += 1;
        waiting.messages.push_back(Arc::clone(message));
        true
    }

    fn flush(&self) {}
}

/// A message of a stream of books.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    r#type: &'a str,
    pub(super) instrument: usize,
    seq: Option<u64>,
    lost: Option<u64>,
    update_id: Option<u64>,
    previous_id: Option<u64>,
    ts_recv: Option<u64>,
    proof: Option<&'a str>,
    #[serde(borrow, default)]
    bids: Vec<Level<'a>>,
    #[serde(borrow, default)]
    asks: Vec<Level<'a>>,
}

#[derive(Debug, Deserialize)]
struct Level<'a> {
    px: &'a str,
    qty: &'a str,
    old_qty: Option<&'a str>,
}

/// A book as one reader has it.
#[derive(Debug, Default)]
pub(super) struct ReaderBook {
    /// Quantity by price, bids first.
    sides: [BTreeMap<i64, i64>; 2],
    whole: u64,
    seq: Option<u64>,
    first_seq: Option<u64>,
    last: Option<(Moment, String)>,
    /// Messages that the last mark says are lost, until the snapshot comes.
    marked: Option<u64>,
    pub(super) gaps: u64,
    pub(super) lost: u64,
}

/// Decimals of an instrument's prices and quantities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimals {
    pub(super) px: u32,
    pub(super) qty: u32,
}

/// Where a reader's books come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) books: &'a Books,
    /// The number of the first book in messages.
    pub(super) first: usize,
    pub(super) decimals: &'a [Decimals],
    pub(super) is_deep: bool,
    /// Whether something found no room on the way to this reader.
    pub(super) has_lost: bool,
}

fn steps(text: &str, decimals: u32) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let missing = decimals.checked_sub(u32::try_from(part.len()).ok()?)?;
    format!("{whole}{part}").parse::<i64>().ok()?.checked_mul(10_i64.pow(missing))
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
    }
}

impl ReaderBook {
    /// Takes the next message.
    ///
    /// # Errors
    /// What it breaks.
    pub(super) fn take(&mut self, message: &Message<'_>, source: &Source<'_>) -> Result<(), String> {
        if message.r#type == "gap" {
            return self.take_mark(message, source);
        }
        let seq = message.seq.ok_or("a message without seq")?;
        match (self.seq, self.marked.take()) {
            (_, Some(_)) | (None, None) if message.r#type != "snapshot" => {
                return Err(format!("{} where a snapshot had to come", message.r#type));
            }
            (Some(last), Some(lost)) if seq != last + lost => {
                return Err(format!("seq {seq} after {last} and a mark of {lost}"));
            }
            (Some(last), None) if seq != last + 1 => return Err(format!("seq {seq} after {last}, without a mark")),
            _ => {}
        }
        self.seq = Some(seq);
        self.first_seq.get_or_insert(seq);
        let update_id = message.update_id.ok_or("a message without update_id")?;
        if message.r#type == "delta" && message.previous_id != self.last.as_ref().map(|last| last.0.0) {
            return Err(format!("delta {update_id} after {:?}, and not {:?}", message.previous_id, self.last));
        }
        if message.r#type == "snapshot" {
            (self.sides, self.whole) = Default::default();
        }
        let decimals = source.decimals[message.instrument - source.first];
        for (side, levels) in [&message.bids, &message.asks].into_iter().enumerate() {
            self.change(side, levels, decimals)?;
        }
        let proof = message.proof.ok_or("a message without proof")?;
        let moment = (update_id, message.ts_recv.unwrap_or(0));
        self.last = Some((moment, proof.to_owned()));
        // The levels of a book that is not known may be those of before, or none.
        if proof == "stale" || proof == "syncing" {
            return Ok(());
        }
        let states = source.books.at(message.instrument - source.first, moment);
        let expected = |state: &State| if source.is_deep { state.whole } else { state.best };
        if !states.iter().any(|state| self.whole == expected(state)) {
            let what = format!("{} seq {seq}, update {update_id} at {}, {proof}", message.r#type, moment.1);
            return Err(format!("{what}: another book than the engine's"));
        }
        let has_more = self.sides.iter().any(|side| !source.is_deep && side.len() > DEPTH);
        if has_more { Err("more levels than were asked for".to_owned()) } else { Ok(()) }
    }

    fn take_mark(&mut self, message: &Message<'_>, source: &Source<'_>) -> Result<(), String> {
        let lost = message.lost.filter(|lost| *lost > 0).ok_or("a mark of nothing")?;
        if !source.has_lost {
            return Err(format!("a mark of {lost} for a reader that kept up"));
        }
        if self.marked.replace(lost).is_some() {
            return Err("two marks without a snapshot between them".to_owned());
        }
        self.gaps += 1;
        self.lost += lost;
        Ok(())
    }

    fn change(&mut self, side: usize, levels: &[Level<'_>], decimals: Decimals) -> Result<(), String> {
        for Level { px, qty, old_qty } in levels {
            let number = |text: &str, decimals| steps(text, decimals).ok_or_else(|| format!("{text} is no number"));
            let (px, qty) = (number(px, decimals.px)?, number(qty, decimals.qty)?);
            let before = if qty == 0 { self.sides[side].remove(&px) } else { self.sides[side].insert(px, qty) };
            let before = before.unwrap_or(0);
            if let Some(old) = old_qty
                && number(old, decimals.qty)? != before
            {
                return Err(format!("the level {px} had {before}, and not {old}"));
            }
            self.whole = self.whole.wrapping_sub(share(side == 1, px, before)).wrapping_add(share(side == 1, px, qty));
        }
        Ok(())
    }

    /// Whether the numbers of messages do not account for `events` events of the book. A mark's snapshot may include one
    /// more than it says is lost.
    pub(super) fn skips(&self, events: u64) -> bool {
        let numbered = self.seq.unwrap_or(0) - self.first_seq.unwrap_or(0);
        !(numbered..=numbered + self.gaps).contains(&events)
    }

    /// Its numbers, in words.
    pub(super) fn summary(&self) -> String {
        format!("seq from {:?} to {:?}, {} marks of {}", self.first_seq, self.seq, self.gaps, self.lost)
    }

    /// What is missing after everything was read.
    pub(super) fn rest(&self, last: Option<(Moment, &'static str)>) -> Option<String> {
        if self.marked.is_some() {
            return Some("a mark without a snapshot".to_owned());
        }
        let seen = self.last.as_ref().map(|(moment, proof)| (*moment, proof.as_str()));
        (last.is_some() && seen != last).then(|| format!("the last message is {seen:?}, and the book {last:?}"))
    }
}
