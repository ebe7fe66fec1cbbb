//! crossbook's recordings: `CBCAP1 venue symbol ns`, then `ns len`, the bytes and a line end for each frame.

use crate::lines::{Line, read_line};
use crate::{ReadError, Record};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Bytes of the longest frame.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Reads the frames of one file.
#[derive(Debug)]
pub struct CbcapReader<R = BufReader<File>> {
    source: R,
    line: Vec<u8>,
    has_ended: bool,
    venue: String,
    symbol: String,
}

impl CbcapReader {
    /// Opens `path` and reads its header.
    ///
    /// # Errors
    /// `Io` if it cannot be read, `Header` if it is another format.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(BufReader::new(File::open(path)?))
    }
}

impl<R: BufRead> CbcapReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// `Io`, or `Header` if it is another format.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let mut line = Vec::new();
        if read_line(&mut source, &mut line)? != Line::Whole {
            return Err(ReadError::Header);
        }
        let header = std::str::from_utf8(&line).map_err(|_| ReadError::Header)?;
        let mut words = header.split(' ');
        let (Some("CBCAP1"), Some(venue), Some(symbol), Some(_)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(ReadError::Header);
        };
        let (venue, symbol) = (venue.to_owned(), symbol.to_owned());
        Ok(Self { source, line, has_ended: false, venue, symbol })
    }

    /// The venue that the header names.
    #[must_use]
    pub fn venue(&self) -> &str {
        &self.venue
    }

    /// The symbol that the header names.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        match read_line(&mut self.source, &mut self.line)? {
            Line::None => return Ok(None),
            Line::Cut => return Err(ReadError::Truncated),
            Line::Whole => {}
        }
        let head = std::str::from_utf8(&self.line).map_err(|_| ReadError::Record)?;
        let (ts_ns, len) = head.split_once(' ').ok_or(ReadError::Record)?;
        let ts_ns = ts_ns.parse().map_err(|_| ReadError::Record)?;
        let len: usize = len.parse().map_err(|_| ReadError::Record)?;
        if len > FRAME_BYTES_MAX {
            return Err(ReadError::Record);
        }
        let mut payload = vec![0; len + 1];
        match self.source.read_exact(&mut payload) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Err(ReadError::Truncated),
            read => read?,
        }
        if payload.pop() != Some(b'\n') {
            return Err(ReadError::Record);
        }
        Ok(Some(Record { ts_ns, payload }))
    }
}

impl<R: BufRead> Iterator for CbcapReader<R> {
    type Item = Result<Record, ReadError>;

    /// The next frame; after an error, none.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let record = self.read().transpose();
        self.has_ended = !matches!(record, Some(Ok(_)));
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_may_hold_line_ends() {
        let mut reader = CbcapReader::new(&b"CBCAP1 kraken BTC/USD 5\n7 3\na\nb\n8 0\n\n9 4\nab\n"[..]).unwrap();
        assert_eq!((reader.venue(), reader.symbol()), ("kraken", "BTC/USD"));
        assert_eq!(reader.next(), Some(Ok(Record { ts_ns: 7, payload: b"a\nb".to_vec() })));
        assert_eq!(reader.next(), Some(Ok(Record { ts_ns: 8, payload: Vec::new() })));
        assert_eq!(reader.next(), Some(Err(ReadError::Truncated)));
        assert_eq!(reader.next(), None);
        assert_eq!(CbcapReader::new(&b"CBCAP2 kraken x 1\n"[..]).unwrap_err(), ReadError::Header);
    }
}
