//! What each proof notices, at 1,000 seeded random places of the captures for each reason: `docs/market-proofs.md` has
//! the table, and its rows are asserted here.
//!
//! Truth is kept by a JSON library in sorted maps. Each trial begins with a snapshot of the true book; a reason that is
//! noticed must lead to exactly one resync, and to the true book again.

use crate::captured::Capture;
use crate::truth::{Book, Truth, Update, is_binance};
use std::fmt::Write;
use std::ops::Range;
use tt_market::DropReason;
use tt_market::board::Board;
use tt_market::{Applied, Capacity, ConnectionId, Engine, InstrumentSpec, Proof, Request};
use tt_meter::Off;
use tt_model::{InstrumentId, Nanos};

const PLACES: usize = 1000;

/// xorshift64*: the same places in every run.
struct Places(u64);

impl Places {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Drop,
    Double,
    Swap,
    Flip,
    /// The venue restarts its numbers, and the message that says so is lost.
    LostReset,
    /// The venue restarts its numbers.
    Reset,
    /// Levels beyond the depth are kept.
    KeepBeyondDepth,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Drop => "an update dropped",
            Self::Double => "an update doubled",
            Self::Swap => "two updates swapped",
            Self::Flip => "a digit of a level flipped",
            Self::LostReset => "`u == 1` ignored",
            Self::Reset => "`u == 1` taken",
            Self::KeepBeyondDepth => "a truncation skipped",
        }
    }
}

/// How many trials ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Noticed by the next message of the book at the latest.
    at_once: usize,
    later: usize,
    /// Not noticed, the ten best levels true throughout.
    unseen_right: usize,
    /// Not noticed, a wrong level among the best ten at some time.
    unseen_wrong: usize,
    /// Refused as a duplicate.
    duplicates: usize,
    /// A wrong level among the best ten was called verified, noticed afterwards or not.
    deceived: usize,
}

struct Rig {
    engine: Engine,
    board: Board,
    connection: ConnectionId,
    now: Nanos,
}

const ID: InstrumentId = InstrumentId(0);

impl Rig {
    fn new(spec: InstrumentSpec) -> Self {
        let mut engine = Engine::new(Capacity { instruments: 1, pages: 4096, backlogs: 1, ..Capacity::default() });
        engine.add_instrument(spec).unwrap();
        let now = Nanos::from_millis(1_700_000_000_000);
        let connection = engine.open_connection(spec.venue, now).unwrap();
        let board = engine.board();
        Self { engine, board, connection, now }
    }

    fn begin(&mut self, snapshot: &[u8]) {
        self.now = self.now.saturating_add(Nanos::from_secs(3600));
        self.engine.subscribe(self.connection, ID, self.now).unwrap();
        while self.engine.poll_request(self.now).is_some() {}
        self.take_snapshot(snapshot).unwrap();
    }

    fn take_snapshot(&mut self, snapshot: &[u8]) -> Result<Applied, DropReason> {
        if self.engine.instrument(ID).is_some_and(|spec| is_binance(spec.venue)) {
            self.engine.handle_snapshot(self.now, ID, snapshot, &mut Off)
        } else {
            self.engine.handle_frame(self.now, self.connection, snapshot, &mut Off)
        }
    }

    fn feed(&mut self, frame: &[u8]) -> Result<Applied, DropReason> {
        self.now = self.now.saturating_add(Nanos::from_millis(100));
        self.engine.handle_frame(self.now, self.connection, frame, &mut Off)
    }

    fn is_verified(&self) -> bool {
        self.board.top_of_book(ID).unwrap().status.proof.is_verified()
    }

    fn is_lost(&self) -> bool {
        self.board.top_of_book(ID).unwrap().status.proof == Proof::Stale
    }

    fn is_true(&self, book: &Book) -> bool {
        let depth = self.board.depth(ID).unwrap();
        (depth.bids().to_vec(), depth.asks().to_vec()) == book.sides()
    }
}

/// A sweep through a capture: the true book, and how many updates it includes.
struct Sweep<'a> {
    truth: &'a Truth,
    book: Book,
    len: usize,
}

impl<'a> Sweep<'a> {
    fn new(truth: &'a Truth) -> Self {
        Self { truth, book: truth.start.clone(), len: 0 }
    }

    fn advance(&mut self, len: usize) {
        while self.len < len {
            self.book.apply(&self.truth.updates[self.len], self.truth.spec.depth_max);
            self.len += 1;
        }
    }

