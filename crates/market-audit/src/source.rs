//! Reads files of all formats and passes their records to examiners.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tt_journal::recording::{RecordKind, TailFault};
use tt_journal::{
    CbcapReader, CryptofeedReader, Direction, Entry, Format, GzLines, JsonLines, ReadError, Record, RecordingReader,
    read_container,
};
use tt_model::{InstrumentId, Nanos, sort_short_by_key};
use tt_venue::{Origin, Symbol, Venue};

use super::examiner::Examiner;
use super::finding::Findings;
use market_feed::{Replay, Run, parse_instrument, parse_steps, parse_venue};
use tt_os::progress::ProgressLine;
use tt_os::shutdown::Shutdown;

/// Frames held until one of them identifies the venue.
const HELD_MAX: usize = 1000;
/// Records between two reads of the clock.
const RECORDS_PER_LOOK: u64 = 256;

/// Result of auditing a recording.
pub struct Examined {
    pub(super) format: Format,
    /// One per feed.
    pub(super) feeds: Vec<Examiner>,
    /// Findings about the file.
    pub(super) findings: Findings,
    /// Replays of truetick's own recordings.
    pub(super) runs: Vec<Run>,
    pub(super) records: u64,
    /// Bytes of the files, compressed or not.
    pub(super) file_bytes: u64,
}

impl Examined {
    /// Returns the number of records.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns whether no finding is an error.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.findings.is_right() && self.feeds.iter().all(|feed| feed.findings.is_right())
    }
}

/// Why an audit has no result.
#[derive(Debug)]
pub enum Failed {
    /// The file cannot be read as a recording; the reason.
    Unreadable(String),
    /// A signal stopped it.
    Ended,
}

impl From<ReadError> for Failed {
    fn from(error: ReadError) -> Self {
        let known = "not a recording of truetick, hftbacktest, cryptofeed, cbcap or JSON lines";
        Self::Unreadable(if error == ReadError::Header { known.to_owned() } else { error.to_string() })
    }
}

/// A REST response of the `.http` file.
struct Answer {
    ts_ns: u64,
    symbol: Option<Symbol>,
    body: Vec<u8>,
}

/// The state of one audit.
struct Examination<'a> {
    venue: Option<Venue>,
    /// By feed; recordings of others have one feed.
    feeds: Vec<(u16, Examiner)>,
    held: Vec<(u64, Record)>,
    answers: std::vec::IntoIter<Answer>,
    answer: Option<Answer>,
    replay: Option<Replay>,
    findings: Findings,
    records: u64,
    /// Bytes read of all files, and their total length.
    bytes: &'a AtomicU64,
    len: u64,
    progress: ProgressLine,
    shutdown: &'a Shutdown,
}

/// Audits one recording, which may consist of several files, until `shutdown` is requested. The content shows the venue
/// if `venue` is `None`.
///
/// # Errors
/// A file cannot be read as a recording, its venue is unknown, or `shutdown` was requested.
pub fn examine(parts: &[PathBuf], venue: Option<Venue>, shutdown: &Shutdown) -> Result<Examined, Failed> {
    let bytes = AtomicU64::new(0);
    let len = parts.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
    let mut examination = Examination {
        venue,
        feeds: Vec::new(),
        held: Vec::new(),
        answers: Vec::new().into_iter(),
        answer: None,
        replay: None,
        findings: Findings::default(),
        records: 0,
        bytes: &bytes,
        len,
        progress: ProgressLine::new("audit"),
        shutdown,
    };
    let mut format = Format::Recording;
    for path in parts {
        format =
            read_container(path, &bytes, |format, source| examination.part(format, source, path).map(|()| format))?;
    }
    examination.progress.end();
    examination.finish(format)
}

