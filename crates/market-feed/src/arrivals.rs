//! Topics that a venue has accepted and does not send.
//!
//! A venue may acknowledge a subscription and never serve it, while the connection's other topics flow. So each topic of
//! each symbol is watched: its first frame is due as its [rule](FirstFrame) says, and where the venue promises a
//! [spacing](Topic::spacing), it is looked for again every ten seconds. Frames are recognised by the words in quotes near
//! their beginning; while nothing is awaited, a frame costs one comparison.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tt_model::Nanos;
use tt_venue::rules::{FirstFrame, Topic, TopicCheck, TopicKind};

use super::topics::topic_name;

/// The words of a frame are looked for in so many bytes.
const BEGINNING: usize = 2048;
/// And in so many pieces between quotes: the symbol is one of the first members at every venue.
const PIECES: usize = 48;
/// The longest word that is compared.
const WORD_MAX: usize = 96;
/// Frames of other topics that show that an instrument is active.
const ACTIVE_FRAMES: u32 = 20;
/// Trades that show that an instrument is traded.
const TRADED_FRAMES: u32 = 3;
/// A topic with a promised spacing is looked for again so long after its last frame.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// A topic is silent when it misses so many of its spacings.
const SPACINGS: u32 = 5;

/// A topic that the venue accepted and does not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentTopic {
    /// The venue's symbol; empty for a topic of the whole venue.
    pub symbol: String,
    /// The topic's name.
    pub topic: &'static str,
}

/// Frames of one topic that have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) topic: SilentTopic,
    /// Frames that were recognised; with [`Arrivals::counting`] all of them.
    pub(super) frames: u32,
    /// The time from the acknowledgement to the first.
    pub(super) first_after: Option<Duration>,
    /// When the first frame is due.
    pub(super) first: FirstFrame,
    /// When the topic was last checked, and against what, if not with the venue's other rules.
    pub(super) check: Option<TopicCheck>,
    pub(super) is_silent: bool,
}

/// What a word of a frame means.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A topic and its symbol.
    Both(usize),
    /// A topic, or a symbol.
    Topic(usize),
    Symbol(usize),
}

#[derive(Clone, Debug)]
struct Entry {
    frames: u32,
    first_at: Option<Instant>,
    last_at: Instant,
    /// Whether its frames are looked for.
    is_awaited: bool,
    /// Since when, if it has come before.
    again_at: Option<Instant>,
    is_silent: bool,
}

/// The topics of one WebSocket.
#[derive(Debug)]
pub(super) struct Arrivals {
    topics: Vec<&'static Topic>,
    symbols: Vec<String>,
    words: HashMap<String, Meaning>,
    /// By topic, then by symbol.
    entries: Vec<Entry>,
    /// When the venue had acknowledged everything.
    begun: Option<Instant>,
    awaited: usize,
    /// Whether frames are counted that nothing waits for.
    counts_all: bool,
    /// Symbols that are followed no longer, by their places.
    ended: Vec<bool>,
}

impl Arrivals {
    /// Watches `topics` of `symbols`.
    pub(super) fn new(topics: &[&'static Topic], symbols: &[String], depth: u32, now: Instant) -> Self {
        let mut words = HashMap::new();
        for (at, symbol) in symbols.iter().enumerate() {
            words.insert(symbol.clone(), Meaning::Symbol(at));
        }
        for (topic_at, topic) in topics.iter().enumerate() {
            for word in topic.words {
                if !["{symbol}", "{lower}"].iter().any(|place| word.contains(place)) {
                    words.insert((*word).to_owned(), Meaning::Topic(topic_at));
                    continue;
                }
                for (at, symbol) in symbols.iter().enumerate() {
                    let word = word.replace("{symbol}", symbol).replace("{lower}", &symbol.to_ascii_lowercase());
                    let word = word.replace("{depth}", &depth.to_string());
                    words.insert(word, Meaning::Both(topic_at * symbols.len() + at));
                }
            }
        }
        let entry =
            Entry { frames: 0, first_at: None, last_at: now, is_awaited: false, again_at: None, is_silent: false };
        let entries = vec![entry; topics.len() * symbols.len()];
        let (symbols, ended) = (symbols.to_vec(), vec![false; symbols.len()]);
        let topics = topics.to_vec();
        let mut arrivals = Self { topics, symbols, words, entries, begun: None, awaited: 0, counts_all: false, ended };
        for index in 0..arrivals.entries.len() {
            let topic = arrivals.topic(index);
            let is_one = topic.names_symbol() || index.is_multiple_of(arrivals.symbols.len());
            let is_bounded = topic.first != FirstFrame::AnyTime || topic.fallback.is_some();
            if is_one && !topic.words.is_empty() && is_bounded {
                arrivals.await_again(index);
            }
        }
        arrivals
    }

    /// Counts every frame, whether something waits for it or not.
    pub(super) fn counting(self) -> Self {
        Self { counts_all: true, ..self }
    }

    /// The venue has acknowledged every topic.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun.get_or_insert(now);
    }

