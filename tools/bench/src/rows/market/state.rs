//! A parsed ticker, mark price or own order's update to visible state.

use crate::report::Statistic;
use anyhow::{Context as _, ensure};
use serde_json::Value;
use tt_model::{InstrumentId, Nanos, SplitMix64};
use tt_venue::Venue;
use tt_venue::event::{Event, EventBuffer, OrderId};

use super::rig::{MARK_PRICE, ORDERS, Parsed, Rig, Setup, TICKER, json, level, parsed, steps, symbol, symbol_text};
use super::source::{Capture, is_of};
use super::updates::Pair;
use super::{Size, label};
use crate::harness::operation::{Label, Operation};

/// Positions in each instrument that a mark price values.
const POSITIONS: usize = 3;
/// Inputs at least, where frames are made or used again for another instrument.
const INPUTS: usize = 1 << 16;

/// The kind of the applied frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the candle of one timeframe.
    Ticker,
    /// Without candles.
    TickerAlone,
    MarkPrice,
    OrderUpdate,
}

impl Kind {
    fn label(self, name: &'static str) -> Label {
        match self {
            Self::Ticker => label(
                name,
                "bookTicker applied: ticker entry, candle of one timeframe, both published",
                310.0,
                &[(Statistic::P95, 980.0), (Statistic::P99, 1_950.0), (Statistic::P999, 4_200.0)],
            ),
            Self::TickerAlone => Label {
                published: Vec::new(),
                ..label(name, "bookTicker applied: ticker entry, published; no candles", 0.0, &[])
            },
            Self::MarkPrice => label(
                name,
                "markPriceUpdate applied: mark, index, funding, exact unrealised PnL of three positions, all published",
                2_150.0,
                &[(Statistic::P99, 3_730.0)],
            ),
            Self::OrderUpdate => label(
                name,
                "ORDER_TRADE_UPDATE applied: new, partly filled, filled, with the executions",
                3_690.0,
                &[(Statistic::P99, 13_860.0)],
            ),
        }
    }

    fn setup(self, instruments: usize) -> Setup {
        let setup = Setup::of(instruments);
        match self {
            Self::Ticker | Self::OrderUpdate => setup,
            Self::TickerAlone => Setup { has_candles: false, ..setup },
            Self::MarkPrice => Setup { positions: POSITIONS, ..setup },
        }
    }
}

/// Checks the effect of a frame.
enum Expected {
    Ticker([Pair; 2]),
    /// The mark price in units of `1e-8`.
    MarkPrice(i64),
    /// The order, and whether it is open.
    Order(OrderId, bool),
}

struct Input {
    ts: Nanos,
    event: Event,
    instrument: u32,
    /// Its number among the buffers.
    buffer: u32,
    expected: u32,
}

/// `Engine::handle_event` on parsed frames of one kind, in their order, each applied to the state that those before it
/// left.
pub(super) struct State {
    kind: Kind,
    rig: Rig,
    inputs: Vec<Input>,
    buffers: Vec<EventBuffer>,
    expected: Vec<Expected>,
    /// From one replay to the next.
    span: Nanos,
    /// Inputs done since the last rewind.
    done: usize,
    origin: &'static str,
}

impl State {
    /// # Errors
    /// The source cannot be read, or has no such frames.
    pub(super) fn new(kind: Kind, size: Size) -> anyhow::Result<Self> {
        let start = Capture::usdm()?.frames[0].0;
        let mut state = Self {
            kind,
            rig: Rig::new(Nanos(start), kind.setup(size.instruments))?,
            inputs: Vec::new(),
            buffers: Vec::new(),
            expected: Vec::new(),
            span: Nanos(0),
            done: 0,
            origin: "made for this bench",
        };
        match kind {
            Kind::Ticker | Kind::TickerAlone => state.take_tickers(size.instruments)?,
            Kind::MarkPrice => state.take_all(mark_prices(start, size.instruments))?,
            Kind::OrderUpdate => state.take_all(order_updates(start, size.instruments))?,
        }
        let (first, last) = (&state.inputs[0], &state.inputs[state.inputs.len() - 1]);
        state.span = Nanos(last.ts.0 - first.ts.0 + 1_000_000);
        state.done = state.inputs.len();
        Ok(state)
    }

    pub(super) fn label(kind: Kind, size: Size) -> Label {
        kind.label(size.name)
    }

