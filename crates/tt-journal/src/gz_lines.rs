//! hftbacktest's recordings: gzip, one `local_ns json` a line; and lines of bare JSON.

use crate::lines::{Line, read_line};
use crate::{ReadError, Record};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Reads lines of `local_ns json`.
#[derive(Debug)]
pub struct GzLines<R = BufReader<MultiGzDecoder<File>>> {
    source: R,
    line: Vec<u8>,
}

impl GzLines {
    /// Opens `path`, which is gzip.
    ///
    /// # Errors
    /// `Io` if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Ok(Self::decode(File::open(path)?))
    }
}

impl<R: Read> GzLines<BufReader<MultiGzDecoder<R>>> {
    /// Reads from `source`, which is gzip.
    pub fn decode(source: R) -> Self {
        Self::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(source)))
    }
}

impl<R: BufRead> GzLines<R> {
    /// Reads from `source`, which is text.
    #[must_use]
    pub const fn new(source: R) -> Self {
        Self { source, line: Vec::new() }
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        if read_line(&mut self.source, &mut self.line)? == Line::None {
            return Ok(None);
        }
        let line = self.line.trim_ascii_end();
        let space = line.iter().position(|byte| *byte == b' ').ok_or(ReadError::Record)?;
        let ts_ns = std::str::from_utf8(&line[..space]).ok().and_then(|text| text.parse().ok());
        Ok(Some(Record { ts_ns: ts_ns.ok_or(ReadError::Record)?, payload: line[space + 1..].to_vec() }))
    }
}

impl<R: BufRead> Iterator for GzLines<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Reads lines of bare JSON, which say nothing of when they were received.
#[derive(Debug)]
pub struct JsonLines<R> {
    source: R,
    line: Vec<u8>,
}

impl<R: BufRead> JsonLines<R> {
    /// Reads from `source`.
    #[must_use]
    pub const fn new(source: R) -> Self {
        Self { source, line: Vec::new() }
    }
}

impl<R: BufRead> Iterator for JsonLines<R> {
    type Item = Result<Record, ReadError>;

    /// The next line that is not empty; its time is zero.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match read_line(&mut self.source, &mut self.line) {
                Ok(Line::None) => return None,
                Ok(Line::Whole | Line::Cut) if self.line.trim_ascii().is_empty() => {}
                Ok(Line::Whole | Line::Cut) => {
                    return Some(Ok(Record { ts_ns: 0, payload: self.line.trim_ascii_end().to_vec() }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn lines_split_at_the_first_space() {
        let path = std::env::temp_dir().join(format!("tt-journal-{}.gz", std::process::id()));
        let mut gz = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        gz.write_all(b"17 {\"a\": 1}\n18 {}\nx {}\n").unwrap();
        gz.finish().unwrap();
        let records: Vec<_> = GzLines::open(&path).unwrap().collect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(records[0], Ok(Record { ts_ns: 17, payload: b"{\"a\": 1}".to_vec() }));
        assert_eq!(records[1], Ok(Record { ts_ns: 18, payload: b"{}".to_vec() }));
        assert_eq!(records[2], Err(ReadError::Record));
    }
}
