//! What was proved of each book, its incidents, its depth and its trades.

use std::collections::VecDeque;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tt_model::sort_short_by_key;
use tt_status::market::{Book, Level, MarketStatus};
use tt_status::market_streams::MarketStreams;

use super::SECONDS;
use crate::incident::BookIncident;

/// A cell of a proof is that long, milliseconds.
pub(super) const CELL_MS: u64 = 500;
/// Books whose proofs are kept.
const BOOKS_MAX: usize = 512;
/// Books whose depth and trades are kept.
const DEEP_MAX: usize = 64;
/// Columns of depth, one a second.
const COLUMNS: usize = 300;
/// Levels of each side in a column.
const LEVELS: usize = 25;
/// Trades of a book.
const TRADES: usize = 2_000;
/// Incidents of all books.
const INCIDENTS: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Books {
    books: Vec<Past>,
    incidents: VecDeque<BookIncident>,
    cells_at_ms: u64,
    columns_at_ms: u64,
}

#[derive(Debug)]
struct Past {
    venue: &'static str,
    symbol: String,
    /// A letter per cell: `p` proved, `r` resynchronising, `f` failed, `u` not provable.
    cells: VecDeque<u8>,
    columns: VecDeque<Column>,
    trades: VecDeque<Dot>,
    /// The number of the newest trade.
    newest: u64,
}

/// Levels at one time.
#[derive(Debug, Serialize)]
struct Column {
    at_unix_ms: u64,
    bids: Box<[Pair]>,
    asks: Box<[Pair]>,
}

/// Price and quantity of a level, in 12 bytes: a page of 18 books keeps 270,000 of them.
#[derive(Clone, Copy, Debug, Serialize)]
#[repr(Rust, packed(4))]
struct Pair(f64, f32);

/// A trade.
#[derive(Debug, Serialize)]
struct Dot {
    at_unix_ms: u64,
    px: f64,
    qty: f32,
    #[serde(rename = "aggressor", serialize_with = "aggressor")]
    is_buy: bool,
}

/// The side that took liquidity.
fn aggressor<S: Serializer>(is_buy: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *is_buy { "buy" } else { "sell" })
}

impl Books {
    pub(super) fn take(&mut self, at_ms: u64, market: &MarketStatus, streams: Option<&dyn MarketStreams>) {
        let failed = self.take_incidents(market);
        self.meet(market);
        let cells = at_ms.saturating_sub(self.cells_at_ms) / CELL_MS;
        let is_first = self.cells_at_ms == 0;
        if cells > 0 {
            self.cells_at_ms = if is_first { at_ms } else { self.cells_at_ms + cells * CELL_MS };
        }
        let cells = if is_first { 1 } else { usize::try_from(cells).unwrap_or(SECONDS).min(2 * SECONDS) };
        let is_column = at_ms.saturating_sub(self.columns_at_ms) >= 1_000;
        if is_column {
            self.columns_at_ms = at_ms;
        }
        for (index, past) in self.books.iter_mut().enumerate() {
            let Some(book) = market.books.iter().find(|book| past.is_of(book)) else { continue };
            past.add_cells(letter(book), cells);
            let is_failed = failed
                .iter()
                .any(|(venue, symbol)| *venue == past.venue && (symbol.is_empty() || *symbol == past.symbol));
            if is_failed {
                past.cells.back_mut().into_iter().for_each(|cell| *cell = b'f');
            }
            if index < DEEP_MAX {
                past.take_trades(book);
                if is_column && book.is_proven() {
                    past.take_depth(at_ms, book, streams);
                }
            }
        }
    }

    /// Adds what is not known, ends what ended; returns venue and symbol of new losses.
    fn take_incidents(&mut self, market: &MarketStatus) -> Vec<(&'static str, String)> {
        let mut failed = Vec::new();
        for feed in &market.feeds {
            for incident in feed.incidents.iter() {
                let is_same = |known: &&mut BookIncident| {
                    let of = &known.incident;
                    known.venue == feed.venue
                        && (of.at_unix_ns, &of.symbol, of.cause)
                            == (incident.at_unix_ns, &incident.symbol, incident.cause)
                };
                if let Some(known) = self.incidents.iter_mut().rev().find(is_same) {
                    known.incident.clone_from(incident);
                    continue;
                }
                let is_of = |book: &&Book| book.venue == feed.venue && book.venue_symbol == incident.symbol;
                let book =
                    market.books.iter().find(is_of).map_or_else(|| incident.symbol.clone(), |book| book.symbol.clone());
                if incident.reaction != "ignored" {
                    failed.push((feed.venue, book.clone()));
                }
                if self.incidents.len() == INCIDENTS {
                    self.incidents.pop_front();
                }
                self.incidents.push_back(BookIncident { venue: feed.venue, book, incident: incident.clone() });
            }
        }
        if !failed.is_empty() {
            sort_short_by_key(self.incidents.make_contiguous(), |known| known.incident.at_unix_ns);
        }
        failed
    }