    fn last(&self) -> &'a Update {
        &self.truth.updates[self.len - 1]
    }

    fn snapshot(&self) -> Vec<u8> {
        self.truth.snapshot(&self.book, self.last(), self.last().last_id)
    }

    /// The frames from update `first` to update `last`, and which update each one is.
    fn frames(&self, first: usize, last: usize) -> Vec<(Vec<u8>, Option<usize>)> {
        let updates = &self.truth.updates;
        let mut next = first;
        (updates[first].frame..=updates[last].frame)
            .map(|frame| {
                let update = (updates[next].frame == frame).then_some(next);
                next += usize::from(update.is_some() && next < last);
                (self.truth.frames[frame].payload.clone(), update)
            })
            .collect()
    }
}

/// Changes one digit of one level.
fn flip(text: &mut [u8], places: &mut Places) {
    let find = |needle: &[u8]| text.windows(needle.len()).position(|window| window == needle);
    let starts = [&b"\"b\":["[..], b"\"bids\":", b"\"asks\":", b"\"a\":["];
    let start = starts.iter().filter_map(|needle| find(needle)).min().unwrap();
    let ends = [&b"\"checksum\""[..], b"\"ts\":\"", b"],\"u\":"];
    let end = ends.iter().filter_map(|needle| find(needle)).filter(|end| *end > start).min().unwrap_or(text.len());
    let digits: Vec<usize> = (start..end).filter(|at| text[*at].is_ascii_digit()).collect();
    if digits.is_empty() {
        return;
    }
    let digit = &mut text[digits[places.below(digits.len())]];
    *digit = b'0' + (*digit - b'0' + 1 + places.below(9) as u8) % 10;
}

/// The same update with another number: Bybit's.
fn renumbered(frame: &[u8], id: u64) -> Vec<u8> {
    let text = String::from_utf8(frame.to_vec()).unwrap();
    let start = text.find(",\"u\":").unwrap() + 5;
    let end = start + text[start..].find(',').unwrap();
    format!("{}{id}{}", &text[..start], &text[end..]).into_bytes()
}

/// The frames with a reason at the first of them, which is an update.
fn faulty(
    sweep: &Sweep<'_>,
    kind: Kind,
    place: usize,
    last: usize,
    places: &mut Places,
) -> Vec<(Vec<u8>, Option<usize>)> {
    let mut frames = sweep.frames(place, last);
    match kind {
        Kind::Drop => drop(frames.remove(0)),
        Kind::Double => {
            let copy = frames[0].0.clone();
            frames.insert(1, (copy, None));
        }
        Kind::Swap => {
            let other = frames.iter().position(|frame| frame.1 == Some(place + 1)).unwrap();
            let first = frames[0].0.clone();
            frames[0].0 = std::mem::replace(&mut frames[other].0, first);
        }
        Kind::Flip => flip(&mut frames[0].0, places),
        Kind::Reset | Kind::LostReset => {
            let mut book = sweep.book.clone();
            book.apply(&sweep.truth.updates[place], sweep.truth.spec.depth_max);
            for (frame, update) in &mut frames {
                if let Some(update) = update {
                    *frame = renumbered(frame, (*update - place) as u64 + 1);
                }
            }
            frames[0].0 = sweep.truth.snapshot(&book, &sweep.truth.updates[place], 1);
            if kind == Kind::LostReset {
                frames.remove(0);
            }
        }
        Kind::KeepBeyondDepth => {}
    }
    frames
}

/// One reason at the first place of `span`, and what becomes of it within the span; the sweep ends where the trial does.
fn trial(rig: &mut Rig, sweep: &mut Sweep<'_>, kind: Kind, span: Range<usize>, places: &mut Places, tally: &mut Tally) {
    let place = span.start;
    sweep.advance(place - 1);
    rig.begin(&sweep.snapshot());
    for (frame, _) in sweep.frames(place - 1, place - 1) {
        rig.feed(&frame).unwrap();
    }
    sweep.advance(place);
    assert!(rig.is_verified() && rig.is_true(&sweep.book), "a clean start at {place}");
    let epochs = rig.engine.counters().venue(sweep.truth.spec.venue).epochs;
    let frames = faulty(sweep, kind, place, span.end, places);
    let (mut messages, mut noticed, mut wrong, mut deceived, mut duplicate) = (0, None, false, false, false);
    for (frame, update) in &frames {
        let result = rig.feed(frame);
        if let Some(update) = update {
            messages += 1;
            sweep.advance(*update + 1);
        }
        duplicate |= result == Err(DropReason::Duplicate);
        if rig.is_lost() {
            noticed = Some(messages);
            break;
        }
        // Of two swapped updates, the first to arrive is ahead of the sweep: its book is that after both.
        let is_ahead = kind == Kind::Swap && messages == 1;
        let is_wrong = update.is_some() && !is_ahead && !rig.is_true(&sweep.book);
        wrong |= is_wrong;
        deceived |= is_wrong && rig.is_verified();
    }
    tally.deceived += usize::from(deceived);
    tally.duplicates += usize::from(duplicate);
    match noticed {
        Some(..=1) => tally.at_once += 1,
        Some(_) => tally.later += 1,
        None if wrong => tally.unseen_wrong += 1,
        None => tally.unseen_right += 1,
    }
    if kind == Kind::Reset {
        assert_eq!(rig.engine.counters().venue(sweep.truth.spec.venue).epochs, epochs + 1);
    }
    if noticed.is_some() && kind != Kind::LostReset {
        recover(rig, sweep);
    }
}

