//! A parsed book update to visible state.

use crate::report::{Sizes, Statistic};
use anyhow::ensure;
use tt_model::{Nanos, SplitMix64};
use tt_venue::Venue;
use tt_venue::event::{BookDelta, Event};

use super::rig::{BOOK, Rig, Setup, symbol};
use super::source::{Capture, usdm_updates};
use super::state::plural;
use super::updates::{Places, Updates};
use super::{Size, label};
use crate::harness::operation::{Label, Operation};

/// Updates of all instruments together at most, where there are several.
const INPUTS: usize = 40_000;

/// How many places of the session instruments begin at, how many levels a side they begin with, and pages for the books.
pub(super) const fn spread(instruments: usize) -> (usize, usize, usize) {
    match instruments {
        1 => (1, usize::MAX, 8_192),
        2..=100 => (16, 1_000, 65_536),
        _ => (16, 100, 3_000_000),
    }
}

struct Input {
    ts: Nanos,
    event: Event,
    instrument: u32,
    /// Its number among the session's updates.
    update: u32,
}

/// `Engine::handle_event` on the session's updates, each applied to the book that those before it left. With several
/// instruments each follows the session from one of its places on.
pub(super) struct Delta {
    rig: Rig,
    updates: &'static Updates,
    places: Places,
    inputs: Vec<Input>,
    size: Size,
    start: Nanos,
    origin: &'static str,
}

impl Delta {
    /// # Errors
    /// The source cannot be read.
    pub(super) fn new(size: Size) -> anyhow::Result<Self> {
        let (updates, capture) = (usdm_updates()?, Capture::usdm()?);
        let instruments = size.instruments;
        let (count, levels, pages) = spread(instruments);
        let places = updates.places(count, levels);
        let start = Nanos(capture.frames[0].0);
        let rig = Rig::new(start, Setup { pages, ..Setup::of(instruments) })?;
        // The first update of each is the one that joins it to its snapshot.
        let each = (INPUTS / instruments).clamp(1, places.apart - 1);
        let each = if instruments == 1 { places.apart - 1 } else { each };
        let names = (0..instruments).map(|number| symbol(number, instruments)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut order: Vec<usize> = (0..instruments).collect();
        let mut random = SplitMix64::new(551);
        let mut inputs = Vec::with_capacity(each * instruments);
        for round in 1..=each {
            random.shuffle(&mut order);
            for instrument in &order {
                let at = instrument % count * places.apart + round;
                let update = &updates.all[at];
                let event = Event::BookDelta(BookDelta { symbol: names[*instrument], ..update.delta });
                inputs.push(Input { ts: update.ts, event, instrument: *instrument as u32, update: at as u32 });
            }
        }
        Ok(Self { rig, updates, places, inputs, size, start, origin: capture.origin() })
    }

    pub(super) fn label(size: Size) -> Label {
        label(
            size.name,
            "depthUpdate applied to a book: levels, continuity, proof, top of book and ten levels published",
            5_510.0,
            &[(Statistic::P99, 16_340.0)],
        )
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let count = self.places.bodies.len();
        for number in 0..self.size.instruments {
            let place = number % count;
            self.rig.begin_book(number, self.start, &self.places.bodies[place].text)?;
            let update = &self.updates.all[place * self.places.apart];
            let event = Event::BookDelta(BookDelta { symbol: symbol(number, self.size.instruments)?, ..update.delta });
            let found = self.rig.apply(update.ts, &event, &update.buffer);
            ensure!(found == BOOK + number as u64, "instrument {number} does not join: {found}");
        }
        Ok(())
    }

    fn mean(&self) -> f64 {
        let levels = |input: &Input| self.updates.all[input.update as usize].buffer.levels().len();
        self.inputs.iter().map(levels).sum::<usize>() as f64 / self.inputs.len() as f64
    }
}

impl Operation for Delta {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        let Input { ts, event, update, .. } = &self.inputs[index];
        self.rig.apply(*ts, event, &self.updates.all[*update as usize].buffer)
    }

    fn ready(&self, index: usize) {
        let Input { event, update, .. } = &self.inputs[index];
        Rig::read(event, &self.updates.all[*update as usize].buffer);
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let found = self.run(index);
        let Input { instrument, update, .. } = self.inputs[index];
        ensure!(found == BOOK + u64::from(instrument), "update {update} of instrument {instrument} gave {found}");
        self.rig.compare_levels(instrument as usize, &self.places.after[update as usize])?;
        if index + 1 == self.inputs.len() {
            let counters = self.rig.engine.counters().venue(Venue::BinanceUsdm);
            ensure!(counters.closes() && counters.drops_total() == 0, "frames were dropped: {counters:?}");
            ensure!(counters.levels_dropped == 0 && counters.gaps == 0, "levels are missing: {counters:?}");
        }
        Ok(found)
    }

    fn rewind(&mut self) {
        // A book that does not begin gives wrong answers, which end the bench.
        let _ = self.begin();
    }

    fn note(&self) -> Option<String> {
        let (instruments, count) = (self.size.instruments, self.inputs.len());
        let (levels, places) = (self.places.len_min, self.places.bodies.len());
        Some(format!(
            "{}, {count} of them; {instruments} instrument{}, from {places} place{} of the session on with {levels} \
             levels a side or more",
            self.origin,
            plural(instruments),
            plural(places)
        ))
    }

    fn sizes(&self) -> Option<Sizes> {
        let levels = |input: &Input| self.updates.all[input.update as usize].buffer.levels().len();
        Sizes::of("levels a message", self.inputs.iter().map(levels).collect())
    }

    fn parts(&self) -> Option<(&'static str, f64)> {
        Some((self.size.per_level, self.mean()))
    }
}
