//! A parsed frame to visible state.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tt_market::EventBuffer;
use tt_meter::Off;
use tt_model::Nanos;
use tt_report::Statistic;

use super::super::operation::{Label, Operation};
use super::super::plan::Random;
use super::label;
use super::rig::{POSITIONS, Parsed, Rig, json, level, pair, parsed, steps};
use super::source::{Source, is_of};

/// What kind of frame is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ticker,
    MarkPrice,
    OrderUpdate,
    Delta,
}

impl Kind {
    pub(super) fn label(self) -> Label {
        match self {
            Self::Ticker => label(
                "state_ticker_ns",
                "bookTicker applied: ticker entry, candle of one timeframe, both published",
                310.0,
                &[(Statistic::P95, 980.0), (Statistic::P99, 1_950.0), (Statistic::P999, 4_200.0)],
            ),
            Self::MarkPrice => label(
                "state_mark_price_ns",
                "markPriceUpdate applied: mark, index, funding, exact unrealised PnL of 8 positions, all published",
                2_150.0,
                &[(Statistic::P99, 3_730.0)],
            ),
            Self::OrderUpdate => label(
                "state_order_update_ns",
                "ORDER_TRADE_UPDATE applied: new, partly filled, filled",
                3_690.0,
                &[(Statistic::P99, 13_860.0)],
            ),
            Self::Delta => label(
                "state_ob_delta_ns",
                "depthUpdate applied to a book of 1,000 levels a side and more, top of book and ten levels published",
                5_510.0,
                &[(Statistic::P99, 16_340.0)],
            ),
        }
    }

    const fn event(self) -> &'static str {
        match self {
            Self::Ticker => "bookTicker",
            Self::MarkPrice => "markPriceUpdate",
            Self::OrderUpdate => "ORDER_TRADE_UPDATE",
            Self::Delta => "depthUpdate",
        }
    }
}

/// `Engine::handle_event` on parsed frames of one kind, in their order, each applied to the state that those before it
/// left.
pub(super) struct State {
    kind: Kind,
    rig: Rig,
    /// What joins the book before the first timed frame.
    before: Vec<(u64, Vec<u8>)>,
    frames: Vec<Vec<u8>>,
    inputs: Vec<Parsed>,
    levels: usize,
    reference: [BTreeMap<i64, i64>; 2],
}

impl State {
    /// # Errors
    /// The source cannot be read, or has no such frames.
    pub(super) fn new(kind: Kind) -> anyhow::Result<Self> {
        let source = Source::read()?;
        let start = source.frames[0].0;
        let (before, timed) = match kind {
            Kind::Delta => {
                let joined = Rig::new(Nanos(start))?.join(&source.frames)?;
                let (before, timed) = source.frames.split_at(joined);
                (before.to_vec(), timed.to_vec())
            }
            Kind::Ticker => (Vec::new(), source.frames),
            Kind::MarkPrice => (Vec::new(), mark_prices(start)),
            Kind::OrderUpdate => (Vec::new(), order_updates(start)),
        };
        let mut scratch = EventBuffer::new(10_240, 1_024);
        let mut frames = Vec::new();
        let mut inputs = Vec::new();
        let mut levels = 0;
        for (ts, frame) in timed.into_iter().filter(|(_, frame)| is_of(frame, kind.event())) {
            inputs.push(parsed(ts, &frame, &mut scratch)?);
            levels += scratch.levels().len();
            frames.push(frame);
        }
        ensure!(!inputs.is_empty(), "no {} among the frames", kind.event());
        let rig = Rig::new(Nanos(start))?;
        Ok(Self { kind, rig, before, frames, inputs, levels, reference: Default::default() })
    }

    /// The state that readers see after `frame`, against what the frame says.
    fn compare(&mut self, frame: &Value) -> anyhow::Result<u64> {
        let board = self.rig.engine.board();
        match self.kind {
            Kind::Ticker => {
                let ticker = board.ticker(self.rig.id).context("no ticker")?;
                ensure!(pair(ticker.bid) == Some(level(&frame["b"], &frame["B"])?), "bid {:?}", ticker.bid);
                ensure!(pair(ticker.ask) == Some(level(&frame["a"], &frame["A"])?), "ask {:?}", ticker.ask);
                let candle = board.candle(self.rig.id, 0).context("no candle")?;
                ensure!(candle.close_px.0 == level(&frame["b"], &frame["B"])?.0, "candle {candle:?}");
                Ok(11)
            }
            Kind::MarkPrice => {
                let mark_px = steps(&frame["p"], 8)?;
                for slot in 0..POSITIONS {
                    let position = board.position(slot).context("no position")?;
                    let move_px = i128::from(mark_px) - 60_000 * 100_000_000;
                    ensure!(position.pnl_decimals == 11, "decimals {}", position.pnl_decimals);
                    ensure!(position.pnl_mantissa == i128::from(position.lots) * move_px, "position {position:?}");
                }
                Ok(31)
            }
            Kind::OrderUpdate => {
                let open = frame["o"]["X"] != "FILLED";
                let id = frame["o"]["i"].to_string();
                let id = tt_market::OrderId::new(id.as_bytes()).map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
                let known = self.rig.engine.order(tt_market::Venue::BinanceUsdm, &id);
                ensure!(known.is_some() == open, "order {id:?} is {known:?}");
                Ok(41)
            }
            Kind::Delta => {
                for (side, key) in ["b", "a"].into_iter().enumerate() {
                    self.reference[side].extend(levels_of(&frame[key])?);
                    self.reference[side].retain(|_, qty| *qty != 0);
                }
                let top = board.top_of_book(self.rig.id).context("no book")?;
                let best = |found: Option<(&i64, &i64)>| found.map(|(px, qty)| (*px, *qty));
                ensure!(pair(top.bid) == best(self.reference[0].last_key_value()), "bid {:?}", top.bid);
                ensure!(pair(top.ask) == best(self.reference[1].first_key_value()), "ask {:?}", top.ask);
                Ok(1)
            }
        }
    }

