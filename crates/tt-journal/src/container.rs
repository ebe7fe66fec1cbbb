//! Detection of a file's compression and format from its content.

use crate::ReadError;
use crate::recording::MAGIC;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(feature = "zip")]
use zip::ZipArchive;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 17;

/// In whose format a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own.
    Recording,
    /// hftbacktest's `local_ns json` lines.
    StampedLines,
    /// cryptofeed's `.ws` and `.http` lines.
    Cryptofeed,
    /// crossbook's recordings.
    Cbcap,
    /// Lines of bare JSON.
    JsonLines,
}

impl Format {
    /// The format's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recording => "truetick",
            Self::StampedLines => "stamped_lines",
            Self::Cryptofeed => "cryptofeed",
            Self::Cbcap => "cbcap",
            Self::JsonLines => "json_lines",
        }
    }

    /// The format of a file that begins with `start`.
    fn of(start: &[u8]) -> Option<Self> {
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has = |text: &[u8]| line.windows(text.len()).any(|part| part == text);
        if start.starts_with(&MAGIC) {
            return Some(Self::Recording);
        }
        match line {
            [b'C', b'B', b'C', b'A', b'P', ..] => Some(Self::Cbcap),
            [b'{' | b'[', ..] => Some(Self::JsonLines),
            [b'0'..=b'9', ..] => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
                match line.get(digits) {
                    Some(b' ') => Some(Self::StampedLines),
                    Some(b'.' | b':') if has(b": ") => Some(Self::Cryptofeed),
                    Some(_) | None => None,
                }
            }
            _ if has(b"://") && (has(b" <-> ") || has(b" -> ") || has(b" <- ")) => Some(Self::Cryptofeed),
            _ => None,
        }
    }
}

/// Counts what is read of a file.
struct Counted<'a> {
    file: File,
    bytes: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.bytes.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

impl io::Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Opens `path`, unpacks gzip or the first entry of a zip archive (feature `zip`) on the way, and hands the text and its format to
/// `read`. `bytes` counts what has been read of the file.
///
/// # Errors
/// `Io`, `Header` where the format is unknown, and those of `read`.
pub fn read_container<T, E: From<ReadError>>(
    path: &Path,
    bytes: &AtomicU64,
    read: impl FnOnce(Format, &mut dyn BufRead) -> Result<T, E>,
) -> Result<T, E> {
    let mut file = File::open(path).map_err(ReadError::from)?;
    let mut start = [0; 4];
    let len = file.read(&mut start).map_err(ReadError::from)?;
    file.seek(SeekFrom::Start(0)).map_err(ReadError::from)?;
    let counted = Counted { file, bytes };
    match &start[..len] {
        [0x1f, 0x8b, ..] => unpacked(&mut BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(counted)), read),
        #[cfg(feature = "zip")]
        [b'P', b'K', 3, 4] => {
            let mut archive = ZipArchive::new(counted).map_err(|_| ReadError::Header)?;
            let entry = archive.by_index(0).map_err(|_| ReadError::Header)?;
            unpacked(&mut BufReader::with_capacity(READ_BYTES, entry), read)
        }
        _ => unpacked(&mut BufReader::with_capacity(READ_BYTES, counted), read),
    }
}

fn unpacked<T, E: From<ReadError>>(
    source: &mut impl BufRead,
    read: impl FnOnce(Format, &mut dyn BufRead) -> Result<T, E>,
) -> Result<T, E> {
    let start = source.fill_buf().map_err(ReadError::from)?;
    let format = Format::of(start).ok_or(ReadError::Header)?;
    read(format, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_format_is_known_by_its_first_line() {
        for (start, format) in [
            (&b"CBCAP1 kraken BTC/USD 17\n"[..], Some(Format::Cbcap)),
            (b"1723161256172216566 {\"stream\":1}\n", Some(Format::StampedLines)),
            (b"1633998512.0633569: {\"a\":1}\n", Some(Format::Cryptofeed)),
            (b"wss://www.deribit.com/ws/api/v2 <-> 1626993723.4\n", Some(Format::Cryptofeed)),
            (b"https://x/depth?symbol=A -> 1626993723.4: {}\n", Some(Format::Cryptofeed)),
            (b"{\"topic\":\"orderbook.500.X\"}\n", Some(Format::JsonLines)),
            (b"TTJRNL\r\n\x01\0", Some(Format::Recording)),
            (b"dear diary", None),
            (b"12 monkeys", Some(Format::StampedLines)),
            (b"", None),
        ] {
            assert_eq!(Format::of(start), format, "{}", String::from_utf8_lossy(start));
        }
    }

    /// Plain and in gzip: the same text, and every byte of the file is counted.
    #[test]
    fn a_container_is_unpacked_and_what_is_read_of_it_is_counted() {
        let text = b"CBCAP1 kraken BTC/USD 17\n1 2\n{}\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        for packed in [text.to_vec(), gzip.finish().unwrap()] {
            std::fs::write(&path, &packed).unwrap();
            let bytes = AtomicU64::new(0);
            let read = read_container(&path, &bytes, |format, source| {
                let mut all = Vec::new();
                source.read_to_end(&mut all)?;
                Ok::<_, ReadError>((format, all))
            });
            assert_eq!(read.unwrap(), (Format::Cbcap, text.to_vec()));
            assert_eq!(bytes.load(Relaxed), packed.len() as u64);
        }
    }
}
