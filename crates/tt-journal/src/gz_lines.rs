//! hftbacktest's recordings: gzip, one `local_ns json` a line.

use crate::{ReadError, Record};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Reads the lines of one file.
#[derive(Debug)]
pub struct GzLines {
    reader: BufReader<MultiGzDecoder<File>>,
    line: Vec<u8>,
}

impl GzLines {
    /// Opens `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let reader = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(File::open(path)?));
        Ok(Self { reader, line: Vec::new() })
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        self.line.clear();
        if self.reader.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        let line = self.line.trim_ascii_end();
        let space = line.iter().position(|byte| *byte == b' ').ok_or(ReadError::Record)?;
        let ts_ns = std::str::from_utf8(&line[..space]).ok().and_then(|text| text.parse().ok());
        Ok(Some(Record { ts_ns: ts_ns.ok_or(ReadError::Record)?, payload: line[space + 1..].to_vec() }))
    }
}

impl Iterator for GzLines {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
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
