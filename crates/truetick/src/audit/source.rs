//! From files of any format to what examiners take.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tt_journal::recording::{RecordKind, TailFault};
use tt_journal::{
    CbcapReader, CryptofeedReader, Direction, Entry, Format, GzLines, JsonLines, ReadError, Record, RecordingReader,
    read_container,
};
use tt_model::{InstrumentId, Nanos};
use tt_venue::{Origin, Symbol, Venue};

use super::examiner::Examiner;
use super::finding::Findings;
use market_feed::{Replaying, Run, recorded_instrument, recorded_steps, recorded_venue};
use tt_os::progress::ProgressLine;
use tt_os::shutdown::Shutdown;

/// Frames that are held until one of them shows whose they are.
const HELD_MAX: usize = 1000;
/// Records between two looks at the clock.
const RECORDS_PER_LOOK: u64 = 256;

/// What came of a recording.
pub(super) struct Examined {
    pub(super) format: Format,
    /// One a feed.
    pub(super) feeds: Vec<Examiner>,
    /// What concerns the file.
    pub(super) findings: Findings,
    /// Runs of our own recordings through their engines again.
    pub(super) runs: Vec<Run>,
    pub(super) records: u64,
    /// Bytes of the files, packed as they are.
    pub(super) file_bytes: u64,
}

impl Examined {
    pub(super) fn is_right(&self) -> bool {
        self.findings.is_right() && self.feeds.iter().all(|feed| feed.findings.is_right())
    }
}

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failed {
    /// The file cannot be read as any recording, and why.
    Unreadable(String),
    /// A signal ended it.
    Ended,
}

impl From<ReadError> for Failed {
    fn from(error: ReadError) -> Self {
        let known = "no recording: truetick's, hftbacktest's, cryptofeed's, cbcap or lines of JSON";
        Self::Unreadable(if error == ReadError::Header { known.to_owned() } else { error.to_string() })
    }
}

/// A REST answer of the file beside.
struct Answer {
    ts_ns: u64,
    symbol: Option<Symbol>,
    body: Vec<u8>,
}

/// One recording on its way through.
struct Examination<'a> {
    venue: Option<Venue>,
    /// By the number of the feed; others' recordings have one.
    feeds: Vec<(u16, Examiner)>,
    held: Vec<(u64, Record)>,
    answers: std::vec::IntoIter<Answer>,
    answer: Option<Answer>,
    replaying: Option<Replaying>,
    findings: Findings,
    records: u64,
    /// Bytes that were read of all files, and how many there are.
    bytes: &'a AtomicU64,
    len: u64,
    pulse: ProgressLine,
    shutdown: &'a Shutdown,
}

