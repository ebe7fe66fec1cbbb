//! Where the time of live frames goes: the engine's stages, and the rows of the published result.

use tt_market::{Applied, BookUpdate};
use tt_meter::{Clock, Histogram, Probe, Sampler, Stage, Stages, Stamp};

/// A row of the live result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Row {
    /// Ticker entry and candle mirror, from the parsed frame to visible state.
    StateTicker,
    /// Mark price, funding and the value of positions.
    StateMarkPrice,
    /// An own order's update.
    StateOrderUpdate,
    /// A book snapshot, applied and published.
    StateBookSnapshot,
    /// A book delta, applied and published.
    StateBookDelta,
    /// From the frame's bytes to a parsed event.
    Parse,
    /// From the WebSocket read that returned the frame to visible state.
    EndToEnd,
    /// From the return of `read(2)` that completed the frame to visible state.
    EndToEndFromRead,
}

impl Row {
    /// All rows.
    pub const ALL: [Self; 8] = [
        Self::StateTicker,
        Self::StateMarkPrice,
        Self::StateOrderUpdate,
        Self::StateBookSnapshot,
        Self::StateBookDelta,
        Self::Parse,
        Self::EndToEnd,
        Self::EndToEndFromRead,
    ];

    /// The row's published name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StateTicker => "state_ticker_ns",
            Self::StateMarkPrice => "state_mark_price_ns",
            Self::StateOrderUpdate => "state_order_update_ns",
            Self::StateBookSnapshot => "state_ob_snap_ns",
            Self::StateBookDelta => "state_ob_delta_ns",
            Self::Parse => "parse_ns",
            Self::EndToEnd => "end_to_end_ns",
            Self::EndToEndFromRead => "end_to_end_from_read_ns",
        }
    }
}

/// What a feed has timed, in cycles of its clock.
#[derive(Clone, Debug)]
pub struct Times {
    /// The engine's stages.
    pub stages: Stages,
    /// One distribution a [`Row`], in the order of [`Row::ALL`].
    pub rows: [Histogram; Row::ALL.len()],
}

impl Default for Times {
    fn default() -> Self {
        Self { stages: Stages::default(), rows: [const { Histogram::new() }; Row::ALL.len()] }
    }
}

impl Times {
    /// Adds what another feed has timed.
    pub fn merge(&mut self, other: &Self) {
        self.stages.merge(&other.stages);
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            row.merge(more);
        }
    }
}

/// The probe of one feed: the sampler of stages, and on every so manieth pass the two parts of the published rows.
#[derive(Debug)]
pub(super) struct FrameTimings {
    clock: Clock,
    sampler: Sampler,
    every: u32,
    left: u32,
    begun: Stamp,
    parsed: Stamp,
    rows: Box<[Histogram; Row::ALL.len()]>,
}

impl FrameTimings {
    pub(super) fn new(clock: Clock, one_in: u32) -> Self {
        let every = if one_in == 0 { 64 } else { one_in };
        Self {
            clock,
            sampler: Sampler::new(clock, every),
            every,
            left: every,
            begun: Stamp::default(),
            parsed: Stamp::default(),
            rows: Box::new(Times::default().rows),
        }
    }

    /// What has been timed up to now.
    pub(super) fn times(&self) -> Times {
        Times { stages: *self.sampler.stages(), rows: *self.rows }
    }

    /// The WebSocket read has just returned a frame.
    pub(super) fn received(&mut self) -> Stamp {
        if self.left == 0 {
            self.left = self.every;
        }
        self.left -= 1;
        self.clock.end()
    }

    /// The frame's state is visible: it was received at `received` by a `read(2)` that returned at `read`.
    pub(super) fn visible(&mut self, received: Stamp, read: Stamp, applied: Option<Applied>) {
        let now = self.clock.end();
        let Some(applied) = applied else { return };
        self.record(Row::EndToEnd, now.since(received));
        self.record(Row::EndToEndFromRead, now.since(read));
        if self.left == 0 && self.parsed.0 > self.begun.0 {
            self.record(Row::Parse, self.parsed.since(self.begun));
            if let Some(row) = state_row(applied) {
                self.record(row, now.since(self.parsed));
            }
        }
    }

    fn record(&mut self, row: Row, cycles: u64) {
        self.rows[row as usize].record(cycles);
    }
}

const fn state_row(applied: Applied) -> Option<Row> {
    match applied {
        Applied::Book { update: BookUpdate::Snapshot, .. } => Some(Row::StateBookSnapshot),
        Applied::Book { update: BookUpdate::Delta, .. } => Some(Row::StateBookDelta),
        Applied::Ticker(_) => Some(Row::StateTicker),
        Applied::MarkPrice(_) => Some(Row::StateMarkPrice),
        Applied::Orders => Some(Row::StateOrderUpdate),
        Applied::Trades
        | Applied::Candles
        | Applied::Liquidations
        | Applied::Account
        | Applied::Book { update: BookUpdate::Buffered | BookUpdate::Compared, .. }
        | Applied::Status { .. }
        | Applied::ListChanged
        | Applied::Session(_)
        | Applied::Control => None,
    }
}

impl Probe for FrameTimings {
    #[inline]
    fn begin(&mut self) {
        self.sampler.begin();
        if self.left == 0 {
            self.begun = self.clock.end();
            self.parsed = Stamp::default();
        }
    }

    #[inline]
    fn mark(&mut self, stage: Stage) {
        self.sampler.mark(stage);
        if self.left == 0 && stage == Stage::Parse {
            self.parsed = self.clock.end();
        }
    }

    #[inline]
    fn end(&mut self) {
        self.sampler.end();
    }
}
