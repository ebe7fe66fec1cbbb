//! The error of every change of limits or exposure.

use core::{error, fmt};

/// A change of limits or exposure was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateError {
    /// The account or the instrument is outside the gate's capacity. Nothing changed.
    Unknown,
    /// A limit is negative, a step or minimum quantity is not positive, or a quantity is above 2^61. Nothing changed.
    LimitOutOfRange,
    /// A quantity is not positive, or the exposure would leave the range of 2^61 lots. Nothing changed.
    QtyOutOfRange,
    /// Every order that was counted as open has been named. Nothing changed.
    UnknownOrder,
    /// The table is full. Nothing changed.
    Full,
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no such account or instrument",
            Self::LimitOutOfRange => "a limit is negative or above 2^61, or a step or minimum quantity is not positive",
            Self::QtyOutOfRange => "a quantity is not positive, or above 2^61",
            Self::UnknownOrder => "every order that was counted as open has been named",
            Self::Full => "the table is full",
        })
    }
}

impl error::Error for GateError {}
