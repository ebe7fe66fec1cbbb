//! A Kraken frame's bytes to a visible book that agrees with the frame's checksum.

use crate::report::Sizes;
use anyhow::{Context as _, anyhow, ensure};
use tt_market::candle::CandleSource;
use tt_market::{Capacity, ConnectionId, Engine, InstrumentSpec, Proof};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

use super::rig::{BOOK, digest, json};
use super::source::{Capture, read};
use super::{Size, label};
use crate::harness::operation::{Label, Operation};

const ID: InstrumentId = InstrumentId(0);
/// Levels of each side that are subscribed.
const DEPTH: usize = 25;

/// `Engine::handle_frame` on the session's book frames.
pub(super) struct Verified {
    engine: Engine,
    connection: ConnectionId,
    /// The snapshot and the updates.
    frames: Vec<&'static (u64, Vec<u8>)>,
    origin: &'static str,
}

fn engine(start: Nanos) -> anyhow::Result<(Engine, ConnectionId)> {
    let mut engine = Engine::new(Capacity { instruments: 1, pages: 8_192, ..Capacity::default() });
    let spec = InstrumentSpec {
        venue: Venue::Kraken,
        symbol: Symbol::new(b"BTC/USD").map_err(|fault| anyhow!("{fault:?}"))?,
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 8),
        depth_max: Some(DEPTH),
        candles: CandleSource::LastPrice,
    };
    let id = engine.add_instrument(spec).map_err(|error| anyhow!("{error:?}"))?;
    let connection = engine.open_connection(Venue::Kraken, start).map_err(|error| anyhow!("{error:?}"))?;
    engine.subscribe(connection, id, start).map_err(|error| anyhow!("{error:?}"))?;
    Ok((engine, connection))
}

impl Verified {
    /// # Errors
    /// The source cannot be read, or does not begin with a snapshot.
    pub(super) fn new() -> anyhow::Result<Self> {
        let capture = Capture::kraken()?;
        let is_book = |frame: &&(u64, Vec<u8>)| frame.1.starts_with(b"{\"channel\":\"book\"");
        let frames: Vec<_> = capture.frames.iter().filter(is_book).collect();
        ensure!(frames.len() > 1, "no book in the session");
        let (engine, connection) = engine(Nanos(frames[0].0))?;
        Ok(Self { engine, connection, frames, origin: capture.origin() })
    }

    pub(super) fn label(size: Size) -> Label {
        let what = "Kraken book frame: bytes to published book, its CRC-32 over ten levels a side verified";
        Label { published: Vec::new(), ..label(size.name, what, 0.0, &[]) }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let (ts, snapshot) = self.frames[0];
        (self.engine, self.connection) = engine(Nanos(*ts))?;
        let applied = self.engine.handle_frame(Nanos(*ts), self.connection, snapshot, &mut Off);
        applied.map(|_| ()).map_err(|fault| anyhow!("{fault:?}"))
    }
}

impl Operation for Verified {
    fn inputs(&self) -> usize {
        self.frames.len() - 1
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        let (ts, frame) = self.frames[index + 1];
        digest(self.engine.handle_frame(Nanos(*ts), self.connection, frame, &mut Off))
    }

    fn ready(&self, index: usize) {
        read(&self.frames[index + 1].1);
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let found = self.run(index);
        ensure!(found == BOOK, "frame {index} gave {found}");
        let top = self.engine.board().top_of_book(ID).context("no book")?;
        ensure!(top.status.proof == Proof::Crc, "frame {index}: {:?}", top.status);
        let counters = self.engine.counters().venue(Venue::Kraken);
        // The snapshot has a checksum, too.
        ensure!(counters.crc_matches == index as u64 + 2, "{} checksums fitted at {index}", counters.crc_matches);
        Ok(found)
    }

    fn rewind(&mut self) {
        // A book that does not begin gives wrong answers, which end the bench.
        let _ = self.begin();
    }

    fn note(&self) -> Option<String> {
        Some(format!("{}, {} of them, {DEPTH} levels a side", self.origin, self.inputs()))
    }

    fn sizes(&self) -> Option<Sizes> {
        let levels = |frame: &&(u64, Vec<u8>)| {
            let data = json(&frame.1).ok()?;
            let of = |side: &str| data[0][side].as_array().map(Vec::len);
            Some(of("bids")? + of("asks")?)
        };
        Sizes::of("levels a message", self.frames.iter().skip(1).filter_map(levels).collect())
    }
}
