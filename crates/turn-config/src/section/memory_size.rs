//! An amount of memory in flags and files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Suffixes and the bytes that they stand for, the largest first.
const UNITS: [(char, u64); 3] = [('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Bytes, written as a number with `K`, `M` or `G` (powers of 1024) or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemorySize {
    /// The number of bytes.
    pub bytes: u64,
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_exact = |(_, unit): &&(char, u64)| self.bytes > 0 && self.bytes.is_multiple_of(*unit);
        match UNITS.iter().find(is_exact) {
            Some((suffix, unit)) => write!(f, "{}{suffix}", self.bytes / unit),
            None => write!(f, "{}", self.bytes),
        }
    }
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit = UNITS.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(*suffix)?, *unit)));
        let (digits, unit) = unit.unwrap_or((text, 1));
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
        let bytes = number.and_then(|number| number.checked_mul(unit));
        bytes.map(|bytes| Self { bytes }).ok_or_else(|| format!("`{text}` is not a number of bytes as 512M"))
    }
}

impl From<MemorySize> for String {
    fn from(size: MemorySize) -> Self {
        size.to_string()
    }
}

impl TryFrom<String> for MemorySize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// A bound of memory that may be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MemoryBound {
    /// No bound.
    Off,
    /// This size.
    At(MemorySize),
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(size) => size.fmt(f),
        }
    }
}

impl FromStr for MemoryBound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

impl From<MemoryBound> for String {
    fn from(bound: MemoryBound) -> Self {
        bound.to_string()
    }
}

impl TryFrom<String> for MemoryBound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_a_unit_and_print_as_they_are_read() {
        for (text, bytes) in [("512M", 512 << 20), ("1G", 1 << 30), ("1536K", 1_536 << 10), ("1000", 1_000)] {
            let size: MemorySize = text.parse().unwrap();
            assert_eq!((size.bytes, &*size.to_string()), (bytes, text));
        }
        for text in ["", "M", "-1M", "+1", "1.5G", "1 M", "1m", "1MB", "17179869184G", "99999999999999999999"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
        for (text, bound) in [("off", MemoryBound::Off), ("2G", MemoryBound::At(MemorySize { bytes: 2 << 30 }))] {
            assert_eq!((text.parse(), &*bound.to_string()), (Ok(bound), text));
        }
        assert!("Off".parse::<MemoryBound>().is_err() && "".parse::<MemoryBound>().is_err());
    }
}