/// After what was noticed: one request, and with its answer the true book, verified.
fn recover(rig: &mut Rig, sweep: &mut Sweep<'_>) {
    let mut requests = 0;
    for _ in 0..6 {
        let next = sweep.len;
        for (frame, update) in sweep.frames(next, next) {
            // Numbers that are too old, or wait for the snapshot, are refused by name.
            let _ = rig.feed(&frame);
            sweep.advance(update.map_or(sweep.len, |update| update + 1));
        }
        while let Some(request) = rig.engine.poll_request(rig.now) {
            assert!(matches!(request, Request::FetchSnapshot { .. } | Request::Resubscribe { .. }));
            requests += 1;
            rig.take_snapshot(&sweep.snapshot()).unwrap();
        }
        if requests == 1 && rig.is_verified() && rig.is_true(&sweep.book) {
            return;
        }
    }
    panic!("{requests} requests, verified: {}", rig.is_verified());
}

/// A thousand trials of one reason, spread over as many sweeps as they need.
fn tally(truth: &Truth, kind: Kind, window: usize) -> Tally {
    let mut rig = Rig::new(truth.spec);
    let mut places = Places(0x5eed + kind as u64);
    let mut tally = Tally::default();
    let mut sweep = Sweep::new(truth);
    let spread = (truth.updates.len() / 40).clamp(2, 40);
    for _ in 0..PLACES {
        let mut place = sweep.len + 2 + places.below(spread);
        if place + window + 8 >= truth.updates.len() {
            sweep = Sweep::new(truth);
            place = 2 + places.below(spread);
        }
        trial(&mut rig, &mut sweep, kind, place..place + window, &mut places, &mut tally);
    }
    let counters = rig.engine.counters().venue(truth.spec.venue);
    assert!(counters.closes());
    tally
}

fn row(name: &str, kind: Kind, tally: &Tally) -> String {
    let mut row = format!("| {name} | {} |", kind.name());
    for count in [tally.at_once, tally.later, tally.unseen_right, tally.unseen_wrong] {
        write!(row, " {count} |").unwrap();
    }
    row
}

/// Tries each reason, and adds its row to `rows`.
fn prove(name: &str, truth: &Truth, window: usize, kinds: &[Kind], rows: &mut Vec<String>) -> Vec<Tally> {
    let tallies: Vec<_> = kinds.iter().map(|kind| tally(truth, *kind, window)).collect();
    rows.extend(kinds.iter().zip(&tallies).map(|(kind, tally)| row(name, *kind, tally)));
    tallies
}

/// The document has these rows.
fn hold(rows: &[String]) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/market-proofs.md");
    let document = std::fs::read_to_string(path).unwrap();
    let all = rows.iter().all(|row| document.contains(row));
    assert!(all, "docs/market-proofs.md should have\n{}", rows.join("\n"));
}

const FAULTS: [Kind; 4] = [Kind::Drop, Kind::Double, Kind::Swap, Kind::Flip];

/// Numbers notice every lost and every swapped update at once, and every doubled one by itself.
fn numbers_notice(tallies: &[Tally]) {
    let [drop, double, swap, flip] = tallies else { panic!("four kinds") };
    assert_eq!((drop.at_once, drop.deceived), (PLACES, 0));
    assert_eq!((swap.at_once, swap.deceived), (PLACES, 0));
    assert_eq!((double.duplicates, double.unseen_right), (PLACES, PLACES), "refused, and the book as it was");
    assert!(flip.unseen_wrong > 0, "a number says nothing of digits");
}

