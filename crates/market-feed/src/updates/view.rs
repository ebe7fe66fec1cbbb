//! A book as some readers see it: of a depth, and as often as they want.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tt_status::market_streams::{Sink, StreamCounts};

use super::book::{Known, Sides};
use super::message::{Row, Stamp, Subject};
use super::slot::Change;

/// Counters of all streams.
#[derive(Debug, Default)]
pub(super) struct Counts {
    messages: AtomicU64,
    gaps: AtomicU64,
    lost: AtomicU64,
    pub(super) lost_by_feeds: Arc<AtomicU64>,
    readers: AtomicU64,
}

impl Counts {
    /// Readers of all books and accounts, with those whose end was not noticed yet.
    pub(super) fn readers(&self) -> u64 {
        self.readers.load(Relaxed)
    }

    pub(super) fn read(&self) -> StreamCounts {
        StreamCounts {
            messages: self.messages.load(Relaxed),
            gaps: self.gaps.load(Relaxed),
            lost: self.lost.load(Relaxed),
            lost_by_feeds: self.lost_by_feeds.load(Relaxed),
        }
    }
}

/// Readers that get the same messages.
#[derive(Debug, Default)]
pub(super) struct Readers {
    readers: Vec<Reader>,
    /// Whether something was offered since the last flush.
    has_offered: bool,
}

#[derive(Debug)]
struct Reader {
    sink: Weak<dyn Sink>,
    /// Messages since the last one that found room.
    lost: u64,
}

impl Readers {
    pub(super) fn add(&mut self, sink: &Arc<dyn Sink>, first: &Arc<str>, counts: &Counts) {
        let lost = u64::from(!sink.offer(first));
        self.has_offered = true;
        counts.messages.fetch_add(1 - lost, Relaxed);
        counts.readers.fetch_add(1, Relaxed);
        self.readers.push(Reader { sink: Arc::downgrade(sink), lost });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.readers.is_empty()
    }

    pub(super) fn are_behind(&self) -> bool {
        self.readers.iter().any(|reader| reader.lost > 0)
    }

    /// Offers `message` to each; who lost some gets a mark and `whole`, which includes it, as soon as there is room.
    pub(super) fn send(
        &mut self,
        message: &Arc<str>,
        subject: &Subject,
        counts: &Counts,
        whole: impl Fn() -> Arc<str>,
    ) {
        let mut made = None;
        self.has_offered = true;
        self.readers.retain_mut(|reader| {
            let Some(sink) = reader.sink.upgrade() else {
                counts.readers.fetch_sub(1, Relaxed);
                return false;
            };
            if reader.lost == 0 && sink.offer(message) {
                counts.messages.fetch_add(1, Relaxed);
                return true;
            }
            reader.lost += 1;
            counts.lost.fetch_add(1, Relaxed);
            reader.catch_up(&*sink, subject, counts, || Arc::clone(made.get_or_insert_with(&whole)));
            true
        });
    }

    /// Counts messages that no reader can get, and sends what helps.
    pub(super) fn lose(&mut self, lost: u64, subject: &Subject, counts: &Counts, whole: impl Fn() -> Arc<str>) {
        self.readers.iter_mut().for_each(|reader| reader.lost += lost);
        self.catch_up(subject, counts, whole);
    }

    /// Sends marks and `whole` to those that lost messages and have room by now.
    pub(super) fn catch_up(&mut self, subject: &Subject, counts: &Counts, whole: impl Fn() -> Arc<str>) {
        let mut made = None;
        self.has_offered = true;
        self.readers.retain_mut(|reader| {
            let Some(sink) = reader.sink.upgrade() else {
                counts.readers.fetch_sub(1, Relaxed);
                return false;
            };
            reader.catch_up(&*sink, subject, counts, || Arc::clone(made.get_or_insert_with(&whole)));
            true
        });
    }
}

impl Readers {
    /// Sends what was offered since the last time.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.has_offered) {
            self.readers.iter().filter_map(|reader| reader.sink.upgrade()).for_each(|sink| sink.flush());
        }
    }
}

impl Reader {
    fn catch_up(&mut self, sink: &dyn Sink, subject: &Subject, counts: &Counts, whole: impl FnOnce() -> Arc<str>) {
        if self.lost == 0 || !sink.has_room() || !sink.offer(&subject.gap(self.lost)) {
            return;
        }
        self.lost = u64::from(!sink.offer(&whole()));
        counts.gaps.fetch_add(1, Relaxed);
        counts.messages.fetch_add(2 - self.lost, Relaxed);
    }
}

/// A book as it is now, for the messages about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BookState<'a> {
    pub(super) subject: &'a Subject,
    pub(super) sides: &'a Sides,
    pub(super) known: Known,
    pub(super) stamp: &'a Stamp,
    pub(super) counts: &'a Counts,
}

impl BookState<'_> {
    /// A snapshot of the best `depth` levels, or of all.
    fn whole(&self, seq: u64, depth: Option<usize>) -> Arc<str> {
        let depth = depth.unwrap_or(usize::MAX);
        self.subject.snapshot(
            seq,
            self.stamp,
            self.known,
            [&mut self.sides.rows(0, depth), &mut self.sides.rows(1, depth)],
        )
    }

    fn best(&self, depth: Option<usize>) -> Sides {
        depth.map_or_else(Sides::default, |depth| self.sides.best(depth))
    }
}

/// What has happened since the last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Delta,
    Snapshot,
    Status,
}

/// One way to see a book.
#[derive(Debug)]
pub(super) struct View {
    depth: Option<usize>,
    every: Option<Duration>,
    /// The number of its last message.
    seq: u64,
    /// The update of its last message.
    last_id: u64,
    pub(super) readers: Readers,
    /// The levels of its last message, where it has a depth.
    shown: Sides,
    /// The quantities before, of the levels that changed since, where it waits and has no depth.
    changed: [BTreeMap<i64, i64>; 2],
    pending: Option<Happened>,
    sent: Option<Instant>,
}