    /// Follows the books that are listed, and forgets the others.
    fn meet(&mut self, market: &MarketStatus) {
        self.books.retain(|past| market.books.iter().any(|book| past.is_of(book)));
        for book in &market.books {
            if self.books.len() < BOOKS_MAX && !self.books.iter().any(|past| past.is_of(book)) {
                self.books.push(Past::new(book));
            }
        }
    }

    pub(super) fn incidents(&self) -> impl DoubleEndedIterator<Item = &BookIncident> {
        self.incidents.iter()
    }

    /// Cells of the last `seconds` of each book that `is_meant`, oldest first; the last one is the newest.
    pub(super) fn proofs(&self, seconds: usize, is_meant: impl Fn(&str, &str) -> bool) -> Value {
        let meant = self.books.iter().filter(|past| is_meant(past.venue, &past.symbol));
        let row = |past: &Past| {
            let kept = past.cells.len().min(seconds * 2);
            let cells: String = past.cells.range(past.cells.len() - kept..).map(|cell| char::from(*cell)).collect();
            json!({ "venue": past.venue, "symbol": past.symbol, "cells": cells })
        };
        json!({ "every_ms": CELL_MS, "to_unix_ms": self.cells_at_ms, "books": meant.map(row).collect::<Vec<_>>() })
    }

    /// Depth and trades of the first book that `is_meant` after `since_ms`; `None` if they are not kept.
    pub(super) fn depth(&self, is_meant: impl Fn(&str, &str) -> bool, since_ms: u64) -> Option<Value> {
        let past = self.books.iter().take(DEEP_MAX).find(|past| is_meant(past.venue, &past.symbol))?;
        let (venue, symbol) = (past.venue, &past.symbol);
        let columns: Vec<&Column> = past.columns.iter().filter(|column| column.at_unix_ms > since_ms).collect();
        let trades: Vec<&Dot> = past.trades.iter().filter(|trade| trade.at_unix_ms > since_ms).collect();
        Some(json!({ "venue": venue, "symbol": symbol, "columns": columns, "trades": trades }))
    }
}

impl Past {
    fn new(book: &Book) -> Self {
        Self {
            venue: book.venue,
            symbol: book.symbol.clone(),
            cells: VecDeque::new(),
            columns: VecDeque::new(),
            trades: VecDeque::new(),
            newest: 0,
        }
    }

    fn is_of(&self, book: &Book) -> bool {
        self.venue == book.venue && self.symbol == book.symbol
    }

    fn add_cells(&mut self, letter: u8, count: usize) {
        for _ in 0..count {
            if self.cells.len() == 2 * SECONDS {
                self.cells.pop_front();
            }
            self.cells.push_back(letter);
        }
        // A state of less than a cell is seen too.
        if count == 0
            && letter == b'r'
            && let Some(cell) = self.cells.back_mut()
            && *cell != b'f'
        {
            *cell = letter;
        }
    }

    fn take_trades(&mut self, book: &Book) {
        for trade in book.trades.iter().filter(|trade| trade.number > self.newest) {
            let (Ok(px), Ok(qty)) = (trade.px.parse(), trade.qty.parse()) else { continue };
            if self.trades.len() == TRADES {
                self.trades.pop_front();
            }
            self.trades.push_back(Dot {
                at_unix_ms: trade.recv_unix_ns / 1_000_000,
                px,
                qty,
                is_buy: trade.aggressor == "buy",
            });
        }
        self.newest = book.trades.iter().map(|trade| trade.number).max().unwrap_or(0).max(self.newest);
    }