    /// The reference's book after the frames that join: the snapshot and the deltas beyond it.
    fn reset_reference(&mut self) -> anyhow::Result<()> {
        self.reference = Default::default();
        let mut last_id = 0;
        for (_, frame) in self.before.iter().filter(|(_, frame)| super::source::is_snapshot(frame)) {
            let body = json(frame)?;
            last_id = body["lastUpdateId"].as_u64().context("no id")?;
            self.reference =
                [levels_of(&body["bids"])?.into_iter().collect(), levels_of(&body["asks"])?.into_iter().collect()];
        }
        for (_, frame) in self.before.iter().filter(|(_, frame)| is_of(frame, "depthUpdate")) {
            let frame = json(frame)?;
            if frame["u"].as_u64().context("no id")? >= last_id {
                for (side, key) in ["b", "a"].into_iter().enumerate() {
                    self.reference[side].extend(levels_of(&frame[key])?);
                    self.reference[side].retain(|_, qty| *qty != 0);
                }
            }
        }
        Ok(())
    }
}

fn levels_of(list: &Value) -> anyhow::Result<Vec<(i64, i64)>> {
    list.as_array().context("no list")?.iter().map(|entry| level(&entry[0], &entry[1])).collect()
}

impl Operation for State {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.rig.apply(&self.inputs[index], &mut Off)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        if index == 0 && self.kind == Kind::Delta {
            self.reset_reference()?;
        }
        let found = self.rig.apply(&self.inputs[index], &mut Off);
        let frame = json(&self.frames[index])?;
        let expected = self.compare(&frame).with_context(|| frame.to_string())?;
        ensure!(found == expected, "frame {index} gave {found}: {frame}");
        Ok(expected)
    }

    fn rewind(&mut self) {
        let start = Nanos(self.before.first().map_or(self.inputs[0].ts.0, |(ts, _)| *ts));
        if let Ok(mut rig) = Rig::new(start) {
            // A book that is not joined gives wrong answers, which end the bench.
            let _ = rig.join(&self.before);
            self.rig = rig;
        }
    }

    fn note(&self) -> Option<String> {
        let mean = self.levels as f64 / self.inputs.len() as f64;
        (self.kind == Kind::Delta).then(|| format!("{} frames, {mean:.1} levels each on average", self.inputs.len()))
    }

    fn parts(&self) -> Option<(&'static str, f64)> {
        let mean = self.levels as f64 / self.inputs.len() as f64;
        (self.kind == Kind::Delta).then_some(("state_ob_delta_per_level_ns", mean))
    }
}

/// 65,536 mark prices a random walk apart.
fn mark_prices(start: u64) -> Vec<(u64, Vec<u8>)> {
    let mut random = Random::new(215);
    let mut px = 6_000_000_000_000u64;
    let mut one = |index: u64| {
        px = px + random.below(20_000_000_000) as u64 - 10_000_000_000;
        let (whole, fraction) = (px / 100_000_000, px % 100_000_000);
        let ms = start / 1_000_000 + index;
        let frame = format!(
            "{{\"e\":\"markPriceUpdate\",\"E\":{ms},\"s\":\"BTCUSDT\",\"p\":\"{whole}.{fraction:08}\",\
             \"i\":\"{whole}.{fraction:08}\",\"P\":\"{whole}.00000000\",\"r\":\"0.00010000\",\"T\":{ms}}}"
        );
        (start + index * 1_000_000, frame.into_bytes())
    };
    (0..1 << 16).map(&mut one).collect()
}

/// 65,536 updates of 21,845 orders, of which up to 1,024 are open at once: new, partly filled, filled.
fn order_updates(start: u64) -> Vec<(u64, Vec<u8>)> {
    const OPEN: u64 = 1_024;
    let one = |index: u64| {
        let (round, step) = (index / (3 * OPEN), index % (3 * OPEN));
        let id = 8_000_000_000 + round * OPEN + step % OPEN;
        let (state, filled) =
            [("NEW", "0"), ("PARTIALLY_FILLED", "0.500"), ("FILLED", "2.000")][(step / OPEN) as usize];
        let ms = start / 1_000_000 + index;
        let order = format!(
            "\"s\":\"BTCUSDT\",\"S\":\"BUY\",\"q\":\"2.000\",\"p\":\"{}.5\",\"X\":\"{state}\",\"i\":{id},\"l\":\"0\",\
             \"z\":\"{filled}\",\"t\":0",
            60_000 + id % 977
        );
        let frame = format!("{{\"e\":\"ORDER_TRADE_UPDATE\",\"T\":{ms},\"E\":{ms},\"o\":{{{order}}}}}");
        (start + index * 1_000_000, frame.into_bytes())
    };
    (0..1 << 16).map(one).collect()
}
