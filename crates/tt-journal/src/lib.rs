//! Recordings of market data: readers of captures that others published.
//!
//! A reader takes a whole file in memory and yields one record at a time, in the file's order.

#![forbid(unsafe_code)]

mod cbcap;
mod cryptofeed;
mod gz_lines;

pub use cbcap::CbcapReader;
pub use cryptofeed::{CryptofeedReader, Direction, Line};
pub use gz_lines::GzLines;

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
    /// A record has not the format's form.
    Record,
    /// The file ends within a record.
    Truncated,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "cannot read the recording: {kind}"),
            Self::Header => f.write_str("the recording's header is unknown"),
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
