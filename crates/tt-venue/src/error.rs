//! Why a frame was not parsed.

use core::error::Error;
use core::fmt;
use tt_model::DecimalError;

macro_rules! parse_errors {
    ($($(#[doc = $doc:literal])+ $name:ident => $label:literal, $text:literal;)+) => {
        /// One reason for which a frame is not parsed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ParseError {
            $($(#[doc = $doc])+ $name,)+
        }

        impl ParseError {
            /// All reasons.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$name),+];

            /// Returns the reason's label in reports and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)+
                }
            }
        }

        impl fmt::Display for ParseError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)+
                })
            }
        }
    };
}

parse_errors! {
    /// The bytes are not UTF-8.
    NotUtf8 => "not_utf8", "frame is not UTF-8";
    /// The bytes are not one JSON value, or end within it.
    Syntax => "syntax", "frame is not one JSON value";
    /// Arrays and objects are nested deeper than 64.
    Nesting => "nesting", "JSON is nested deeper than 64";
    /// An object has more than 64 keys.
    TooManyKeys => "too_many_keys", "object has more than 64 keys";
    /// A key occurs twice in an object.
    DuplicateKey => "duplicate_key", "key occurs twice";
    /// A required key is absent.
    MissingKey => "missing_key", "required key is absent";
    /// A value has another type than the venue documents.
    WrongType => "wrong_type", "value has another type than documented";
    /// A number has a sign, a digit or a form that its field does not allow.
    Number => "number", "malformed number";
    /// A number is exact only beyond `i64` or 18 decimals.
    NumberRange => "number_range", "number beyond 64 bits or 18 decimals";
    /// A time is malformed, or outside the years 2001 to 2200.
    Time => "time", "malformed time";
    /// A symbol is empty, or holds characters that no venue uses.
    SymbolText => "symbol_text", "malformed symbol";
    /// More levels than the buffer's capacity.
    TooManyLevels => "too_many_levels", "more levels than the buffer holds";
    /// More trades or order updates in a frame than the buffer's capacity.
    TooManyEntries => "too_many_entries", "more entries than the buffer holds";
    /// A topic or event type that is not read.
    UnknownTopic => "unknown_topic", "unknown topic";
    /// The venue rejected a request.
    Rejected => "rejected", "venue rejected a request";
    /// The venue reported an error.
    VenueError => "venue_error", "venue reported an error";
}

impl Error for ParseError {}

impl From<DecimalError> for ParseError {
    #[inline]
    fn from(error: DecimalError) -> Self {
        match error {
            DecimalError::Syntax => Self::Number,
            DecimalError::Range => Self::NumberRange,
        }
    }
}

impl ParseError {
    /// Returns whether the frame could not be understood, so that it may have been of any book.
    #[must_use]
    pub const fn is_malformed(self) -> bool {
        (self as u8) <= Self::TooManyEntries as u8
    }
}
