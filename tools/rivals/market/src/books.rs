//! Books of others, each behind the same few questions.

pub(crate) mod barter;
pub(crate) mod hftbacktest;
pub(crate) mod nautilus;
pub(crate) mod plain;

use std::hint::black_box;
use std::sync::{PoisonError, RwLock};

use crate::gauge::Gauge;
use crate::input::{Feed, Sides};
use crate::wire::Levels;
use anyhow::ensure;

/// A book, and a reader of frames for it.
pub(crate) trait Book {
    /// Levels in the form that the book takes.
    type Parsed;

    /// An empty book for the session.
    fn new(session: &Feed) -> Self;

    /// Levels of a frame or a snapshot in that form; not timed.
    fn prepare(levels: &Levels) -> Self::Parsed;

    /// Replaces the whole book.
    fn load(&mut self, snapshot: &Self::Parsed);

    /// Changes the levels of one frame. `false` if it does not continue the book.
    fn apply(&mut self, frame: &Self::Parsed) -> bool;

    /// Reads the body of a snapshot and replaces the whole book. `false` if it is none.
    fn load_bytes(&mut self, body: &[u8]) -> bool;

    /// Reads a frame and changes the book. `false` if it is none or does not continue the book.
    fn apply_bytes(&mut self, frame: &[u8]) -> bool;

    /// Something of the best levels, which a reader would want.
    fn best(&self) -> u64;

    /// All of the book.
    fn sides(&self, session: &Feed) -> Sides;
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) ns: f64,
    /// Levels, snapshots or frames that it is of.
    pub(crate) units: u64,
}

/// Frames whose levels are known already: nanoseconds of all their levels.
pub(crate) fn delta<B: Book>(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let frames: Vec<Levels> =
        session.live.iter().map(|record| Levels::of_frame(&record.payload)).collect::<Result<_, _>>()?;
    let parsed: Vec<B::Parsed> = frames.iter().map(B::prepare).collect();
    let mut book = B::new(session);
    // The first time brings the memory.
    join(&mut book, session)?;
    parsed.iter().for_each(|frame| _ = book.apply(frame));
    join(&mut book, session)?;
    let begin = gauge.begin();
    let mut applied = 0;
    for frame in &parsed {
        applied += u64::from(book.apply(black_box(frame)));
        black_box(book.best());
    }
    let ns = gauge.end(begin);
    check(&book, session, applied)?;
    Ok(Timing { ns, units: session.levels as u64 })
}

/// Frames as they came: nanoseconds of all of them.
pub(crate) fn bytes<B: Book>(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let mut book = B::new(session);
    join(&mut book, session)?;
    session.live.iter().for_each(|record| _ = book.apply_bytes(&record.payload));
    join(&mut book, session)?;
    let begin = gauge.begin();
    let mut applied = 0;
    for record in &session.live {
        applied += u64::from(book.apply_bytes(black_box(&record.payload)));
        black_box(book.best());
    }
    let ns = gauge.end(begin);
    check(&book, session, applied)?;
    Ok(Timing { ns, units: session.live.len() as u64 })
}

/// The snapshot of the session, again and again into a book that holds it already.
pub(crate) fn snapshot<B: Book>(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let levels = Levels::of_body(&session.snapshot)?;
    let parsed = B::prepare(&levels);
    let mut book = B::new(session);
    book.load(&parsed);
    let begin = gauge.begin();
    for _ in 0..session.extent.snapshots {
        book.load(black_box(&parsed));
        black_box(book.best());
    }
    let ns = gauge.end(begin);
    ensure!(book.sides(session) == [levels.bids, levels.asks], "the book is not the snapshot");
    Ok(Timing { ns, units: session.extent.snapshots })
}

/// The same with what truetick does besides: the levels are checked, and the book is published to readers on other threads
/// see it.
pub(crate) fn snapshot_checked<B: Book>(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let levels = Levels::of_body(&session.snapshot)?;
    let parsed = B::prepare(&levels);
    let book = RwLock::new(B::new(session));
    book.write().unwrap_or_else(PoisonError::into_inner).load(&parsed);
    let mut sound = 0;
    let begin = gauge.begin();
    for _ in 0..session.extent.snapshots {
        let (levels, parsed) = black_box((&levels, &parsed));
        sound += u64::from(levels.is_snapshot());
        let mut book = book.write().unwrap_or_else(PoisonError::into_inner);
        book.load(parsed);
        black_box(book.best());
    }
    let ns = gauge.end(begin);
    ensure!(sound == session.extent.snapshots, "the snapshot is out of order");
    let book = book.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(book.sides(session) == [levels.bids, levels.asks], "the book is not the snapshot");
    Ok(Timing { ns, units: session.extent.snapshots })
}

/// As [`snapshot`], from its bytes.
pub(crate) fn snapshot_bytes<B: Book>(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let levels = Levels::of_body(&session.snapshot)?;
    let mut book = B::new(session);
    ensure!(book.load_bytes(&session.snapshot), "the snapshot is not taken");
    let begin = gauge.begin();
    for _ in 0..session.extent.snapshots {
        black_box(book.load_bytes(black_box(&session.snapshot)));
        black_box(book.best());
    }
    let ns = gauge.end(begin);
    ensure!(book.sides(session) == [levels.bids, levels.asks], "the book is not the snapshot");
    Ok(Timing { ns, units: session.extent.snapshots })
}

/// The snapshot and the frames up to the live ones.
fn join<B: Book>(book: &mut B, session: &Feed) -> anyhow::Result<()> {
    let body = Levels::of_body(&session.snapshot)?;
    book.load(&B::prepare(&body));
    for (index, frame) in session.joining(body.last_id).enumerate() {
        let mut frame = frame?;
        if index == 0 {
            // The frame that holds the snapshot's id continues it by definition.
            frame.before_id = body.last_id;
        }
        ensure!(book.apply(&B::prepare(&frame)), "an early frame does not continue the book");
    }
    Ok(())
}

fn check<B: Book>(book: &B, session: &Feed, applied: u64) -> anyhow::Result<()> {
    ensure!(applied == session.live.len() as u64, "{applied} of {} frames applied", session.live.len());
    ensure!(book.sides(session) == session.end, "the book at the end is not the true one");
    Ok(())
}