/// A checksum never calls a wrong level among its own verified.
fn checksum_notices(tallies: &[Tally]) {
    let [drop, double, swap, flip] = tallies else { panic!("four kinds") };
    assert_eq!((drop.deceived, flip.deceived, double.deceived), (0, 0, 0));
    assert_eq!(double.unseen_right, PLACES, "setting a level twice changes nothing");
    assert!([drop, swap, flip].iter().all(|tally| tally.at_once + tally.later > 0));
}

fn binance(name: &str, mut capture: Capture) {
    capture.frames.truncate(20_000);
    let mut rows = Vec::new();
    numbers_notice(&prove(name, &Truth::of(&capture, 0), 12, &FAULTS, &mut rows));
    hold(&rows);
}

#[test]
fn binance_spot_faults_at_a_thousand_places() {
    let Some(capture) = Capture::require_spot() else { return };
    binance("Binance spot", capture);
}

#[test]
fn binance_usdm_faults_at_a_thousand_places() {
    let Some(capture) = Capture::require_usdm() else { return };
    binance("Binance USD-M", capture);
}

#[test]
fn bybit_faults_at_a_thousand_places() {
    let Some(capture) = Capture::require_bybit() else { return };
    let truth = Truth::of(&capture, 0);
    let mut rows = Vec::new();
    numbers_notice(&prove("Bybit", &truth, 10, &FAULTS, &mut rows));
    let resets = prove("Bybit", &truth, 10, &[Kind::Reset, Kind::LostReset], &mut rows);
    hold(&rows);
    assert_eq!((resets[0].unseen_right, resets[0].deceived), (PLACES, 0), "a new epoch is no gap");
    assert_eq!(resets[1].at_once, PLACES);
}

#[test]
fn deribit_faults_at_a_thousand_places() {
    let Some(capture) = Capture::require_deribit() else { return };
    let most =
        (0..capture.specs.len()).map(|number| Truth::of(&capture, number)).max_by_key(|truth| truth.updates.len());
    let mut rows = Vec::new();
    numbers_notice(&prove("Deribit", &most.unwrap(), 8, &FAULTS, &mut rows));
    hold(&rows);
}

#[test]
fn okx_faults_at_a_thousand_places() {
    let Some(capture) = Capture::require_okx() else { return };
    let mut rows = Vec::new();
    checksum_notices(&prove("OKX, by checksum", &Truth::of(&capture, 0), 12, &FAULTS, &mut rows));
    hold(&rows);
}

#[test]
fn kraken_faults_at_a_thousand_places() {
    let mut rows = Vec::new();
    for depth in [10, 25] {
        let Some(capture) = Capture::require_kraken(depth) else { return };
        let truth = Truth::of(&capture, 0);
        let name = format!("Kraken, depth {depth}");
        let tallies = prove(&name, &truth, 30, &FAULTS, &mut rows);
        checksum_notices(&tallies);
        assert_eq!(tallies[2].deceived, 0, "no swap is called verified");
        let skipped = skipped_truncations(&truth);
        assert_eq!((skipped.at_once, skipped.deceived), (PLACES, 0), "the count of levels shows it at once");
        rows.push(row(&name, Kind::KeepBeyondDepth, &skipped));
    }
    hold(&rows);
}

/// A book that keeps what falls out of the depth, as the engine does not know how deep it is: the first snapshot does.
fn skipped_truncations(truth: &Truth) -> Tally {
    let mut rig = Rig::new(InstrumentSpec { depth_max: None, ..truth.spec });
    let (mut tally, mut trials) = (Tally::default(), 0);
    while trials < PLACES {
        let mut sweep = Sweep::new(truth);
        while trials < PLACES && sweep.len + 60 < truth.updates.len() {
            let before = sweep.book.clone();
            let snapshot = if sweep.len == 0 { None } else { Some(sweep.snapshot()) };
            let place = sweep.len;
            sweep.advance(place + 1);
            let Some(snapshot) = snapshot.filter(|_| sweep.book.truncated > 0) else { continue };
            rig.begin(&snapshot);
            let mut later = Sweep { truth, book: before, len: place };
            let mut messages = 0;
            let mut noticed = None;
            for (frame, update) in later.frames(place, place + 50) {
                let _ = rig.feed(&frame);
                let Some(update) = update else { continue };
                later.advance(update + 1);
                messages += 1;
                if !rig.is_verified() {
                    noticed = Some(messages);
                    break;
                }
                tally.deceived += usize::from(!rig.is_true(&later.book));
            }
            match noticed {
                Some(..=1) => tally.at_once += 1,
                Some(_) => tally.later += 1,
                None => tally.unseen_right += 1,
            }
            trials += 1;
        }
    }
    tally
}