    /// A symbol ends, or is followed again: its topics are silent for a reason.
    pub(super) fn end(&mut self, symbol: &str, has_ended: bool) {
        let Some(at) = self.symbols.iter().position(|known| known == symbol) else { return };
        self.ended[at] = has_ended;
        for index in (at..self.entries.len()).step_by(self.symbols.len()) {
            if self.topic(index).names_symbol() {
                let entry = &mut self.entries[index];
                self.awaited -= usize::from(std::mem::take(&mut entry.is_awaited));
                entry.is_silent = false;
            }
        }
    }

    /// Takes a frame; returns whether a silent topic has come back.
    pub(super) fn take(&mut self, frame: &[u8], now: Instant) -> bool {
        if self.awaited == 0 && !self.counts_all {
            return false;
        }
        let Some(index) = self.recognise(frame) else { return false };
        let entry = &mut self.entries[index];
        entry.frames = entry.frames.saturating_add(1);
        entry.first_at.get_or_insert(now);
        entry.last_at = now;
        if std::mem::take(&mut entry.is_awaited) {
            self.awaited -= 1;
        }
        entry.again_at = None;
        let was_silent = std::mem::take(&mut entry.is_silent);
        if self.topic(index).fallback.is_some() {
            self.end_doubt(index);
        }
        was_silent
    }

    /// A topic of one symbol has come: nothing waits for those of the others, which may come at any time.
    fn end_doubt(&mut self, index: usize) {
        if self.topic(index).first == FirstFrame::AnyTime {
            let first = index - index % self.symbols.len();
            for entry in &mut self.entries[first..first + self.symbols.len()] {
                self.awaited -= usize::from(std::mem::take(&mut entry.is_awaited));
            }
        }
    }

