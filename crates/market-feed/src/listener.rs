//! Callbacks for every event.

use std::fmt;
use std::sync::Arc;

use tt_market::board::TradePrint;
use tt_market::changes::{BookEvent, BookEventKind, LevelChange};
use tt_market::venue_state::LiquidationState;
use tt_market::{BookSide, BookStatus, Engine, Proof, RestingOrder};
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::BookLevel;

/// A function that is called for each update of each book, each trade and each liquidation, in their order, on the
/// thread of the instrument's feed. While it runs, the feed reads nothing: it should be short. Clones call the same
/// function.
///
/// ```no_run
/// use market_feed::{Event, FeedConfig, Listener, MarketConfig, Venue, start};
///
/// # fn main() -> anyhow::Result<()> {
/// let listener = Listener::new(|event| match event {
///     Event::Book(book) => println!("{:?} {} {}", book.instrument, book.update_id, book.changes.len()),
///     Event::Trade { instrument, print } => println!("{instrument:?} {:?} {:?}", print.px, print.qty),
///     Event::Liquidation { instrument, liquidation } => println!("{instrument:?} {liquidation:?}"),
/// });
/// let feeds = vec![FeedConfig::public(Venue::ALL[0], vec!["BTCUSDT".to_owned()])];
/// let runner = start(MarketConfig { feeds, listener: Some(listener), ..MarketConfig::default() })?;
/// runner.stop();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Listener(Arc<dyn Fn(&Event<'_>) + Send + Sync>);

/// What a [`Listener`] gets.
#[derive(Debug)]
pub enum Event<'a> {
    /// A book, or its proof, has changed.
    Book(BookChange<'a>),
    /// A trade.
    Trade {
        /// The instrument: its id in [`Reader::instruments`](crate::Reader::instruments).
        instrument: InstrumentId,
        /// The trade, in steps of price and quantity.
        print: TradePrint,
    },
    /// A liquidation, where its topic is followed.
    Liquidation {
        /// The instrument: its id in [`Reader::instruments`](crate::Reader::instruments).
        instrument: InstrumentId,
        /// The liquidation, with its number among those of the instrument.
        liquidation: LiquidationState,
    },
}

/// A book after an update.
#[derive(Clone, Copy)]
pub struct BookChange<'a> {
    /// The instrument: its id in [`Reader::instruments`](crate::Reader::instruments).
    pub instrument: InstrumentId,
    /// Whether levels were changed, all of them replaced, or the proof alone is another one.
    pub kind: BookEventKind,
    /// The venue's number of the update.
    pub update_id: u64,
    /// The number of the update before.
    pub previous_id: u64,
    /// The venue's time, Unix epoch; zero if it sends none.
    pub ts_event: Nanos,
    /// When its frame was received, Unix epoch.
    pub ts_recv: Nanos,
    /// The proof.
    pub status: BookStatus,
    /// The levels of a delta in their order; empty for the other kinds.
    pub changes: &'a [LevelChange],
    engine: &'a Engine,
    local: InstrumentId,
}

impl BookChange<'_> {
    /// Every level of a side as it is now, best first. A book that is stale may hold a part of a rejected update.
    pub fn levels(&self, side: BookSide) -> impl Iterator<Item = BookLevel> + '_ {
        self.engine.levels(self.local, side).into_iter().flatten()
    }

    /// Whether nothing is known of the book yet: its first snapshot is awaited.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.status.proof == Proof::Syncing && self.update_id == 0
    }

    /// Every order of a side as it is now, best level first and in it the oldest; none where the book is not followed order
    /// by order.
    pub fn orders(&self, side: BookSide) -> impl Iterator<Item = RestingOrder> + '_ {
        self.engine.resting_orders(self.local, side).into_iter().flatten()
    }

    /// The price step and the quantity step that the levels count. They may become finer.
    #[must_use]
    pub fn steps(&self) -> (Decimal, Decimal) {
        self.engine.instrument(self.local).map_or_else(Default::default, |spec| (spec.tick_size, spec.lot_size))
    }
}

impl fmt::Debug for BookChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instrument, kind, update_id, .. } = self;
        write!(f, "BookChange({instrument:?}, {kind:?}, {update_id})")
    }
}

impl Listener {
    /// Calls `listen` for each event.
    pub fn new(listen: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listen))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// A listener of one feed.
#[derive(Debug)]
pub(crate) struct FeedListener {
    listener: Listener,
    /// The id of the feed's first instrument.
    first: u32,
    /// Instruments that share another one's book: its number in the feed, and theirs.
    sharing: Vec<(InstrumentId, InstrumentId)>,
    /// The changes of an event, while the engine is read for its levels.
    changes: Vec<LevelChange>,
}

/// An event without its levels.
pub(crate) struct Heard(BookChangeHead);

struct BookChangeHead {
    local: InstrumentId,
    kind: BookEventKind,
    ids: [u64; 2],
    times: [Nanos; 2],
    status: BookStatus,
}

impl FeedListener {
    pub(crate) const fn new(listener: Listener, first: u32, sharing: Vec<(InstrumentId, InstrumentId)>) -> Self {
        Self { listener, first, sharing, changes: Vec::new() }
    }

    /// The instruments of a book.
    fn instruments(&self, local: InstrumentId) -> impl Iterator<Item = InstrumentId> + '_ {
        let shares = self.sharing.iter().filter(move |(of, _)| *of == local).map(|(_, id)| *id);
        std::iter::once(InstrumentId(self.first + local.0)).chain(shares)
    }

    /// Keeps what the engine is to be left for.
    pub(crate) fn hear(&mut self, event: &BookEvent<'_>) -> Heard {
        self.changes.clear();
        self.changes.extend_from_slice(event.changes);
        Heard(BookChangeHead {
            local: event.instrument,
            kind: event.kind,
            ids: [event.update_id, event.previous_id],
            times: [event.ts_event, event.ts_recv],
            status: event.status,
        })
    }

    pub(crate) fn call_book(&self, engine: &Engine, Heard(head): &Heard) {
        let BookChangeHead { local, kind, ids: [update_id, previous_id], times: [ts_event, ts_recv], status } = *head;
        let changes = &self.changes[..];
        for instrument in self.instruments(local) {
            let change = BookChange {
                instrument,
                kind,
                update_id,
                previous_id,
                ts_event,
                ts_recv,
                status,
                changes,
                engine,
                local,
            };
            (self.listener.0)(&Event::Book(change));
        }
    }

    pub(crate) fn call_trade(&self, local: InstrumentId, print: TradePrint) {
        for instrument in self.instruments(local) {
            (self.listener.0)(&Event::Trade { instrument, print });
        }
    }

    pub(crate) fn call_liquidation(&self, local: InstrumentId, liquidation: LiquidationState) {
        for instrument in self.instruments(local) {
            (self.listener.0)(&Event::Liquidation { instrument, liquidation });
        }
    }
}
