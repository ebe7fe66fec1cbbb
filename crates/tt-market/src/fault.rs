//! Why a frame was dropped.

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $name:ident => $text:literal,)+) => {
        /// One reason for which a frame is dropped. Every dropped frame has exactly one, and each is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Fault {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Fault {
            /// All reasons, in the order of their counters.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$name),+];

            /// The reason's name in reports and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

faults! {
    /// The bytes are not UTF-8.
    NotUtf8 => "not_utf8",
    /// The bytes are not one JSON value, or end within it.
    Syntax => "syntax",
    /// Arrays and objects are nested deeper than 64.
    Nesting => "nesting",
    /// An object that is read has more than 64 keys.
    TooManyKeys => "too_many_keys",
    /// A key occurs twice in an object that is read.
    DuplicateKey => "duplicate_key",
    /// A key that the event needs is absent.
    MissingKey => "missing_key",
    /// A value has another type than the venue documents.
    WrongType => "wrong_type",
    /// A number has a sign, a digit or a form that its field does not allow.
    Number => "number",
    /// A number is exact only beyond `i64` or 18 decimals.
    NumberRange => "number_range",
    /// A time is not a time, or lies outside of the years 2001 to 2200.
    Time => "time",
    /// A symbol is empty, longer than 23 bytes, or holds bytes that no venue uses.
    SymbolText => "symbol_text",
    /// More levels than the buffer's capacity.
    TooManyLevels => "too_many_levels",
    /// More trades or order updates in a frame than the buffer's capacity.
    TooManyEntries => "too_many_entries",
    /// A topic or event type that the engine does not read.
    UnknownTopic => "unknown_topic",
    /// No instrument of that symbol was added for the venue.
    UnknownSymbol => "unknown_symbol",
    /// The connection has been closed, or never was opened.
    OldConnection => "old_connection",
    /// A book delta from another connection than the one that the book is subscribed on.
    ForeignConnection => "foreign_connection",
    /// The venue refused a subscription.
    Refused => "refused",
    /// The venue reported an error.
    VenueError => "venue_error",
    /// A price is no multiple of the instrument's `tick_size`.
    OffTickSize => "off_tick_size",
    /// A quantity is no multiple of the instrument's lot size.
    OffLotSize => "off_lot_size",
    /// An update that the book already holds.
    Duplicate => "duplicate",
    /// A delta before which another one is missing, where the next snapshot on the socket will hold both.
    Gap => "gap",
    /// What a newer snapshot already covers, or the one that is awaited will cover.
    Superseded => "superseded",
    /// A delta while the book waits for its snapshot on the socket.
    AwaitingSnapshot => "awaiting_snapshot",
    /// A delta while no backlog was free to keep it for the join.
    BacklogFull => "backlog_full",
    /// A snapshot that nobody waits for.
    UnexpectedSnapshot => "unexpected_snapshot",
    /// A snapshot older than the first delta kept for it.
    SnapshotTooOld => "snapshot_too_old",
    /// A snapshot whose levels are not sorted, or that holds a price twice or a zero quantity.
    SnapshotOrder => "snapshot_order",
    /// The update's checksum does not fit the book.
    ChecksumMismatch => "checksum_mismatch",
    /// The venue's best bid and offer disagree with the book at the same update id.
    OracleMismatch => "oracle_mismatch",
    /// So many levels were dropped at the level cap that the best ones are not known any more.
    LevelCap => "level_cap",
    /// More levels than the subscription covers: one that the venue pushed out of its book was kept.
    BeyondDepth => "beyond_depth",
    /// More live orders than `Capacity::orders`.
    OrdersFull => "orders_full",
    /// More open positions than `Capacity::positions`.
    PositionsFull => "positions_full",
    /// More assets than `Capacity::balances`.
    BalancesFull => "balances_full",
    /// More orders in the books that are told order by order than `Capacity::book_orders`.
    BookOrdersFull => "book_orders_full",
    /// An execution against an order, or more of one, than the book holds.
    UnknownOrder => "unknown_order",
}

impl Fault {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether the frame itself could not be understood, so that nobody knows which book it would have changed.
    #[must_use]
    pub const fn is_malformed(self) -> bool {
        (self as u8) <= Self::TooManyEntries as u8
    }
}
