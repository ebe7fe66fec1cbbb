//! A recording on its way through the engine.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use market_feed::{Event, Listener, Run, hash_runs};
use pyo3::PyErr;
use pyo3::exceptions::PyOSError;
use tt_journal::RecordingReader;
use tt_journal::recording::TailFault;

use crate::RecordingError;
use crate::book::Book;
use crate::image::BookImage;

/// Books that a record led to, each with the number of its feed.
type Books = Arc<Mutex<VecDeque<(u16, BookImage)>>>;

/// A recording that is replayed.
pub(crate) struct Player {
    reader: RecordingReader<BufReader<File>>,
    replay: market_feed::Replay,
    books: Books,
}

/// What a step of a replay led to.
pub(crate) enum Played {
    Book(Book),
    /// No book within the records of the step.
    Nothing,
    /// The recording has ended.
    Ended,
}

/// Result of a whole replay.
pub(crate) struct Outcome {
    pub(crate) runs: Vec<Run>,
    pub(crate) records: u64,
    pub(crate) hash: u64,
    tail: Option<TailFault>,
}

/// An error of the engine or of the file, as Python's.
pub(crate) fn error(error: &anyhow::Error) -> PyErr {
    match error.downcast_ref::<std::io::Error>() {
        Some(io) => PyOSError::new_err((io.raw_os_error(), format!("{error:#}"))),
        None => RecordingError::new_err(format!("{error:#}")),
    }
}

impl Player {
    /// Opens a recording.
    pub(crate) fn open(path: &Path, levels: usize) -> Result<Self> {
        let shown = || path.display().to_string();
        let file = File::open(path).with_context(shown)?;
        let reader = RecordingReader::new(BufReader::with_capacity(1 << 18, file));
        let reader = reader.map_err(|error| anyhow::anyhow!("{error}")).with_context(shown)?;
        let books = Books::default();
        let filled = Arc::clone(&books);
        let replay = market_feed::Replay::with_listeners(move |feed| {
            let filled = Arc::clone(&filled);
            Listener::new(move |event| match event {
                Event::Book(change) if change.is_unknown() => {}
                Event::Book(change) => {
                    let mut books = filled.lock().unwrap_or_else(PoisonError::into_inner);
                    books.push_back((feed, BookImage::of(change, levels)));
                }
                Event::Trade { .. } | Event::Liquidation { .. } => {}
            })
        });
        Ok(Self { reader, replay, books })
    }

    /// Takes records until one leads to a book, at most `records_max`.
    pub(crate) fn step(&mut self, records_max: usize) -> Result<Played> {
        for _ in 0..records_max {
            let next = self.books.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            if let Some((feed, image)) = next {
                return Ok(Played::Book(self.book(feed, image)));
            }
            let entry = self.reader.read().map_err(|error| anyhow::anyhow!("{error}"))?;
            let Some(entry) = entry else { return Ok(Played::Ended) };
            self.replay.take(&entry)?;
        }
        Ok(Played::Nothing)
    }

    fn book(&self, feed: u16, image: BookImage) -> Book {
        let (all, id) = (self.replay.instruments(), image.instrument);
        let is_it = |of: &&market_feed::ReplayedInstrument| of.feed == feed && of.id.0 == id;
        let found = all.get(id as usize).filter(is_it).or_else(|| all.iter().find(is_it));
        let (venue, symbol) = found.map_or(("", ""), |of| (of.venue.name(), of.symbol.as_str()));
        Book::new(image, venue, symbol.into())
    }

    /// The result, once all records are taken.
    pub(crate) fn finish(self) -> Outcome {
        let (records, tail) = (self.reader.records(), self.reader.tail());
        let runs = self.replay.finish();
        Outcome { hash: hash_runs(&runs), runs, records, tail }
    }
}

impl Outcome {
    /// Hashes that were compared.
    pub(crate) fn checkpoints(&self) -> u64 {
        self.runs.iter().map(|run| run.checkpoints).sum()
    }

    /// Inputs that are not in the recording because its recorder was too slow.
    pub(crate) fn lost(&self) -> u64 {
        self.runs.iter().map(|run| run.lost).sum()
    }

    /// Fails if the state is another one than the recorded state, or the recording is damaged. An incomplete last record,
    /// left by a killed recorder, is allowed.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(tail) = self.tail.filter(|tail| *tail != TailFault::Torn) {
            bail!("the recording ends after {} records: {}", self.records, tail.text());
        }
        if let Some(record) = self.runs.iter().find_map(|run| run.first_differing) {
            bail!("the state differs from the recorded one at record {record}");
        }
        match self.lost() {
            0 => Ok(()),
            lost => bail!("{lost} inputs were not recorded"),
        }
    }

    /// Whether a state was compared and every one is the same.
    pub(crate) fn is_right(&self) -> bool {
        self.check().is_ok() && self.checkpoints() > 0
    }
}
