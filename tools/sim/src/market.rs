//! One instrument as its venue sees it: the script, its statistics, what was asked of it and what goes wrong with it.

use std::collections::{HashMap, VecDeque};

use crate::{
    chain::{Chain, Numbering},
    instrument::Instrument,
    script::{Script, Side, Step, Trade, TrueBook},
    singles::{OrderWindow, Singles},
};

/// Steps whose time is remembered, so that a book can be found by its time where the venue gives no update id.
const HISTORY_STEPS: usize = 4096;

/// The time of orders from before the first step, microseconds of the Unix epoch.
const FIRST_ORDERS_US: u64 = 1_700_000_000_000_000;

/// How old a stale snapshot is.
const STALE_STEPS: usize = 200;

/// More than any depth: a book with RPI orders, which are a third of each quantity, and as many levels as are added.
const WITH_RPI: u32 = 1_000_000;
/// In place of a depth: Bybit's book with RPI orders.
pub(crate) const RPI: u32 = WITH_RPI + 50;
/// Bybit's book of all levels, of which the socket sends changes only; as many as its snapshots by REST have.
pub(crate) const FULL: u32 = 10_000;
/// OKX's book with RPI orders.
pub(crate) const RPI_OKX: u32 = WITH_RPI + 400;

/// Topics of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// Best bid and offer at each change (`bookTicker`; Kraken's `ticker`).
    BestQuote,
    /// Executions.
    Trades,
    /// Executions of one order at one price as one (`aggTrade`).
    Aggregates,
    /// Executions that were agreed on outside of the book (`blockTrade`).
    BlockTrades,
    /// Changed levels of the whole book.
    Depth,
    /// The top N levels and their changes.
    Book(u32),
    /// Every order of the top N levels.
    Orders(u32),
    /// Statistics of the day, once a second.
    DayTicker,
    /// Mark price and funding, once a second; the reference price of Binance spot.
    MarkPrice,
    /// Orders that closed positions by force.
    Liquidations,
    /// The running candle of a minute, once a second.
    Candle,
}

impl Topic {
    /// The name by which [`Running::withhold`](crate::Running::withhold) knows it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::BestQuote => "best-levels",
            Self::Trades => "trades",
            Self::Aggregates => "aggregate-trades",
            Self::BlockTrades => "block-trades",
            Self::Depth | Self::Book(_) | Self::Orders(_) => "book",
            Self::DayTicker => "ticker",
            Self::MarkPrice => "mark-price",
            Self::Liquidations => "liquidations",
            Self::Candle => "candles",
        }
    }
}

/// A subscriber, and the address of its responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscriber {
    pub(crate) connection: u64,
    /// The stream's name as it was asked for.
    pub(crate) stream: String,
    /// The answer is wrapped with the stream's name.
    pub(crate) wrapped: bool,
}

/// Fault of the next book update of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not sent.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is sent after its successor.
    Swap,
    /// One digit of its first quantity is another one.
    FlipDigit,
    /// Its checksum is another one; nothing where the venue sends none.
    Checksum,
    /// Its second half is missing.
    Truncate,
    /// It and everything after it of the instrument arrives a second late.
    Delay,
    /// The connections that follow the instrument stay open, and nothing passes through them any more.
    HalfOpen,
    /// The venue restarts the numbering: Bybit with a snapshot numbered 1, OKX and Deribit with lower numbers. No effect at
    /// other venues.
    Reset,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 9] = [
        Self::Drop,
        Self::Duplicate,
        Self::Swap,
        Self::FlipDigit,
        Self::Checksum,
        Self::Truncate,
        Self::Delay,
        Self::HalfOpen,
        Self::Reset,
    ];

    /// The kind's name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
            Self::Swap => "reorder",
            Self::FlipDigit => "flip-digit",
            Self::Checksum => "checksum",
            Self::Truncate => "truncate",
            Self::Delay => "delay",
            Self::HalfOpen => "half-open",
            Self::Reset => "reset",
        }
    }
}

/// Fault of the next snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotFault {
    /// It is the book of some steps ago.
    Stale,
    /// Its second half is missing.
    Partial,
}

/// Statistics of the day, in steps of price and quantity.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Day {
    pub(crate) open_px: i64,
    pub(crate) high_px: i64,
    pub(crate) low_px: i64,
    pub(crate) qty: i128,
    pub(crate) notional: i128,
}

impl Day {
    fn record(&mut self, trade: Trade) {
        self.high_px = self.high_px.max(trade.px);
        self.low_px = self.low_px.min(trade.px);
        self.qty += i128::from(trade.qty);
        self.notional += i128::from(trade.px) * i128::from(trade.qty);
    }
}

/// The top N levels that the subscribers of a depth hold, best first: bids, asks.
pub(crate) type Window = [Vec<(i64, i64)>; 2];

/// One instrument of a venue.
pub(crate) struct Market {
    pub(crate) instrument: Instrument,
    pub(crate) script: Script,
    pub(crate) day: Day,
    /// The running minute: its number since the Unix epoch, and what was traded in it.
    pub(crate) minute: (u64, Day),
    pub(crate) subscribers: HashMap<Topic, Vec<Subscriber>>,
    pub(crate) faults: VecDeque<Fault>,
    /// The frame that waits for its successor after [`Fault::Swap`].
    pub(crate) swapped: HashMap<Topic, String>,
    /// The book of the subscribers of each depth.
    pub(crate) windows: HashMap<u32, Window>,
    /// The single orders, from the first subscription to them on.
    singles: Option<Singles>,
    /// The orders that the subscribers of each depth hold.
    pub(crate) order_windows: HashMap<u32, OrderWindow>,
    /// The numbers of the book of each depth, where the venue gives any.
    pub(crate) chains: HashMap<u32, Chain>,
    /// Frames that [`Fault::Delay`] holds back, and until when (microseconds of the Unix epoch).
    pub(crate) held: Option<(u64, Vec<(Topic, String)>)>,
    pub(crate) snapshot_faults: VecDeque<SnapshotFault>,
    /// The second of the last statistics.
    pub(crate) statistics_at_s: u64,
    history: VecDeque<(u64, u64)>,
    last_us: u64,
}

