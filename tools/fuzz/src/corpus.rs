//! A corpus as one file: the inputs of a target one after the other, each behind its length.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The file of the target called `name`.
#[must_use]
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora").join(name).with_extension("corpus")
}

/// Reads the inputs of the target called `name`.
///
/// # Errors
/// The file cannot be read, or is not a whole corpus.
pub fn read(name: &str) -> Result<BTreeSet<Vec<u8>>> {
    let bytes = fs::read(file(name))?;
    let mut rest = bytes.as_slice();
    let mut inputs = BTreeSet::new();
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = u32::from_le_bytes(*len) as usize;
        let (input, after) = after.split_at_checked(len).ok_or(ErrorKind::UnexpectedEof)?;
        inputs.insert(input.to_vec());
        rest = after;
    }
    if rest.is_empty() { Ok(inputs) } else { Err(Error::from(ErrorKind::UnexpectedEof)) }
}

/// Writes the inputs of the target called `name`, sorted, each once.
///
/// # Errors
/// The file cannot be written, or an input has 4 GiB or more.
pub fn write(name: &str, inputs: &BTreeSet<Vec<u8>>) -> Result<()> {
    let mut bytes = Vec::new();
    for input in inputs {
        let len = u32::try_from(input.len()).map_err(|_| ErrorKind::FileTooLarge)?;
        bytes.extend(len.to_le_bytes());
        bytes.extend(input);
    }
    fs::write(file(name), bytes)
}