impl Examination<'_> {
    fn part(&mut self, format: Format, source: &mut dyn BufRead, path: &Path) -> Result<(), Failed> {
        match format {
            Format::Recording => return self.recording(source),
            Format::StampedLines => {
                for record in GzLines::new(source) {
                    self.take(record)?;
                }
            }
            Format::JsonLines => {
                for record in JsonLines::new(source) {
                    self.take(record)?;
                }
            }
            Format::Cbcap => {
                let reader = CbcapReader::new(source)?;
                let named = self.venue.or_else(|| Venue::find(reader.venue()));
                let unknown = || Failed::Unreadable(format!("{}: unknown venue", reader.venue()));
                self.settle(Origin::Venue(named.ok_or_else(unknown)?))?;
                for record in reader {
                    self.take(record)?;
                }
            }
            Format::Cryptofeed => self.cryptofeed(source, path)?,
        }
        // No frame identified the venue.
        if self.feeds.is_empty() {
            return Err(Failed::Unreadable("unknown venue: use --venue".to_owned()));
        }
        Ok(())
    }

    fn cryptofeed(&mut self, source: &mut dyn BufRead, path: &Path) -> Result<(), Failed> {
        let companion = path.with_extension("http");
        if companion != *path && companion.exists() {
            self.answers = answers(&companion)?.into_iter();
            self.answer = self.answers.next();
        }
        for line in CryptofeedReader::new(source) {
            let Some(line) = self.whole(line)? else { break };
            match line.direction {
                Direction::Received => self.take(Ok(line.record))?,
                Direction::Opened | Direction::Addressed => {
                    if let Some(origin) = line.address.as_deref().and_then(Venue::of_address)
                        && self.feeds.is_empty()
                    {
                        self.settle(self.venue.map_or(origin, Origin::Venue))?;
                    }
                }
            }
        }
        while let Some(answer) = self.answer.take() {
            self.hand_in(answer);
        }
        Ok(())
    }

    /// Returns the record, or `None` if it is damaged or incomplete, which becomes a finding.
    fn whole<T>(&mut self, record: Result<T, ReadError>) -> Result<Option<T>, Failed> {
        match record {
            Ok(record) => Ok(Some(record)),
            Err(ReadError::Truncated) => {
                self.findings.add("cut_off", 1, false, Some(self.records), "the file ends within a record");
                Ok(None)
            }
            Err(ReadError::Record) => {
                self.findings.add("bad_record", 1, true, Some(self.records), "a record is malformed");
                Ok(None)
            }
            Err(error @ (ReadError::Io(_) | ReadError::Header | ReadError::Version(_))) => Err(error.into()),
        }
    }

    /// Takes a frame of another project's recording.
    fn take(&mut self, record: Result<Record, ReadError>) -> Result<(), Failed> {
        let Some(record) = self.whole(record)? else { return Ok(()) };
        self.step()?;
        if !self.feeds.is_empty() {
            self.examine(self.records, &record);
            return Ok(());
        }
        let venue = self.venue.or_else(|| Venue::of_frame(&record.payload));
        self.held.push((self.records, record));
        match venue {
            Some(venue) => self.settle(Origin::Venue(venue)),
            None if self.held.len() < HELD_MAX => Ok(()),
            None => Err(Failed::Unreadable("unknown venue: use --venue".to_owned())),
        }
    }

    /// Sets the venue and passes on the held frames.
    fn settle(&mut self, origin: Origin) -> Result<(), Failed> {
        let venue = match origin {
            Origin::Venue(venue) => venue,
            Origin::Unsupported(name) => return Err(Failed::Unreadable(format!("{name} is not supported"))),
        };
        if self.feeds.is_empty() {
            self.feeds.push((0, Examiner::new(venue, false)));
        }
        for (number, record) in std::mem::take(&mut self.held) {
            self.examine(number, &record);
        }
        Ok(())
    }

    fn examine(&mut self, number: u64, record: &Record) {
        while let Some(answer) = self.answer.take_if(|answer| answer.ts_ns <= record.ts_ns) {
            self.hand_in(answer);
        }
        let Some((_, examiner)) = self.feeds.first_mut() else { return };
        // hftbacktest writes a REST snapshot between the frames.
        if record.payload.starts_with(b"{\"lastUpdateId\"") {
            examiner.snapshot(number, record.ts_ns, None, &record.payload);
        } else {
            examiner.frame(number, record.ts_ns, &record.payload);
        }
    }

    fn hand_in(&mut self, answer: Answer) {
        if let Some((_, examiner)) = self.feeds.first_mut() {
            // Its receive time is not in the order of the frames, which come from another connection.
            examiner.snapshot(self.records, 0, answer.symbol, &answer.body);
        }
        self.answer = self.answers.next();
    }

    /// Counts a record, prints the progress, and stops on a signal.
    fn step(&mut self) -> Result<(), Failed> {
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_PER_LOOK) {
            self.progress.update(self.bytes.load(Relaxed), self.len);
            if self.shutdown.is_requested() {
                return Err(Failed::Ended);
            }
        }
        Ok(())
    }

    /// Audits truetick's own recording: it contains connections and instruments, and its hashes are compared.
    fn recording(&mut self, source: &mut dyn BufRead) -> Result<(), Failed> {
        let mut reader = RecordingReader::new(source)?;
        self.replay.get_or_insert_default();
        while let Some(entry) = reader.read()? {
            self.step()?;
            let number = self.records;
            let taken = match &mut self.replay {
                Some(replay) => replay.take(&entry),
                None => Ok(()),
            };
            if let Err(error) = taken.and_then(|()| self.entry(number, &entry)) {
                return Err(Failed::Unreadable(format!("{error:#}")));
            }
        }
        let at = Some(reader.records());
        match reader.tail() {
            None => {}
            Some(TailFault::Torn) => self.findings.add("cut_off", 1, false, at, TailFault::Torn.text()),
            Some(fault) => self.findings.add("damaged", 1, true, at, fault.text()),
        }
        Ok(())
    }

    fn entry(&mut self, number: u64, entry: &Entry<'_>) -> anyhow::Result<()> {
        let (head, now) = (entry.head, Nanos(entry.head.ts_ns));
        if head.kind == RecordKind::Engine {
            let examiner = Examiner::new(parse_venue(entry.body)?, true);
            self.feeds.push((head.feed, examiner));
            return Ok(());
        }
        // The last one with that number: the recording may have been continued.
        let Some((_, examiner)) = self.feeds.iter_mut().rev().find(|feed| feed.0 == head.feed) else { return Ok(()) };
        let id = InstrumentId(head.subject);
        match head.kind {
            RecordKind::Instrument => examiner.add_recorded(&parse_instrument(entry.body)?)?,
            RecordKind::Refined => {
                let (tick_size, lot_size) = parse_steps(entry.body)?;
                examiner.refine(id, tick_size, lot_size);
            }
            RecordKind::Opened => examiner.open_recorded(head.subject, now),
            RecordKind::Subscribed | RecordKind::Successor => {
                if let Ok(id) = <[u8; 4]>::try_from(entry.body).map(|id| InstrumentId(u32::from_le_bytes(id))) {
                    // What the engine rejected then, it rejects now.
                    examiner.follow(head.subject, now, |engine, connection| {
                        let _ = if head.kind == RecordKind::Successor {
                            engine.announce_successor(connection, id, now)
                        } else {
                            engine.subscribe(connection, id, now)
                        };
                    });
                }
            }
            RecordKind::Frame => examiner.frame_of(head.subject, number, head.ts_ns, entry.body),
            RecordKind::Snapshot => {
                let symbol = examiner.symbol(id);
                examiner.snapshot(number, head.ts_ns, symbol, entry.body);
            }
            RecordKind::Unsubscribed => drop(examiner.engine.unsubscribe(id, now)),
            RecordKind::Comparison => drop(examiner.engine.begin_comparison(id, now)),
            RecordKind::Timeout => examiner.handle_timeout(now),
            RecordKind::Closed => examiner.close(head.subject, now),
            RecordKind::Lost => {
                let count = entry.body.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
                let text = "records dropped because the recorder's queue was full";
                self.findings.add("lost", count, true, Some(number), text);
            }
            RecordKind::Engine
            | RecordKind::Position
            | RecordKind::SnapshotFailed
            | RecordKind::Checkpoint
            | RecordKind::End => {}
        }
        Ok(())
    }

    fn finish(mut self, format: Format) -> Result<Examined, Failed> {
        let runs = self.replay.take().map(Replay::finish).unwrap_or_default();
        for run in &runs {
            let text = "state hashes of the live engine that differ in the replay";
            self.findings.add("state_differs", run.differing, true, run.first_differing, text);
        }
        let feeds = self.feeds.into_iter().map(|(_, mut examiner)| {
            examiner.finish();
            examiner
        });
        Ok(Examined {
            format,
            feeds: feeds.collect(),
            findings: self.findings,
            runs,
            records: self.records,
            file_bytes: self.bytes.load(Relaxed),
        })
    }
}

/// Returns the book responses of a `.http` file, by time.
fn answers(path: &Path) -> Result<Vec<Answer>, Failed> {
    let mut answers = Vec::new();
    for line in CryptofeedReader::open(path)? {
        let line = line?;
        let address = line.address.unwrap_or_default();
        let parameters = address.split_once('?').map_or("", |(_, parameters)| parameters);
        let named = parameters.split('&').find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            matches!(key, "symbol" | "instId").then_some(value)
        });
        if address.contains("depth") || address.contains("books") {
            let symbol = named.and_then(|name| Symbol::new(name.as_bytes()).ok());
            answers.push(Answer { ts_ns: line.record.ts_ns, symbol, body: line.record.payload });
        }
    }
    sort_short_by_key(&mut answers, |answer| answer.ts_ns);
    Ok(answers)
}