impl Market {
    pub(crate) fn new(instrument: Instrument, seed: u64) -> Self {
        let start_px = instrument.start_px;
        Self {
            script: Script::new(&instrument, seed),
            instrument,
            day: Day { open_px: start_px, high_px: start_px, low_px: start_px, ..Day::default() },
            minute: (0, Day::default()),
            subscribers: HashMap::new(),
            faults: VecDeque::new(),
            swapped: HashMap::new(),
            windows: HashMap::new(),
            singles: None,
            order_windows: HashMap::new(),
            chains: HashMap::new(),
            held: None,
            snapshot_faults: VecDeque::new(),
            statistics_at_s: 0,
            history: VecDeque::new(),
            last_us: 0,
        }
    }

    /// One step of the script at `unix_us`, and the time that the step carries: no two steps carry the same one.
    pub(crate) fn step(&mut self, unix_us: u64) -> (Step, u64) {
        let step = self.script.step();
        self.last_us = unix_us.max(self.last_us + 1);
        if let Some(trade) = step.trade {
            self.day.record(trade);
            let minute = self.last_us / 60_000_000;
            if minute != self.minute.0 || self.minute.1.open_px == 0 {
                let (open_px, high_px, low_px) = (trade.px, trade.px, trade.px);
                self.minute = (minute, Day { open_px, high_px, low_px, ..Day::default() });
            }
            self.minute.1.record(trade);
        }
        if let Some(singles) = &mut self.singles {
            singles.step(&step, self.last_us);
        }
        if self.history.len() == HISTORY_STEPS {
            self.history.pop_front();
        }
        self.history.push_back((self.last_us, step.last_update_id));
        (step, self.last_us)
    }

    /// The update id of the step that carried `unix_us`.
    pub(crate) fn update_id_at(&self, unix_us: u64) -> Option<u64> {
        let found = self.history.binary_search_by_key(&unix_us, |&(at_us, _)| at_us).ok()?;
        Some(self.history[found].1)
    }

    /// Replaces the window of `depth` by the book's and returns the old one.
    pub(crate) fn renew_window(&mut self, depth: u32) -> Window {
        let levels = depth.checked_sub(WITH_RPI).unwrap_or(depth) as usize;
        let window = window(self.script.book(), levels);
        self.windows.insert(depth, window).unwrap_or_default()
    }

    /// Every order of the best `depth` levels.
    pub(crate) fn orders(&mut self, depth: usize) -> OrderWindow {
        let new = || Singles::new(self.script.book(), self.script.update_id(), self.last_us.max(FIRST_ORDERS_US));
        self.singles.get_or_insert_with(new).window(depth)
    }

    /// As [`renew_window`](Self::renew_window), of single orders.
    pub(crate) fn renew_order_window(&mut self, depth: u32) -> OrderWindow {
        let window = self.orders(depth as usize);
        self.order_windows.insert(depth, window).unwrap_or_default()
    }

    /// Returns the numbering of the book of `depth`, starting at the current book.
    pub(crate) fn chain(&mut self, depth: u32, numbering: Numbering) -> &mut Chain {
        let update_id = self.script.update_id();
        self.chains.entry(depth).or_insert_with(|| Chain::new(numbering, update_id))
    }

    /// The script's update id of some steps ago.
    pub(crate) fn earlier_update_id(&self) -> u64 {
        let back = self.history.len().saturating_sub(STALE_STEPS);
        self.history.get(back).map_or_else(|| self.script.update_id(), |&(_, update_id)| update_id)
    }

    /// Takes `connection` off `topic` (off every topic where it is `None`).
    pub(crate) fn unsubscribe(&mut self, connection: u64, topic: Option<Topic>) {
        for (name, subscribers) in &mut self.subscribers {
            if topic.is_none_or(|topic| topic == *name) {
                subscribers.retain(|subscriber| subscriber.connection != connection);
            }
        }
        self.subscribers.retain(|_, subscribers| !subscribers.is_empty());
        self.windows.retain(|depth, _| self.subscribers.contains_key(&Topic::Book(*depth)));
        self.order_windows.retain(|depth, _| self.subscribers.contains_key(&Topic::Orders(*depth)));
    }
}

/// Returns the changes from `old` to `new`, with quantity 0 for deleted levels, best first.
pub(crate) fn changes(old: &Window, new: &Window) -> Window {
    [Side::Bid, Side::Ask].map(|side| {
        let is_better = |one: i64, other: i64| if side == Side::Bid { one > other } else { one < other };
        let (mut old, mut changes) = (old[side as usize].iter().peekable(), Vec::new());
        for &(px, qty) in &new[side as usize] {
            while let Some(&(gone, _)) = old.next_if(|(held, _)| is_better(*held, px)) {
                changes.push((gone, 0));
            }
            match old.next_if(|(held, _)| *held == px) {
                Some((_, held_qty)) if *held_qty == qty => {}
                Some(_) | None => changes.push((px, qty)),
            }
        }
        changes.extend(old.map(|&(gone, _)| (gone, 0)));
        changes
    })
}

/// The best `depth` levels of both sides.
pub(crate) fn window(book: &TrueBook, depth: usize) -> Window {
    let level = |(&px, &qty): (&i64, &i64)| (px, qty);
    [book.bids().take(depth).map(level).collect(), book.asks().take(depth).map(level).collect()]
}
