//! Lines of text of bounded length.

use crate::ReadError;
use std::io::{BufRead, Read as _};

/// Bytes of the longest line: a whole book with its envelope.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line with its end, which is not kept.
    Whole,
    /// The last line, without an end.
    Cut,
    /// Nothing is left.
    None,
}

/// Reads the next line into `line`.
pub(crate) fn read_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> Result<Line, ReadError> {
    line.clear();
    if source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)? == 0 {
        return Ok(Line::None);
    }
    if line.last() != Some(&b'\n') {
        return if line.len() as u64 == LINE_BYTES_MAX { Err(ReadError::Record) } else { Ok(Line::Cut) };
    }
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Line::Whole)
}
