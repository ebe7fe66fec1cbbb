//! Keeps the best levels of a simulated venue's books from events alone, and compares them with the engine's; then ends one
//! symbol, and follows another.
//!
//! ```text
//! cargo run -p market-feed --example events
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use market_feed::{
    BookChange, BookEventKind, BookSide, Event, FeedConfig, Feeds, InstrumentId, Listener, MarketConfig, Venue,
};

/// How long to wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Updates of each instrument that are compared.
const UPDATES: u64 = 200;

/// A book as its events make it: quantity by price, bids then asks.
#[derive(Default)]
struct Copy {
    levels: [BTreeMap<i64, i64>; 2],
    updates: u64,
    trades: u64,
    wrong: u64,
}

impl Copy {
    fn take(&mut self, book: &BookChange<'_>) {
        match book.kind {
            BookEventKind::Snapshot => {
                for side in [BookSide::Bid, BookSide::Ask] {
                    self.levels[side as usize] = book.levels(side).map(|level| (level.px.0, level.qty.0)).collect();
                }
            }
            BookEventKind::Delta => {
                for change in book.changes {
                    let levels = &mut self.levels[change.side as usize];
                    match change.new_qty.0 {
                        0 => levels.remove(&change.px.0),
                        qty => levels.insert(change.px.0, qty),
                    };
                }
            }
            BookEventKind::Status => return,
        }
        self.updates += 1;
        let is_same = |side: BookSide| {
            let mut levels: Vec<_> = book.levels(side).map(|level| (level.px.0, level.qty.0)).collect();
            levels.sort_unstable();
            levels.into_iter().eq(self.levels[side as usize].iter().map(|(px, qty)| (*px, *qty)))
        };
        self.wrong += u64::from(!(is_same(BookSide::Bid) && is_same(BookSide::Ask)));
    }
}

fn main() -> Result<()> {
    // A venue of our own on loopback. For the real one: FeedConfig::public(Venue::Okx, symbols).
    let simulator = sim::start(sim::Config { instruments: 3, rate_hz: 300.0, seed: 7, ..sim::Config::default() })?;
    let okx = sim::Venue::Okx;
    let symbols: Vec<String> = simulator.instruments(okx).into_iter().map(|listed| listed.symbol).collect();
    let address = format!("ws://{}{}", simulator.address(okx), okx.streams_path());
    let feed =
        |symbols: &[String]| Ok::<_, anyhow::Error>(FeedConfig::at(Venue::Okx, address.parse()?, symbols.to_vec()));

    let copies: Arc<Mutex<BTreeMap<u32, Copy>>> = Arc::default();
    let kept = Arc::clone(&copies);
    let listener = Listener::new(move |event| {
        let mut copies = kept.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Book(book) => copies.entry(book.instrument.0).or_default().take(book),
            Event::Liquidation { .. } => {}
            Event::Trade { instrument, .. } => copies.entry(instrument.0).or_default().trades += 1,
        }
    });
    let market = MarketConfig { listener: Some(listener), ..MarketConfig::default() };
    let feeds = Feeds::new(market, |venue| eprintln!("{}: {}", venue.url, venue.error));
    let first = feeds.add(feed(&symbols[..2])?)?;
    wait(&copies, &[0, 1])?;
    // One symbol less and another one more, while the first goes on.
    ensure!(feeds.unsubscribe(first, &symbols[1]), "it is followed");
    feeds.add(feed(&symbols[2..])?)?;
    wait(&copies, &[0, 2])?;
    for (begin, reader) in feeds.readers() {
        for listed in reader.instruments().iter().filter(|listed| reader.is_followed(listed.id)) {
            let id = InstrumentId(begin + listed.id.0);
            let copies = copies.lock().unwrap_or_else(PoisonError::into_inner);
            let copy = copies.get(&id.0).context("an instrument with events")?;
            println!("{:10} {} updates, {} trades, {} wrong", listed.name, copy.updates, copy.trades, copy.wrong);
            ensure!(copy.wrong == 0, "{}: events and levels differ", listed.name);
        }
    }
    feeds.stop();
    simulator.stop();
    Ok(())
}

/// Waits until each instrument has had more updates.
fn wait(copies: &Mutex<BTreeMap<u32, Copy>>, instruments: &[u32]) -> Result<()> {
    let updates = |id: u32| {
        let copies = copies.lock().unwrap_or_else(PoisonError::into_inner);
        copies.get(&id).map_or(0, |copy| copy.updates)
    };
    let (start, before) = (Instant::now(), instruments.iter().map(|id| updates(*id)).collect::<Vec<_>>());
    while !instruments.iter().zip(&before).all(|(id, before)| updates(*id) >= before + UPDATES) {
        ensure!(start.elapsed() < PATIENCE, "no updates within {PATIENCE:?}");
        std::thread::yield_now();
    }
    Ok(())
}