    /// The session's tickers; with several instruments each is for one that is drawn.
    fn take_tickers(&mut self, instruments: usize) -> anyhow::Result<()> {
        let capture = Capture::usdm()?;
        self.origin = capture.origin();
        self.buffers.push(EventBuffer::new(1, 1));
        let mut scratch = EventBuffer::new(10_240, 16);
        let mut tickers = Vec::new();
        for (ts, frame) in capture.frames.iter().filter(|(_, frame)| is_of(frame, "bookTicker")) {
            let Parsed { event, .. } = parsed(*ts, frame, &mut scratch)?;
            let frame = json(frame)?;
            self.expected.push(Expected::Ticker([level(&frame["b"], &frame["B"])?, level(&frame["a"], &frame["A"])?]));
            tickers.push((*ts, event));
        }
        let (first, last) = (tickers.first().context("no ticker in the session")?.0, tickers[tickers.len() - 1].0);
        let count = if instruments == 1 { tickers.len() } else { INPUTS };
        let names = (0..instruments).map(|number| symbol(number, instruments)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut random = SplitMix64::new(310);
        for index in 0..count {
            let (round, at) = (index / tickers.len(), index % tickers.len());
            let instrument = random.index(instruments);
            let (ts, mut event) = tickers[at];
            if let Event::BookTicker(ticker) = &mut event {
                ticker.symbol = names[instrument];
            }
            let mut input =
                Input { ts: Nanos(ts), event, instrument: instrument as u32, buffer: 0, expected: at as u32 };
            input.shift(Nanos(round as u64 * (last - first + 1_000_000)));
            self.inputs.push(input);
        }
        Ok(())
    }

    fn take_all(&mut self, frames: Vec<(u64, usize, Vec<u8>)>) -> anyhow::Result<()> {
        let mut scratch = EventBuffer::new(16, 16);
        self.buffers.push(EventBuffer::new(1, 1));
        for (ts, instrument, frame) in frames {
            let Parsed { ts, event, buffer } = parsed(ts, &frame, &mut scratch)?;
            let frame = json(&frame)?;
            let buffer = if self.kind == Kind::OrderUpdate {
                self.buffers.push(buffer);
                self.buffers.len() - 1
            } else {
                0
            };
            self.expected.push(expected(self.kind, &frame)?);
            let (buffer, expected) = (buffer as u32, self.expected.len() as u32 - 1);
            self.inputs.push(Input { ts, event, instrument: instrument as u32, buffer, expected });
        }
        Ok(())
    }

    fn apply(&mut self, index: usize) -> u64 {
        let Input { ts, event, buffer, .. } = &self.inputs[index];
        self.rig.apply(*ts, event, &self.buffers[*buffer as usize])
    }

    /// The state that readers see, against what the frame says.
    fn compare(&self, input: &Input) -> anyhow::Result<u64> {
        let board = self.rig.engine.board();
        let (number, id) = (input.instrument as usize, InstrumentId(input.instrument));
        match &self.expected[input.expected as usize] {
            Expected::Ticker(expected) => {
                self.rig.compare_ticker(number, expected)?;
                let candle = board.candle(id, 0);
                let close = candle.map(|candle| candle.close_px.0);
                let wanted = (self.kind == Kind::Ticker).then_some(expected[0].0);
                ensure!(close == wanted, "the candle of instrument {number} is {candle:?}");
                Ok(TICKER + u64::from(id.0))
            }
            Expected::MarkPrice(mark_px) => {
                for slot in (0..POSITIONS).map(|leg| number + leg * self.rig.instruments) {
                    let position = board.position(slot).context("no position")?;
                    let move_px = i128::from(*mark_px) - 60_000 * 100_000_000;
                    ensure!(position.pnl_decimals == 11, "decimals {}", position.pnl_decimals);
                    ensure!(position.pnl_mantissa == i128::from(position.lots) * move_px, "position {position:?}");
                }
                let shown = board.mark_price(id).context("no mark price")?;
                ensure!(shown.mark_px.mantissa == *mark_px, "mark price {shown:?}");
                Ok(MARK_PRICE + u64::from(id.0))
            }
            Expected::Order(order_id, is_open) => {
                let known = self.rig.engine.order(Venue::BinanceUsdm, order_id);
                ensure!(known.is_some() == *is_open, "order {order_id:?} is {known:?}");
                ensure!(known.is_none_or(|order| order.instrument == Some(id)), "order {known:?}");
                Ok(ORDERS)
            }
        }
    }
}

fn expected(kind: Kind, frame: &Value) -> anyhow::Result<Expected> {
    if kind == Kind::MarkPrice {
        return Ok(Expected::MarkPrice(steps(&frame["p"], 8)?));
    }
    let id = OrderId::new(frame["o"]["i"].to_string().as_bytes()).map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
    Ok(Expected::Order(id, frame["o"]["X"] != "FILLED"))
}

impl Input {
    /// Takes it to a later time.
    fn shift(&mut self, by: Nanos) {
        self.ts = self.ts.saturating_add(by);
        match &mut self.event {
            Event::BookTicker(ticker) => ticker.ts_event = ticker.ts_event.saturating_add(by),
            Event::MarkPrice(mark) => mark.ts_event = mark.ts_event.saturating_add(by),
            Event::Tickers
            | Event::Trades
            | Event::BookDelta(_)
            | Event::BookSnapshot(_)
            | Event::BookOrders(_)
            | Event::OrderUpdates
            | Event::Account
            | Event::Candles
            | Event::Liquidations
            | Event::OrderList(_)
            | Event::Control(_) => {}
        }
    }
}

impl Operation for State {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.done = index + 1;
        let Input { ts, event, buffer, .. } = &self.inputs[index];
        self.rig.apply(*ts, event, &self.buffers[*buffer as usize])
    }