    fn take_depth(&mut self, at_unix_ms: u64, book: &Book, streams: Option<&dyn MarketStreams>) {
        let pairs = |levels: &[Level]| {
            let pair = |level: &Level| Some(Pair(level.px.parse().ok()?, level.qty.parse().ok()?));
            levels.iter().filter_map(pair).collect::<Box<[Pair]>>()
        };
        let whole = streams.and_then(|streams| streams.book(book.instrument, LEVELS));
        let (bids, asks) = match &whole {
            Some(whole) => (pairs(&whole.bids), pairs(&whole.asks)),
            None => (pairs(&book.bids), pairs(&book.asks)),
        };
        if self.columns.len() == COLUMNS {
            self.columns.pop_front();
        }
        self.columns.push_back(Column { at_unix_ms, bids, asks });
    }
}

fn letter(book: &Book) -> u8 {
    match book.proof {
        "unverified" => b'u',
        _ if book.is_proven() => b'p',
        _ => b'r',
    }
}

#[cfg(test)]
mod tests {
    use tt_status::market::Incident;

    use super::*;
    use std::sync::Arc;
    use tt_status::market::{Feed, Terms};

    fn market(proof: &'static str, incidents: Vec<Incident>) -> MarketStatus {
        let book = |symbol: &str| Book {
            instrument: 0,
            venue: "kraken",
            symbol: symbol.to_owned(),
            bids: vec![Level { px: "10.5".to_owned(), qty: "2".to_owned() }],
            asks: Vec::new(),
            spread_bps: None,
            update_id: 7,
            proof,
            proof_update_id: 7,
            proof_age_ms: None,
            age_ms: None,
            ts_event: None,
            ts_recv: None,
            derivative: None,
            kind: "levels",
            known_levels: None,
            candles: Vec::new(),
            venue_symbol: symbol.replace('/', ""),
            tick_size: String::new(),
            lot_size: String::new(),
            terms: Terms::default(),
            trades: Vec::new(),
        };
        let feed = Feed { venue: "kraken", incidents: Arc::new(incidents), ..Feed::default() };
        MarketStatus { feeds: vec![feed], books: vec![book("BTC/USD"), book("ETH/USD")], ..MarketStatus::default() }
    }

    #[test]
    fn a_loss_between_two_cells_is_red_and_ends_when_the_book_is_proved() {
        let (mut books, of) = (Books::default(), |books: &Books| {
            let proofs = books.proofs(60, |_, symbol| symbol == "BTC/USD");
            proofs["books"][0]["cells"].as_str().map(str::to_owned)
        });
        books.take(10_000, &market("crc", Vec::new()), None);
        books.take(10_500, &market("crc", Vec::new()), None);
        let loss = Incident {
            symbol: "BTCUSD".to_owned(),
            cause: "gap",
            reaction: "snapshot_requested",
            at_unix_ns: 10_600_000_000,
            ..Incident::default()
        };
        // It was lost and proved again before anybody looked.
        let ended = Incident { proven_unix_ns: Some(10_650_000_000), ..loss.clone() };
        books.take(11_000, &market("crc", vec![loss]), None);
        books.take(12_000, &market("crc", vec![ended.clone()]), None);
        assert_eq!(of(&books).as_deref(), Some("ppfpp"));
        assert_eq!(books.proofs(1, |_, symbol| symbol == "ETH/USD")["books"][0]["cells"], "pp");
        let kept: Vec<_> = books.incidents().cloned().collect();
        assert_eq!(kept, [BookIncident { venue: "kraken", book: "BTC/USD".to_owned(), incident: ended }]);
        let depth = books.depth(|_, symbol| symbol == "BTC/USD", 0).unwrap();
        assert_eq!(depth["columns"][0], json!({ "at_unix_ms": 10_000, "bids": [[10.5, 2.0]], "asks": [] }));
        assert_eq!(
            books.depth(|_, symbol| symbol == "BTC/USD", 11_000).unwrap()["columns"].as_array().unwrap().len(),
            1
        );
        assert_eq!(books.depth(|_, _| false, 0), None);
    }

    #[test]
    fn every_list_has_a_bound() {
        let mut books = Books::default();
        books.take(1_000, &market("crc", Vec::new()), None);
        books.take(10_000_000, &market("stale", Vec::new()), None);
        assert_eq!(books.books[0].cells.len(), 2 * SECONDS);
        for second in 0..400 {
            books.take(11_000_000 + second * 1_000, &market("crc", Vec::new()), None);
        }
        assert_eq!(books.books[0].columns.len(), COLUMNS);
    }
}
