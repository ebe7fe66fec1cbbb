//! crossbook's recordings: `CBCAP1 venue symbol ns`, then `ns len`, the bytes and a line end for each frame.

use crate::{ReadError, Record};
use std::path::Path;

/// Reads the frames of one file.
#[derive(Debug)]
pub struct CbcapReader {
    bytes: Vec<u8>,
    at: usize,
    venue: String,
    symbol: String,
}

impl CbcapReader {
    /// Opens `path` and reads its header.
    ///
    /// # Errors
    /// `Io` if it cannot be read, `Header` if it is another format.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(std::fs::read(path)?)
    }

    /// Reads from memory.
    ///
    /// # Errors
    /// `Header` if it is another format.
    pub fn new(bytes: Vec<u8>) -> Result<Self, ReadError> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(ReadError::Header)?;
        let header = std::str::from_utf8(&bytes[..end]).map_err(|_| ReadError::Header)?;
        let mut words = header.split(' ');
        let (Some("CBCAP1"), Some(venue), Some(symbol), Some(_)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(ReadError::Header);
        };
        let (venue, symbol) = (venue.to_owned(), symbol.to_owned());
        Ok(Self { bytes, at: end + 1, venue, symbol })
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
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(ReadError::Truncated)?;
        let head = std::str::from_utf8(&rest[..end]).map_err(|_| ReadError::Record)?;
        let (ts_ns, len) = head.split_once(' ').ok_or(ReadError::Record)?;
        let ts_ns = ts_ns.parse().map_err(|_| ReadError::Record)?;
        let len: usize = len.parse().map_err(|_| ReadError::Record)?;
        let payload = rest.get(end + 1..end + 1 + len).ok_or(ReadError::Truncated)?.to_vec();
        if rest.get(end + 1 + len) != Some(&b'\n') {
            return Err(ReadError::Truncated);
        }
        self.at += end + len + 2;
        Ok(Some(Record { ts_ns, payload }))
    }
}

impl Iterator for CbcapReader {
    type Item = Result<Record, ReadError>;

    /// The next frame; after an error, none.
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.read().transpose();
        if let Some(Err(_)) = record {
            self.at = self.bytes.len();
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_may_hold_line_ends() {
        let mut reader = CbcapReader::new(b"CBCAP1 kraken BTC/USD 5\n7 3\na\nb\n8 0\n\n9 4\nab\n".to_vec()).unwrap();
        assert_eq!((reader.venue(), reader.symbol()), ("kraken", "BTC/USD"));
        assert_eq!(reader.next(), Some(Ok(Record { ts_ns: 7, payload: b"a\nb".to_vec() })));
        assert_eq!(reader.next(), Some(Ok(Record { ts_ns: 8, payload: Vec::new() })));
        assert_eq!(reader.next(), Some(Err(ReadError::Truncated)));
        assert_eq!(reader.next(), None);
        assert_eq!(CbcapReader::new(b"CBCAP2 kraken x 1\n".to_vec()).unwrap_err(), ReadError::Header);
    }
}
