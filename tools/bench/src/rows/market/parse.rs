//! A frame's bytes to a parsed event.

use std::hint::black_box;

use crate::report::{Sizes, Statistic};
use anyhow::{Context as _, ensure};
use tt_venue::Venue;
use tt_venue::event::{Event, EventBuffer};

use super::delta::spread;
use super::recorded::inputs;
use super::rig::{json, level};
use super::source::{Capture, is_of, is_snapshot, read, usdm_updates};
use super::state::plural;
use super::{Size, label};
use crate::harness::operation::{Label, Operation};

/// Which frames of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    All,
    BookTicker,
    Depth,
}

/// `Venue::parse`.
pub(super) struct Parse {
    frames: Frames,
    bytes: Vec<Vec<u8>>,
    buffer: EventBuffer,
    levels: Vec<usize>,
    size: Size,
    origin: &'static str,
}

impl Parse {
    /// # Errors
    /// The source cannot be read, or has no such frames.
    pub(super) fn new(frames: Frames, size: Size) -> anyhow::Result<Self> {
        let capture = Capture::usdm()?;
        let wanted = |frame: &[u8]| match frames {
            Frames::All => !is_snapshot(frame),
            Frames::BookTicker => is_of(frame, "bookTicker"),
            Frames::Depth => is_of(frame, "depthUpdate"),
        };
        let bytes: Vec<Vec<u8>> = if size.instruments == 1 {
            capture.frames.iter().map(|(_, frame)| frame).filter(|frame| wanted(frame)).cloned().collect()
        } else {
            let updates = usdm_updates()?;
            let (count, _, _) = spread(size.instruments);
            let all = inputs(capture, updates, &updates.places(count, 1), size.instruments);
            all.into_iter().map(|input| input.bytes).collect()
        };
        ensure!(!bytes.is_empty(), "no such frames in the source");
        let mut buffer = EventBuffer::new(10_240, 1_024);
        let mut levels = Vec::new();
        for frame in &bytes {
            let event = Venue::BinanceSpot.parse(frame, &mut buffer).map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
            if matches!(event, Event::BookDelta(_)) {
                levels.push(buffer.levels().len());
            }
        }
        Ok(Self { frames, bytes, buffer, levels, size, origin: capture.origin() })
    }

    pub(super) fn label(&self) -> Label {
        let name = self.size.name;
        match self.frames {
            Frames::All => {
                let what = "every frame of the session in its order: bytes to event";
                label(name, what, 1_760.0, &[(Statistic::P99, 77_950.0)])
            }
            Frames::BookTicker => {
                Label { published: Vec::new(), ..label(name, "bookTicker frames alone: four exact decimals", 0.0, &[]) }
            }
            Frames::Depth => Label {
                published: Vec::new(),
                ..label(name, "depthUpdate frames alone: two exact decimals a level", 0.0, &[])
            },
        }
    }
}

/// The update id or the trade's count: it differs from frame to frame.
#[inline(always)]
fn digest(event: &Event, buffer: &EventBuffer) -> u64 {
    match event {
        Event::BookTicker(ticker) => ticker.update_id,
        Event::BookDelta(delta) => delta.last_id ^ buffer.levels().len() as u64,
        Event::Trades => buffer.trades().len() as u64,
        Event::Tickers => 2,
        Event::MarkPrice(_) => 3,
        Event::OrderUpdates => 4 + buffer.order_updates().len() as u64,
        Event::Candles
        | Event::Liquidations
        | Event::Account
        | Event::OrderList(_)
        | Event::BookOrders(_)
        | Event::BookSnapshot(_)
        | Event::Control(_) => 0,
    }
}

impl Operation for Parse {
    fn inputs(&self) -> usize {
        self.bytes.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        match black_box(Venue::BinanceSpot.parse(&self.bytes[index], &mut self.buffer)) {
            Ok(event) => digest(&event, &self.buffer),
            Err(_) => u64::MAX,
        }
    }

    fn ready(&self, index: usize) {
        read(&self.bytes[index]);
    }

    /// Ids, counts, prices and quantities as a JSON library reads them.
    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let event = Venue::BinanceSpot
            .parse(&self.bytes[index], &mut self.buffer)
            .map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
        let frame = json(&self.bytes[index])?;
        let is = |digits: tt_model::Decimal, decimals, steps| {
            digits.mantissa_at(decimals).is_ok_and(|mantissa| mantissa == steps)
        };
        match &event {
            Event::BookTicker(ticker) => {
                let (bid, ask) = (level(&frame["b"], &frame["B"])?, level(&frame["a"], &frame["A"])?);
                ensure!(Some(ticker.update_id) == frame["u"].as_u64(), "id of {frame}");
                ensure!(is(ticker.bid_px, 1, bid.0) && is(ticker.bid_qty, 3, bid.1), "bid of {frame}");
                ensure!(is(ticker.ask_px, 1, ask.0) && is(ticker.ask_qty, 3, ask.1), "ask of {frame}");
            }
            Event::BookDelta(delta) => {
                ensure!(Some(delta.last_id) == frame["u"].as_u64(), "id of {frame}");
                let sides = ["b", "a"].map(|side| frame[side].as_array().cloned().unwrap_or_default());
                let levels = sides.concat();
                ensure!(levels.len() == self.buffer.levels().len(), "levels of {frame}");
                for (found, entry) in self.buffer.levels().iter().zip(&levels) {
                    let (px, qty) = level(&entry[0], &entry[1])?;
                    let digits = |mantissa, decimals| tt_model::Decimal::new(mantissa, decimals);
                    let (found_px, found_qty) =
                        (digits(found.px, delta.levels.px_decimals), digits(found.qty, delta.levels.qty_decimals));
                    ensure!(is(found_px, 1, px) && is(found_qty, 3, qty), "a level of {frame}");
                }
            }
            Event::Trades => {
                let trade = self.buffer.trades().first().context("no trade")?;
                let (px, qty) = level(&frame["p"], &frame["q"])?;
                ensure!(is(trade.px, 1, px) && is(trade.qty, 3, qty), "trade of {frame}");
            }
            Event::Tickers | Event::MarkPrice(_) | Event::OrderUpdates => {}
            Event::Candles
            | Event::Liquidations
            | Event::Account
            | Event::OrderList(_)
            | Event::BookOrders(_)
            | Event::BookSnapshot(_)
            | Event::Control(_) => {
                anyhow::bail!("{event:?} of {frame}")
            }
        }
        Ok(digest(&event, &self.buffer))
    }

    fn note(&self) -> Option<String> {
        let (frames, bytes) = (self.bytes.len(), self.bytes.iter().map(Vec::len).sum::<usize>());
        let (mean, instruments) = (bytes as f64 / frames as f64, self.size.instruments);
        let plural = plural(instruments);
        Some(format!(
            "{}, {frames} of them, {mean:.0} bytes each on average; {instruments} instrument{plural}",
            self.origin
        ))
    }

    fn sizes(&self) -> Option<Sizes> {
        Sizes::of("levels of a depthUpdate", self.levels.clone())
    }

    fn parts(&self) -> Option<(&'static str, f64)> {
        let mean = self.levels.iter().sum::<usize>() as f64 / self.bytes.len() as f64;
        (self.frames == Frames::Depth).then_some((self.size.per_level, mean))
    }
}
