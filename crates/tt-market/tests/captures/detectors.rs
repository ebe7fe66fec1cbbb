//! What each proof detects, at seeded random places of the captures: a frame dropped, doubled, swapped with the next
//! one of the book, and a digit flipped.
//!
//! The measure is the clean run: whenever the engine calls a book verified, its best ten levels must be those of the
//! clean run after the same frame. What cannot be detected is named and counted:
//!
//! - a flipped digit on a venue that numbers its updates: the numbers stay right; Binance's tickers find some later;
//! - a doubled frame on Kraken: setting a level twice changes nothing, so nothing is wrong;
//! - a drop or a swap on Kraken outside of the ten best levels, until those levels come up.

use crate::captured::{Capture, Feed};
use tt_journal::Record;
use tt_market::{BookLevel, Fault, Proof, Venue};
use tt_model::Nanos;

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

type Sides = (Vec<BookLevel>, Vec<BookLevel>);

/// The clean run: the best levels after each frame, and the frames that changed a live book.
struct Clean {
    sides: Vec<Sides>,
    deltas: Vec<usize>,
}

impl Clean {
    fn run(capture: &Capture) -> Self {
        let mut feed = Feed::new(capture);
        let mut clean = Self { sides: Vec::new(), deltas: Vec::new() };
        for (at, frame) in capture.frames.iter().enumerate() {
            let before = feed.counters().deltas;
            let live = feed.top().standing.proof.is_verified();
            feed.feed(frame).unwrap();
            clean.sides.push(feed.sides());
            if live && feed.counters().deltas > before {
                clean.deltas.push(at);
            }
        }
        clean
    }
}

/// What came of one fault.
struct Outcome {
    /// After how many frames of the book the fault was noticed, if it was.
    noticed: Option<usize>,
    /// Whether a book was called verified whose best levels were not the clean run's.
    deceived: bool,
    gaps: u64,
    requests: usize,
    duplicates: u64,
}

/// Feeds `frames`, of which the first `same` are the clean ones; `clean_at` tells the clean frame after each other.
fn outcome(capture: &Capture, clean: &Clean, same: usize, rest: &[(Record, usize)]) -> Outcome {
    let mut feed = Feed::new(capture);
    for frame in &capture.frames[..same] {
        feed.feed(frame).unwrap();
    }
    let (requests, gaps) = (feed.requests.len(), feed.counters().gaps);
    let mut outcome = Outcome { noticed: None, deceived: false, gaps: 0, requests: 0, duplicates: 0 };
    let mut deltas = 0;
    for (frame, clean_at) in rest {
        let result = feed.feed(frame);
        deltas += usize::from(is_book_frame(frame));
        if !feed.top().standing.proof.is_verified() {
            outcome.noticed = Some(deltas);
            break;
        }
        // Between frames of the book nobody can know that one is missing.
        let tells = is_book_frame(frame) && result != Err(Fault::Duplicate);
        if tells && feed.sides() != clean.sides[*clean_at] {
            outcome.deceived = true;
        }
    }
    // A resync waits for a moment that is as good as random.
    let last = rest.last().map_or(0, |(frame, _)| frame.ts_ns);
    feed.poll(Nanos(last + 1_000_000_000));
    outcome.gaps = feed.counters().gaps - gaps;
    outcome.requests = feed.requests.len() - requests;
    outcome.duplicates = feed.counters().dropped(Fault::Duplicate);
    assert!(feed.counters().closes());
    outcome
}

fn is_book_frame(frame: &Record) -> bool {
    let text = &frame.payload[..frame.payload.len().min(80)];
    text.starts_with(b"{\"channel\":\"book\"") || text.windows(11).any(|window| window == b"depthUpdate")
}

/// The clean frames from `from` to at most `len` further ones, each paired with itself.
fn tail(capture: &Capture, from: usize, len: usize) -> Vec<(Record, usize)> {
    (from..capture.frames.len().min(from + len)).map(|at| (capture.frames[at].clone(), at)).collect()
}

const TRIALS: usize = 40;
const WINDOW: usize = 300;

fn dropped(capture: &Capture, clean: &Clean, at: usize) -> Outcome {
    outcome(capture, clean, at, &tail(capture, at + 1, WINDOW))
}

fn doubled(capture: &Capture, clean: &Clean, at: usize) -> Outcome {
    let mut rest = vec![(capture.frames[at].clone(), at), (capture.frames[at].clone(), at)];
    rest.extend(tail(capture, at + 1, WINDOW));
    outcome(capture, clean, at, &rest)
}

fn swapped(capture: &Capture, clean: &Clean, at: usize, next: usize) -> Outcome {
    let mut rest = tail(capture, at, WINDOW.max(next - at + 1));
    rest[0].0 = capture.frames[next].clone();
    rest[next - at].0 = capture.frames[at].clone();
    outcome(capture, clean, at, &rest)
}

