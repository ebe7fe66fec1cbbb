//! A recorded frame's bytes to visible state: the whole way but for the socket.

use crate::report::Sizes;
use anyhow::{Context as _, ensure};
use tt_meter::{Off, Probe, Sampler};
use tt_model::{Nanos, SplitMix64};
use tt_venue::Venue;

use super::delta::spread;
use super::rig::{Rig, Setup, digest, json, level, symbol_text};
use super::source::{Capture, is_of, is_snapshot, read, usdm_updates};
use super::state::plural;
use super::updates::{Places, Updates};
use super::{ENGINE, Size, label};
use crate::harness::operation::{Label, Operation};
use crate::harness::stages::{Pass, StageRows};

/// Frames of all instruments together at most, where there are several.
const INPUTS: usize = 120_000;

/// A frame for an instrument.
pub(super) struct Input {
    pub(super) ts: Nanos,
    pub(super) instrument: usize,
    pub(super) bytes: Vec<u8>,
    /// Its number in the session.
    at: usize,
}

/// The session's frames for `instruments`, each of which begins at one of `places` and follows the session from there;
/// they take turns in an order that is drawn. One instrument gets them as they are.
pub(super) fn inputs(capture: &Capture, updates: &Updates, places: &Places, instruments: usize) -> Vec<Input> {
    let count = places.bodies.len();
    let begins: Vec<usize> = (0..count).map(|place| updates.all[place * places.apart].at).collect();
    let ends = begins.iter().skip(1).copied().chain([capture.frames.len()]);
    let shortest = begins.iter().zip(ends).map(|(begin, end)| end - begin).min().unwrap_or(0);
    let each = if instruments == 1 { shortest } else { (INPUTS / instruments).clamp(1, shortest) };
    let mut order: Vec<usize> = (0..instruments).collect();
    let mut random = SplitMix64::new(144);
    let mut inputs = Vec::with_capacity(each * instruments);
    for round in 0..each {
        random.shuffle(&mut order);
        for instrument in &order {
            let at = begins[instrument % count] + round;
            let (ts, frame) = &capture.frames[at];
            // Own orders are numbered for the whole account: several instruments cannot have the same ones.
            let is_taken = !is_snapshot(frame) && (instruments == 1 || !is_of(frame, "ORDER_TRADE_UPDATE"));
            if is_taken {
                let bytes = renamed(frame, *instrument, instruments);
                inputs.push(Input { ts: Nanos(*ts), instrument: *instrument, bytes, at });
            }
        }
    }
    inputs
}

/// The frame with the instrument's symbol in the place of the session's.
fn renamed(frame: &[u8], instrument: usize, instruments: usize) -> Vec<u8> {
    if instruments == 1 {
        return frame.to_vec();
    }
    let text = String::from_utf8_lossy(frame);
    text.replace("\"BTCUSDT\"", &format!("\"{}\"", symbol_text(instrument, instruments))).into_bytes()
}

/// `Engine::handle_frame` on the session's frames.
pub(super) struct Recorded {
    rig: Rig,
    places: Places,
    inputs: Vec<Input>,
    /// The session's updates by the numbers of their frames.
    updates: &'static Updates,
    setup: Setup,
    start: Nanos,
    origin: &'static str,
}

impl Recorded {
    /// # Errors
    /// The source cannot be read.
    pub(super) fn new(size: Size) -> anyhow::Result<Self> {
        let (capture, updates) = (Capture::usdm()?, usdm_updates()?);
        let (count, levels, pages) = spread(size.instruments);
        let places = updates.places(count, levels);
        let inputs = inputs(capture, updates, &places, size.instruments);
        ensure!(!inputs.is_empty(), "no frame follows the snapshot");
        let setup = Setup { pages, ..Setup::of(size.instruments) };
        let start = Nanos(capture.frames[0].0);
        let rig = Rig::new(start, setup)?;
        Ok(Self { rig, places, inputs, updates, setup, start, origin: capture.origin() })
    }

    pub(super) fn label(size: Size) -> Label {
        let what = "every frame of the session in its order: bytes to published state";
        Label { published: Vec::new(), ..label(size.name, what, 0.0, &[]) }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        // Prices may not come again; the old engine's memory is free before the new one is made.
        self.rig = Rig::new(self.start, Setup::of(1))?;
        self.rig = Rig::new(self.start, self.setup)?;
        for number in 0..self.setup.instruments {
            let place = number % self.places.bodies.len();
            self.rig.begin_book(number, self.start, &self.places.bodies[place].text)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn handle(&mut self, index: usize, probe: &mut impl Probe) -> u64 {
        let input = &self.inputs[index];
        digest(self.rig.engine.handle_frame(input.ts, self.rig.connection, &input.bytes, probe))
    }

    fn compare(&self, input: &Input) -> anyhow::Result<()> {
        if is_of(&input.bytes, "bookTicker") {
            let frame = json(&input.bytes)?;
            let expected = [level(&frame["b"], &frame["B"])?, level(&frame["a"], &frame["A"])?];
            self.rig.compare_ticker(input.instrument, &expected)?;
        }
        if is_of(&input.bytes, "depthUpdate") {
            let update = self.updates.all.binary_search_by_key(&input.at, |update| update.at);
            let update = update.ok().context("the update is not in the session")?;
            self.rig.compare_levels(input.instrument, &self.places.after[update])?;
        }
        Ok(())
    }
}

/// The stages of a frame's pass.
pub(super) const STAGES: StageRows = StageRows {
    name: "market_stages",
    engine: ENGINE,
    prefix: "market_stage_",
    what: "Engine::handle_frame on every frame of the session, as end_to_end_recorded_ns",
    published: |_| None,
};

impl Pass for Recorded {
    #[inline(always)]
    fn run_watched(&mut self, index: usize, probe: &mut Sampler) -> u64 {
        self.handle(index, probe)
    }
}

impl Operation for Recorded {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.handle(index, &mut Off)
    }

    fn ready(&self, index: usize) {
        read(&self.inputs[index].bytes);
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let found = self.run(index);
        let input = &self.inputs[index];
        ensure!(found < 1_000_000, "dropped, {found}: {}", String::from_utf8_lossy(&input.bytes));
        self.compare(input).with_context(|| String::from_utf8_lossy(&input.bytes).into_owned())?;
        if index + 1 == self.inputs.len() {
            let counters = self.rig.engine.counters().venue(Venue::BinanceUsdm);
            ensure!(counters.closes() && counters.drops_total() == 0, "frames were dropped: {counters:?}");
            ensure!(counters.levels_dropped == 0 && counters.gaps == 0, "levels are missing: {counters:?}");
            ensure!(self.setup.instruments > 1 || counters.oracle_matches > 0, "no ticker proved the book");
        }
        Ok(found)
    }

    fn rewind(&mut self) {
        // A book that does not begin gives wrong answers, which end the bench.
        let _ = self.begin();
    }

    fn note(&self) -> Option<String> {
        let (instruments, count) = (self.setup.instruments, self.inputs.len());
        Some(format!("{}, {count} of them; {instruments} instrument{}", self.origin, plural(instruments)))
    }

    fn sizes(&self) -> Option<Sizes> {
        Sizes::of("bytes of a frame", self.inputs.iter().map(|input| input.bytes.len()).collect())
    }
}