    fn ready(&self, index: usize) {
        let Input { event, buffer, .. } = &self.inputs[index];
        Rig::read(event, &self.buffers[*buffer as usize]);
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        self.done = index + 1;
        let found = self.apply(index);
        let input = &self.inputs[index];
        let expected = self.compare(input).with_context(|| format!("input {index}: {:?}", input.event))?;
        ensure!(found == expected, "input {index} gave {found}: {:?}", input.event);
        if index + 1 == self.inputs.len() {
            let counters = self.rig.engine.counters().venue(Venue::BinanceUsdm);
            ensure!(counters.closes() && counters.drops_total() == 0, "frames were dropped: {counters:?}");
            ensure!(counters.late_prices == 0, "{} prices came late", counters.late_prices);
        }
        Ok(expected)
    }

    /// The frames come again, as much later as all of them took.
    fn rewind(&mut self) {
        // Orders that are open are filled first.
        for index in self.done..self.inputs.len() {
            self.apply(index);
        }
        self.done = 0;
        let span = self.span;
        self.inputs.iter_mut().for_each(|input| input.shift(span));
    }

    fn note(&self) -> Option<String> {
        let instruments = self.rig.instruments;
        Some(format!("{}, {} of them; {instruments} instrument{}", self.origin, self.inputs.len(), plural(instruments)))
    }
}

pub(super) const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Mark prices a random walk apart, each for an instrument that is drawn.
fn mark_prices(start: u64, instruments: usize) -> Vec<(u64, usize, Vec<u8>)> {
    let mut random = SplitMix64::new(215);
    let mut px = 6_000_000_000_000u64;
    let mut one = |index: u64| {
        px = px + random.index(20_000_000_000) as u64 - 10_000_000_000;
        let instrument = random.index(instruments);
        let (whole, fraction) = (px / 100_000_000, px % 100_000_000);
        let (ms, symbol) = (start / 1_000_000 + index, symbol_text(instrument, instruments));
        let frame = format!(
            "{{\"e\":\"markPriceUpdate\",\"E\":{ms},\"s\":\"{symbol}\",\"p\":\"{whole}.{fraction:08}\",\
             \"i\":\"{whole}.{fraction:08}\",\"P\":\"{whole}.00000000\",\"r\":\"0.00010000\",\"T\":{ms}}}"
        );
        (start + index * 1_000_000, instrument, frame.into_bytes())
    };
    (0..INPUTS as u64).map(&mut one).collect()
}

/// Updates of 21,504 orders, of which up to 1,024 are open at once: new, partly filled, filled.
fn order_updates(start: u64, instruments: usize) -> Vec<(u64, usize, Vec<u8>)> {
    const OPEN: u64 = 1_024;
    let mut random = SplitMix64::new(369);
    let drawn: Vec<usize> = (0..OPEN).map(|_| random.index(instruments)).collect();
    let one = |index: u64| {
        let (round, step) = (index / (3 * OPEN), index % (3 * OPEN));
        let id = 8_000_000_000 + round * OPEN + step % OPEN;
        let instrument = drawn[(step % OPEN) as usize];
        let (kind, state, last, filled) = [
            ("NEW", "NEW", "0", "0"),
            ("TRADE", "PARTIALLY_FILLED", "0.500", "0.500"),
            ("TRADE", "FILLED", "1.500", "2.000"),
        ][(step / OPEN) as usize];
        let (ms, symbol) = (start / 1_000_000 + index, symbol_text(instrument, instruments));
        let trade = if last == "0" { 0 } else { 900_000_000 + index };
        let px = 60_000 + id % 977;
        let order = format!(
            "\"s\":\"{symbol}\",\"c\":\"x{id}\",\"S\":\"BUY\",\"o\":\"LIMIT\",\"f\":\"GTC\",\"q\":\"2.000\",\"p\":\"{px}.5\",\
             \"ap\":\"{px}.5\",\"sp\":\"0\",\"x\":\"{kind}\",\"X\":\"{state}\",\"i\":{id},\"l\":\"{last}\",\"z\":\"{filled}\",\
             \"L\":\"{px}.5\",\"n\":\"0.01250\",\"N\":\"USDT\",\"T\":{ms},\"t\":{trade},\"m\":true"
        );
        let frame = format!("{{\"e\":\"ORDER_TRADE_UPDATE\",\"T\":{ms},\"E\":{ms},\"o\":{{{order}}}}}");
        (start + index * 1_000_000, instrument, frame.into_bytes())
    };
    (0..INPUTS as u64 / (3 * OPEN) * (3 * OPEN)).map(one).collect()
}