impl View {
    pub(super) fn new(depth: Option<usize>, every: Option<Duration>, book: &BookState<'_>) -> Self {
        let shown = book.best(depth);
        let (changed, readers) = Default::default();
        Self { depth, every, seq: 0, last_id: book.stamp.update_id, readers, shown, changed, pending: None, sent: None }
    }

    pub(super) fn is(&self, depth: Option<usize>, every: Option<Duration>) -> bool {
        (self.depth, self.every) == (depth, every)
    }

    /// Sends a first message to a new reader. A view that waits sends first what it has, so that its next message begins at this one.
    pub(super) fn add(&mut self, sink: &Arc<dyn Sink>, book: &BookState<'_>, now: Instant) {
        if self.pending.is_some() {
            self.flush(book, now);
        }
        self.readers.add(sink, &book.whole(self.seq, self.depth), book.counts);
    }

    /// Takes an event that is in `book` already. Returns when a message is due, if it waits.
    pub(super) fn take(
        &mut self,
        happened: Happened,
        changes: &[Change],
        book: &BookState<'_>,
        now: Instant,
    ) -> Option<Instant> {
        if self.every.is_some() && self.depth.is_none() {
            for change in changes {
                self.changed[change.side as usize].entry(Sides::key(change.side, change.px)).or_insert(change.old);
            }
        }
        self.pending = Some(match (self.pending, happened) {
            (Some(Happened::Snapshot), _) | (_, Happened::Snapshot) => Happened::Snapshot,
            (Some(Happened::Delta), _) | (_, Happened::Delta) => Happened::Delta,
            (_, Happened::Status) => Happened::Status,
        });
        let due = self.due().filter(|due| *due > now);
        if due.is_some() {
            return due;
        }
        if self.every.is_none() && self.depth.is_none() && happened == Happened::Delta {
            self.seq += 1;
            let side = |side: usize| {
                let of_it = changes.iter().filter(move |change| change.side as usize == side);
                of_it.map(|change| (change.px, change.new, Some(change.old)))
            };
            let message = book.subject.delta(self.seq, self.last_id, book.stamp, [&mut side(0), &mut side(1)]);
            self.conclude(&message, book, now);
        } else {
            self.flush(book, now);
        }
        None
    }

    /// When the next message may be sent; `None` for at once.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pending?;
        Some(self.sent? + self.every?)
    }

    /// Sends what has happened since the last message.
    pub(super) fn flush(&mut self, book: &BookState<'_>, now: Instant) {
        let Some(happened) = self.pending else { return };
        self.seq += 1;
        let message = match happened {
            Happened::Snapshot => {
                self.shown = book.best(self.depth);
                book.whole(self.seq, self.depth)
            }
            Happened::Status => book.subject.status(self.seq, book.stamp),
            Happened::Delta => {
                let [bids, asks] = self.differences(book.sides);
                let [bids, asks] = &mut [bids.into_iter(), asks.into_iter()];
                book.subject.delta(self.seq, self.last_id, book.stamp, [bids, asks])
            }
        };
        self.conclude(&message, book, now);
    }

    fn conclude(&mut self, message: &Arc<str>, book: &BookState<'_>, now: Instant) {
        self.settle(book);
        self.sent = Some(now);
        let (seq, depth) = (self.seq, self.depth);
        self.readers.send(message, book.subject, book.counts, || book.whole(seq, depth));
    }

    /// The last message says what is true now.
    fn settle(&mut self, book: &BookState<'_>) {
        (self.last_id, self.pending) = (book.stamp.update_id, None);
        self.changed.iter_mut().for_each(BTreeMap::clear);
    }

    /// Levels that are others than in the last message.
    fn differences(&mut self, book: &Sides) -> [Vec<Row>; 2] {
        let Some(depth) = self.depth else {
            return [0, 1].map(|side| {
                let row = |(key, old): (&i64, &i64)| {
                    let new = book.0[side].get(key).copied().unwrap_or(0);
                    (new != *old).then_some((Sides::px(side, *key), new, Some(*old)))
                };
                self.changed[side].iter().filter_map(row).collect()
            });
        };
        let best = book.best(depth);
        let rows = [0, 1].map(|side| {
            let (before, after) = (&self.shown.0[side], &best.0[side]);
            let gone = before.iter().filter(|(key, _)| !after.contains_key(key));
            let gone = gone.map(|(key, old)| (Sides::px(side, *key), 0, Some(*old)));
            let new = after.iter().filter_map(|(key, qty)| {
                let old = before.get(key).copied().unwrap_or(0);
                (old != *qty).then_some((Sides::px(side, *key), *qty, Some(old)))
            });
            gone.chain(new).collect()
        });
        self.shown = best;
        rows
    }

    /// Messages that found no room between the feed and the streams; the book is whole again.
    pub(super) fn lose(&mut self, lost: u64, book: &BookState<'_>) {
        self.seq += lost;
        self.shown = book.best(self.depth);
        self.settle(book);
        let (seq, depth) = (self.seq, self.depth);
        self.readers.lose(lost, book.subject, book.counts, || book.whole(seq, depth));
    }

    /// Sends marks and snapshots to readers that have room again.
    pub(super) fn catch_up(&mut self, book: &BookState<'_>) {
        if self.readers.are_behind() && self.pending.is_none() {
            let (seq, depth) = (self.seq, self.depth);
            self.readers.catch_up(book.subject, book.counts, || book.whole(seq, depth));
        }
    }
}
