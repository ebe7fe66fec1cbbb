//! Why a frame was dropped.

use core::error::Error;
use core::fmt;
use tt_model::DecimalError;
use tt_venue::ParseError;

macro_rules! drop_reasons {
    (parse: $($parse:ident)+; engine: $($(#[doc = $doc:literal])+ $name:ident => $label:literal, $text:literal;)+) => {
        /// One reason for which a frame is dropped. Every dropped frame has exactly one, and each is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = concat!("[`ParseError::", stringify!($parse), "`].")] $parse,)+
            $($(#[doc = $doc])+ $name,)+
        }

        impl DropReason {
            /// All reasons, in the order of their counters.
            pub const ALL: [Self; [$(stringify!($parse),)+ $($label),+].len()] =
                [$(Self::$parse,)+ $(Self::$name),+];

            /// Returns the reason's label in reports and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$parse => ParseError::$parse.name(),)+
                    $(Self::$name => $label,)+
                }
            }
        }

        impl From<ParseError> for DropReason {
            #[inline]
            fn from(error: ParseError) -> Self {
                match error {
                    $(ParseError::$parse => Self::$parse,)+
                }
            }
        }

        impl From<DecimalError> for DropReason {
            #[inline]
            fn from(error: DecimalError) -> Self {
                Self::from(ParseError::from(error))
            }
        }

        impl fmt::Display for DropReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$parse => ParseError::$parse.fmt(f),)+
                    $(Self::$name => f.write_str($text),)+
                }
            }
        }
    };
}

drop_reasons! {
    parse: NotUtf8 Syntax Nesting TooManyKeys DuplicateKey MissingKey WrongType Number NumberRange Time SymbolText TooManyLevels TooManyEntries UnknownTopic Rejected VenueError;
    engine:
    /// No instrument with this symbol was added for the venue, or it is followed no longer.
    UnknownSymbol => "unknown_symbol", "unknown symbol";
    /// The connection is closed or was never opened.
    OldConnection => "old_connection", "connection is closed";
    /// A book delta from another connection than the one that the book is subscribed on.
    ForeignConnection => "foreign_connection", "book is subscribed on another connection";
    /// A price is not a multiple of the tick size.
    OffTickSize => "off_tick_size", "price is not a multiple of the tick size";
    /// A quantity is not a multiple of the lot size.
    OffLotSize => "off_lot_size", "quantity is not a multiple of the lot size";
    /// The book already holds the update.
    Duplicate => "duplicate", "duplicate update";
    /// An update before this delta is missing, and the next snapshot on the socket will hold both.
    Gap => "gap", "gap before the update";
    /// A newer snapshot covers the update, or the expected one will.
    Superseded => "superseded", "superseded by a snapshot";
    /// A delta while the book waits for its snapshot on the socket.
    AwaitingSnapshot => "awaiting_snapshot", "book waits for its snapshot";
    /// A delta while no backlog was free to buffer it for the join.
    BacklogFull => "backlog_full", "no free backlog";
    /// A snapshot that was not requested.
    UnexpectedSnapshot => "unexpected_snapshot", "snapshot was not requested";
    /// A snapshot older than the first delta that was buffered for it.
    SnapshotTooOld => "snapshot_too_old", "snapshot is older than the buffered deltas";
    /// A snapshot with unsorted levels, a repeated price or a zero quantity.
    SnapshotOrder => "snapshot_order", "snapshot is not sorted";
    /// The update's checksum differs from the book's.
    ChecksumMismatch => "checksum_mismatch", "checksum mismatch";
    /// The venue's best bid and offer differ from the book at the same update id.
    OracleMismatch => "oracle_mismatch", "best bid and offer differ from the book";
    /// So many levels were dropped at the level cap that the best ones are unknown.
    LevelCap => "level_cap", "best levels were dropped at the level cap";
    /// More levels than the subscription covers: the venue did not delete one that left its depth.
    BeyondDepth => "beyond_depth", "more levels than the subscription covers";
    /// More open orders than `Capacity::orders`.
    OrdersFull => "orders_full", "order table is full";
    /// More open positions than `Capacity::positions`.
    PositionsFull => "positions_full", "position table is full";
    /// More assets than `Capacity::balances`.
    BalancesFull => "balances_full", "balance table is full";
    /// More orders in order-by-order books than `Capacity::book_orders`.
    BookOrdersFull => "book_orders_full", "order-by-order books are full";
    /// An execution of an order, or of a quantity, that the book does not hold.
    UnknownOrder => "unknown_order", "execution of an unknown order";
    /// A REST snapshot differs from the book at the same update id.
    SnapshotMismatch => "snapshot_mismatch", "snapshot differs from the book";
}

impl Error for DropReason {}

impl DropReason {
    /// The number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns whether the frame could not be understood, so that it may have been of any book.
    #[inline]
    #[must_use]
    pub const fn is_malformed(self) -> bool {
        (self as u8) <= Self::TooManyEntries as u8
    }
}