    /// A topic with a second form of which nothing has come for `most`, of any symbol, while others show that one is active.
    pub(super) fn failing(&self, now: Instant, most: Duration) -> Option<&'static Topic> {
        self.begun.filter(|begun| now.saturating_duration_since(*begun) > most)?;
        let symbols = self.symbols.len();
        let fails = |at: usize| {
            let entries = at * symbols..(at + 1) * symbols;
            entries.clone().all(|index| self.entries[index].frames == 0)
                && entries.clone().any(|index| {
                    !self.ended[index % symbols]
                        && self.others(index, &[TopicKind::Book, TopicKind::BestLevels]) >= ACTIVE_FRAMES
                })
        };
        (0..self.topics.len()).find(|at| self.topics[*at].fallback.is_some() && fails(*at)).map(|at| self.topics[at])
    }

    /// The entry whose words a frame has.
    fn recognise(&self, frame: &[u8]) -> Option<usize> {
        let beginning = &frame[..frame.len().min(BEGINNING)];
        let (mut topic, mut symbol) = (None, None);
        // What lies between quotes: keys, values, and the marks between them, which are no words.
        let mut quotes = beginning.iter().enumerate().filter(|(_, byte)| **byte == b'"').map(|(at, _)| at);
        let mut start = quotes.next()?;
        for end in quotes.take(PIECES) {
            let word = &beginning[start + 1..end];
            start = end;
            if word.len() > WORD_MAX || matches!(word, [] | [b':' | b',', ..]) {
                continue;
            }
            let Some(meaning) = std::str::from_utf8(word).ok().and_then(|word| self.words.get(word)) else { continue };
            match *meaning {
                Meaning::Both(index) => return Some(index),
                Meaning::Topic(index) => topic = topic.or(Some(index)),
                Meaning::Symbol(index) => symbol = symbol.or(Some(index)),
            }
            let Some(topic) = topic else { continue };
            if !self.topics[topic].names_symbol() {
                return Some(topic * self.symbols.len());
            }
            if let Some(symbol) = symbol {
                return Some(topic * self.symbols.len() + symbol);
            }
        }
        None
    }

    /// Looks at the deadlines, about once a second; returns the topics that are silent from now on.
    pub(super) fn check(&mut self, now: Instant) -> Vec<SilentTopic> {
        let Some(begun) = self.begun else { return Vec::new() };
        let mut silent = Vec::new();
        for index in 0..self.entries.len() {
            let topic = self.topic(index);
            if topic.names_symbol() && self.ended[index % self.symbols.len()] {
                continue;
            }
            let entry = &self.entries[index];
            if !entry.is_awaited {
                let is_due = topic.spacing.is_some() && entry.first_at.is_some();
                if is_due && now.saturating_duration_since(entry.last_at) >= LOOK_AGAIN {
                    self.entries[index].again_at = Some(now);
                    self.await_again(index);
                }
                continue;
            }
            if !entry.is_silent && self.is_overdue(index, begun, now) {
                self.entries[index].is_silent = true;
                silent.push(self.named(index));
            }
        }
        silent
    }

    fn is_overdue(&self, index: usize, begun: Instant, now: Instant) -> bool {
        let topic = self.topic(index);
        let waited = |from: Instant, most: Nanos| now.saturating_duration_since(from) > Duration::from_nanos(most.0);
        if let (Some(again_at), Some(spacing)) = (self.entries[index].again_at, topic.spacing) {
            return waited(again_at, Nanos(spacing.0 * u64::from(SPACINGS)));
        }
        let is_shown = |least: u32, kinds: &[TopicKind]| self.others(index, kinds) >= least;
        match topic.first {
            FirstFrame::Within(most) => waited(begun, most),
            FirstFrame::IfActive(most) => {
                let kinds = [TopicKind::Book, TopicKind::BestLevels, TopicKind::Trades];
                waited(begun, most) && is_shown(ACTIVE_FRAMES, &kinds)
            }
            FirstFrame::IfTraded(most) => waited(begun, most) && is_shown(TRADED_FRAMES, &[TopicKind::Trades]),
            FirstFrame::AnyTime => false,
        }
    }

    /// Frames of the symbol's other topics of `kinds`.
    fn others(&self, index: usize, kinds: &[TopicKind]) -> u32 {
        let symbol = index % self.symbols.len();
        let counted = self.topics.iter().enumerate().filter(|(_, topic)| kinds.contains(&topic.kind));
        let frames = counted.map(|(at, _)| at * self.symbols.len() + symbol).filter(|other| *other != index);
        frames.map(|other| self.entries[other].frames).fold(0, u32::saturating_add)
    }

    /// Every topic of every symbol.
    pub(super) fn all(&self) -> impl Iterator<Item = Arrived> + '_ {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let topic = self.topic(index);
            let is_one = topic.names_symbol() || index.is_multiple_of(self.symbols.len());
            is_one.then(|| Arrived {
                topic: self.named(index),
                frames: entry.frames,
                first_after: entry.first_at.zip(self.begun).map(|(at, begun)| at.saturating_duration_since(begun)),
                first: topic.first,
                check: topic.check,
                is_silent: entry.is_silent,
            })
        })
    }

    /// Topics that are silent.
    pub(super) fn silent(&self) -> impl Iterator<Item = SilentTopic> + '_ {
        (0..self.entries.len()).filter(|index| self.entries[*index].is_silent).map(|index| self.named(index))
    }

    /// Whether nothing is awaited.
    pub(super) const fn is_complete(&self) -> bool {
        self.awaited == 0
    }

    fn await_again(&mut self, index: usize) {
        self.entries[index].is_awaited = true;
        self.awaited += 1;
    }

    fn topic(&self, index: usize) -> &'static Topic {
        self.topics[index / self.symbols.len()]
    }

    fn named(&self, index: usize) -> SilentTopic {
        let topic = self.topic(index);
        let symbol =
            if topic.names_symbol() { self.symbols[index % self.symbols.len()].clone() } else { String::new() };
        SilentTopic { symbol, topic: topic_name(topic.kind) }
    }
}

#[cfg(test)]
mod tests;
