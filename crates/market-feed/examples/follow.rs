//! Follows a simulated Kraken and prints its books, each of them proven by the venue's checksum.
//!
//! ```text
//! cargo run -p market-feed --example follow
//! ```

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use market_feed::{FeedConfig, Instrument, MarketConfig, Proof, Reader, Venue, level_text, start};

/// How long to wait for a new book.
const PATIENCE: Duration = Duration::from_secs(30);

/// Books that are printed of each instrument.
const BOOKS: usize = 3;

fn main() -> Result<()> {
    // A venue of our own on loopback. For the real one: FeedConfig::public(Venue::Kraken, symbols).
    let simulator = sim::start(sim::Config { instruments: 2, rate_hz: 20.0, seed: 7, ..sim::Config::default() })?;
    let kraken = sim::Venue::Kraken;
    let symbols = simulator.instruments(kraken).into_iter().map(|listed| listed.symbol).collect();
    let address = format!("ws://{}{}", simulator.address(kraken), kraken.streams_path());
    let feed = FeedConfig::at(Venue::Kraken, address.parse().context("an address")?, symbols);

    let runner = start(MarketConfig { feeds: vec![feed], ..MarketConfig::default() })?;
    let reader = runner.reader();
    for instrument in reader.instruments() {
        let mut update_id = 0;
        for _ in 0..BOOKS {
            let is_new = || {
                let top = reader.top_of_book(instrument.id).unwrap_or_default();
                top.status.proof == Proof::Crc && top.update_id > update_id
            };
            ensure!(reader.wait(PATIENCE, is_new), "{}: no proven book within {PATIENCE:?}", instrument.name);
            update_id = print(&reader, instrument)?;
        }
    }
    runner.stop();
    simulator.stop();
    Ok(())
}

/// Prints the best levels, and returns the number of the update.
fn print(reader: &Reader, instrument: &Instrument) -> Result<u64> {
    let top = reader.top_of_book(instrument.id).context("an instrument")?;
    let (bid, ask) = (top.bid.context("no bid")?, top.ask.context("no ask")?);
    let (bid_px, bid_qty) = level_text(bid, instrument.tick_size, instrument.lot_size);
    let (ask_px, ask_qty) = level_text(ask, instrument.tick_size, instrument.lot_size);
    let (name, proof) = (&instrument.name, top.status.proof.name());
    println!("{name:9} update {:6} {bid_qty} @ {bid_px} | {ask_qty} @ {ask_px} proof: {proof}", top.update_id);
    Ok(top.update_id)
}