/// Examines one recording, in parts where it has several.
pub(super) fn examine(parts: &[PathBuf], venue: Option<Venue>, shutdown: &Shutdown) -> Result<Examined, Failed> {
    let bytes = AtomicU64::new(0);
    let len = parts.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
    let mut examination = Examination {
        venue,
        feeds: Vec::new(),
        held: Vec::new(),
        answers: Vec::new().into_iter(),
        answer: None,
        replaying: None,
        findings: Findings::default(),
        records: 0,
        bytes: &bytes,
        len,
        pulse: ProgressLine::new("audit"),
        shutdown,
    };
    let mut format = Format::Recording;
    for path in parts {
        format =
            read_container(path, &bytes, |format, source| examination.part(format, source, path).map(|()| format))?;
    }
    examination.pulse.end();
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
        // What never showed whose it is.
        if self.feeds.is_empty() {
            return Err(Failed::Unreadable("whose feed is it? --venue tells".to_owned()));
        }
        Ok(())
    }

    fn cryptofeed(&mut self, source: &mut dyn BufRead, path: &Path) -> Result<(), Failed> {
        let beside = path.with_extension("http");
        if beside != *path && beside.exists() {
            self.answers = answers(&beside)?.into_iter();
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

    /// The record, or nothing after one that is damaged or cut off, which is noted.
    fn whole<T>(&mut self, record: Result<T, ReadError>) -> Result<Option<T>, Failed> {
        match record {
            Ok(record) => Ok(Some(record)),
            Err(ReadError::Truncated) => {
                self.findings.add("cut_off", 1, false, Some(self.records), "the file ends within a record");
                Ok(None)
            }
            Err(ReadError::Record) => {
                self.findings.add("bad_record", 1, true, Some(self.records), "a record has not the format's form");
                Ok(None)
            }
            Err(error @ (ReadError::Io(_) | ReadError::Header | ReadError::Version(_))) => Err(error.into()),
        }
    }

    /// Others' frames, of one feed.
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
            None => Err(Failed::Unreadable("whose feed is it? --venue tells".to_owned())),
        }
    }

    /// The venue is known: what was held goes in.
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
            // Its own time of receipt stands between those of frames, of another connection.
            examiner.snapshot(self.records, 0, answer.symbol, &answer.body);
        }
        self.answer = self.answers.next();
    }

    /// Counts a record, tells how far it is, and ends where that is wished.
    fn step(&mut self) -> Result<(), Failed> {
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_PER_LOOK) {
            self.pulse.update(self.bytes.load(Relaxed), self.len);
            if self.shutdown.is_requested() {
                return Err(Failed::Ended);
            }
        }
        Ok(())
    }

    /// Our own: what it tells of connections and instruments is taken from it, and its hashes are compared.
    fn recording(&mut self, source: &mut dyn BufRead) -> Result<(), Failed> {
        let mut reader = RecordingReader::new(source)?;
        self.replaying.get_or_insert_default();
        while let Some(entry) = reader.read()? {
            self.step()?;
            let number = self.records;
            let taken = match &mut self.replaying {
                Some(replaying) => replaying.take(&entry),
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
            let examiner = Examiner::new(recorded_venue(entry.body)?, true);
            self.feeds.push((head.feed, examiner));
            return Ok(());
        }
        // The last one of that number: a recording may have been gone on with.
        let Some((_, examiner)) = self.feeds.iter_mut().rev().find(|feed| feed.0 == head.feed) else { return Ok(()) };
        let id = InstrumentId(head.subject);
        match head.kind {
            RecordKind::Instrument => examiner.tell_instrument(&recorded_instrument(entry.body)?)?,
            RecordKind::Refined => {
                let (tick_size, lot_size) = recorded_steps(entry.body)?;
                examiner.tell_refined(id, tick_size, lot_size);
            }
            RecordKind::Opened => examiner.tell_opened(head.subject, now),
            RecordKind::Subscribed => {
                if let Ok(id) = <[u8; 4]>::try_from(entry.body) {
                    examiner.tell_subscribed(head.subject, InstrumentId(u32::from_le_bytes(id)), now);
                }
            }
            RecordKind::Frame => examiner.frame_of(head.subject, number, head.ts_ns, entry.body),
            RecordKind::Snapshot => {
                let symbol = examiner.symbol(id);
                examiner.snapshot(number, head.ts_ns, symbol, entry.body);
            }
            RecordKind::Closed => examiner.tell_closed(head.subject, now),
            RecordKind::Lost => {
                let count = entry.body.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
                self.findings.add("lost", count, true, Some(number), "records that the recorder had no room for");
            }
            RecordKind::Engine
            | RecordKind::Position
            | RecordKind::SnapshotFailed
            | RecordKind::Timeout
            | RecordKind::Checkpoint
            | RecordKind::End => {}
        }
        Ok(())
    }

    fn finish(mut self, format: Format) -> Result<Examined, Failed> {
        let runs = self.replaying.take().map(Replaying::finish).unwrap_or_default();
        for run in &runs {
            let text = "hashes of the state that the live engine had and a replay has not";
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

/// The answers in a `.http` file that are books, by time.
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
    answers.sort_by_key(|answer| answer.ts_ns);
    Ok(answers)
}
