//! Recordings of market data: our own, written as they come and read back however they were cut off ([`recording`]),
//! and those that others publish. And the journal of inputs that are kept before their effect is seen ([`segments`]).
//!
//! A reader yields one record at a time, in the file's order.

#![forbid(unsafe_code)]

mod cbcap;
mod container;
mod cryptofeed;
mod gz_lines;
mod lines;
pub mod recording;
#[cfg(feature = "segments")]
pub mod segments;

pub use cbcap::CbcapReader;
pub use container::{Format, read_container};
pub use cryptofeed::{CryptofeedReader, Direction, Line};
pub use gz_lines::{GzLines, JsonLines};
pub use recording::reader::{Entry, RecordingReader};
pub use recording::recorder::{Failure, Progress, RecordSender, Recorder, RecorderConfig, Store};
pub use recording::reopen::{Reopened, create, reopen};
#[cfg(feature = "segments")]
pub use segments::folder::SegmentFolder;
#[cfg(feature = "segments")]
pub use segments::reader::{JournalEnd, SegmentEntry, SegmentReader};
#[cfg(feature = "segments")]
pub use segments::writer::{AppendError, SegmentWriter, read_journal};

/// One recorded frame or REST body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was received or sent, nanoseconds on the recorder's clock (Unix epoch where the file says so).
    pub ts_ns: u64,
    /// The frame's bytes.
    pub payload: Vec<u8>,
}

/// Why a recording could not be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The file cannot be opened or read, or does not decompress.
    Io(std::io::ErrorKind),
    /// The header is not the format's.
    Header,
    /// The header is of another version of the format: this one.
    Version(u16),
    /// A record has not the format's form.
    Record,
    /// The file ends within a record.
    Truncated,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Its own words are `entity not found`.
            Self::Io(std::io::ErrorKind::NotFound) => {
                f.write_str("cannot read the recording: no such file or directory")
            }
            Self::Io(std::io::ErrorKind::AlreadyExists) => f.write_str("the recording exists already"),
            Self::Io(kind) => write!(f, "cannot read the recording: {kind}"),
            Self::Header => f.write_str("the recording's header is unknown"),
            Self::Version(version) => {
                write!(f, "the recording's format is version {version}, which this program does not know")
            }
            Self::Record => f.write_str("a record has an unknown form"),
            Self::Truncated => f.write_str("the recording ends within a record"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.kind())
    }
}
