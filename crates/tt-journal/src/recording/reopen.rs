//! Makes a recording, or goes on with one that may have been cut off anywhere.

use super::reader::RecordingReader;
use super::{HEADER_BYTES, MAGIC, TailFault, header};
use crate::ReadError;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// The content of a reopened recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reopened {
    /// Complete records that remain.
    pub records: u64,
    /// Bytes that stay.
    pub kept_bytes: u64,
    /// Bytes at the end that were cut off.
    pub cut_bytes: u64,
    /// Why they were.
    pub tail: Option<TailFault>,
}

/// Makes a recording at `path` and writes its header. A device or a pipe is written to as it is.
///
/// # Errors
/// `Io`; `AlreadyExists` where there is a file.
pub fn create(path: &Path, now_ns: u64) -> Result<File, ReadError> {
    let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let mut options = OpenOptions::new();
    options.write(true);
    let mut file = if is_special { options.open(path) } else { options.create_new(true).open(path) }?;
    // A device that takes nothing is found out by the recorder, like any other failure to write.
    if !is_special {
        file.write_all(&header(now_ns))?;
    }
    Ok(file)
}

/// Opens the recording at `path` to append to it, and truncates it after its longest valid prefix. A file without a
/// complete header gets a new one.
///
/// # Errors
/// `Io`, and those of [`RecordingReader::new`]: nothing but a recording is ever cut.
pub fn reopen(path: &Path, now_ns: u64) -> Result<(File, Reopened), ReadError> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    let mut found = match valid_prefix(&file) {
        Err(ReadError::Truncated) if begins_as_one(&file)? => {
            Reopened { records: 0, kept_bytes: 0, cut_bytes: 0, tail: (len > 0).then_some(TailFault::Torn) }
        }
        found => found?,
    };
    found.cut_bytes = len - found.kept_bytes;
    file.set_len(found.kept_bytes)?;
    file.seek(SeekFrom::Start(found.kept_bytes))?;
    if found.kept_bytes == 0 {
        file.write_all(&header(now_ns))?;
        found.kept_bytes = HEADER_BYTES as u64;
    }
    Ok((file, found))
}

fn valid_prefix(file: &File) -> Result<Reopened, ReadError> {
    let mut reader = RecordingReader::new(BufReader::new(file))?;
    while reader.read()?.is_some() {}
    let (records, kept_bytes, tail) = (reader.records(), reader.valid_bytes(), reader.tail());
    Ok(Reopened { records, kept_bytes, cut_bytes: 0, tail })
}

/// Whether the few bytes of the file are the first ones of a header.
fn begins_as_one(mut file: &File) -> Result<bool, ReadError> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(MAGIC.starts_with(&start))
}