/// Flips one digit within the levels of a book frame.
fn flipped(capture: &Capture, clean: &Clean, at: usize, places: &mut Places) -> Outcome {
    let mut rest = tail(capture, at, WINDOW);
    let text = &mut rest[0].0.payload;
    let start = text.windows(4).position(|window| window == b"\"b\":" || window == b"bids").unwrap();
    let end = text.windows(10).position(|window| window == b"\"checksum\"").unwrap_or(text.len());
    let digits: Vec<usize> = (start..end).filter(|at| text[*at].is_ascii_digit()).collect();
    let digit = &mut text[digits[places.below(digits.len())]];
    *digit = b'0' + (*digit - b'0' + 1 + places.below(9) as u8) % 10;
    outcome(capture, clean, at, &rest)
}

fn numbered_venue_notices(mut capture: Capture) {
    capture.frames.truncate(3000);
    let clean = Clean::run(&capture);
    let mut places = Places(0x5eed);
    let (mut flips_noticed, mut flips_deceived) = (0, 0);
    for _ in 0..TRIALS {
        let pick = places.below(clean.deltas.len() - 2);
        let (at, next) = (clean.deltas[pick], clean.deltas[pick + 1]);
        for fault in [dropped(&capture, &clean, at), swapped(&capture, &clean, at, next)] {
            assert!(fault.noticed.is_some_and(|frames| frames <= 1), "noticed by the next frame of the book");
            assert_eq!((fault.deceived, fault.gaps, fault.requests), (false, 1, 1), "one gap, one resync");
        }
        let double = doubled(&capture, &clean, at);
        assert_eq!((double.noticed, double.deceived, double.requests), (None, false, 0));
        assert_eq!(double.duplicates, 1, "counted, and the book as it was");
        let flip = flipped(&capture, &clean, at, &mut places);
        flips_noticed += usize::from(flip.noticed.is_some());
        flips_deceived += usize::from(flip.noticed.is_none() && flip.deceived);
    }
    println!(
        "{}: {TRIALS} drops, {TRIALS} swaps, {TRIALS} doubles, all noticed; of {TRIALS} flipped digits {flips_noticed} \
         noticed by the tickers, {flips_deceived} in the best ten levels not",
        capture.venue().name()
    );
    assert!(flips_noticed < TRIALS, "a numbered venue cannot notice every flipped digit");
}

#[test]
fn usdm_numbers_notice_every_lost_frame() {
    if let Some(capture) = Capture::usdm("usdm_numbers_notice_every_lost_frame") {
        numbered_venue_notices(capture);
    }
}

#[test]
fn spot_numbers_notice_every_lost_frame() {
    if let Some(capture) = Capture::spot("spot_numbers_notice_every_lost_frame") {
        numbered_venue_notices(capture);
    }
}

/// A flipped digit that changes the best level of an update id for which a ticker is there cannot pass.
#[test]
fn tickers_notice_a_wrong_best_level() {
    let Some(capture) = Capture::usdm("tickers_notice_a_wrong_best_level") else { return };
    let mut feed = Feed::new(&capture);
    let mut tried = 0;
    for frame in &capture.frames[..20_000] {
        let top = feed.top();
        let is_ticker = frame.payload.windows(10).any(|window| window == b"bookTicker");
        let id = format!("\"u\":{},", top.update_id);
        if is_ticker && frame.payload.windows(id.len()).any(|window| window == id.as_bytes()) {
            let mut wrong = frame.clone();
            let at = wrong.payload.windows(5).position(|window| window == b"\"B\":\"").unwrap() + 5;
            wrong.payload[at] = if wrong.payload[at] == b'9' { b'8' } else { wrong.payload[at] + 1 };
            if top.standing.proof.is_verified() {
                assert_eq!(feed.feed(&wrong), Err(Fault::OracleMismatch));
                assert_eq!(feed.top().standing.proof, Proof::Stale);
                tried += 1;
                break;
            }
        }
        let _ = feed.feed(frame);
    }
    assert_eq!(tried, 1);
}

#[test]
fn kraken_checksum_never_calls_wrong_levels_verified() {
    for depth in [10, 25] {
        let Some(mut capture) = Capture::kraken("kraken_checksum_never_calls_wrong_levels_verified", depth) else {
            return;
        };
        capture.frames.truncate(700);
        assert_eq!(capture.venue(), Venue::Kraken);
        let clean = Clean::run(&capture);
        let mut places = Places(0xc0de + depth as u64);
        let mut noticed = [0; 3];
        for _ in 0..TRIALS {
            let pick = places.below(clean.deltas.len() - 12);
            let (at, next) = (clean.deltas[pick], clean.deltas[pick + 1]);
            let faults = [
                dropped(&capture, &clean, at),
                swapped(&capture, &clean, at, next),
                flipped(&capture, &clean, at, &mut places),
            ];
            for (count, fault) in noticed.iter_mut().zip(&faults) {
                *count += usize::from(fault.noticed.is_some());
                assert_eq!(fault.requests, usize::from(fault.noticed.is_some()), "one resync for what was noticed");
            }
            // A swapped pair that passes shows states that the venue had, in another order.
            assert!(!faults[0].deceived && !faults[2].deceived);
            let double = doubled(&capture, &clean, at);
            assert_eq!((double.noticed, double.deceived), (None, false), "harmless");
        }
        println!("kraken depth {depth}: of {TRIALS} drops, swaps, flipped digits noticed {noticed:?}");
        assert!(noticed.iter().all(|count| *count * 2 > TRIALS), "most faults lie within the ten best levels");
    }
}
