//! The running gate, as a program that embeds it starts it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use risk_gate::{
    Answer, BoardRow, Durability, DurableGate, GateConfig, Input, JournalConfig, LimitsFile, Ports, Quote, QuoteSource,
};
use tt_model::{InstrumentId, Nanos, OrderIntent, ReportKind, Verdict};
use tt_os::clock::unix_now;
use tt_risk::InstrumentState;

use super::{Line, SLOTS};
use crate::rows::gate::limits::{self, EQUITY, MIDDLE_PX};
use crate::rows::gate::rig;
use crate::rows::gate::stream::Order;

/// Bytes of a segment: a block has one.
const SEGMENT_BYTES: usize = 8 << 20;

const INSTRUMENT: InstrumentId = InstrumentId(0);

/// A book that is as new as the intent.
struct Book(AtomicU64);

impl QuoteSource for Book {
    fn quote(&self, _: InstrumentId) -> Option<Quote> {
        let now = Nanos(self.0.load(Ordering::Relaxed));
        let (bid_px, ask_px) = (MIDDLE_PX - 5, MIDDLE_PX + 5);
        Some(Quote { bid_px, ask_px, ts_recv: now, is_verified: true, proof_ts: now, update_id: 1 })
    }
}

/// The producer's ends.
pub(super) struct GateLine {
    ports: Ports,
    book: Arc<Book>,
    verdicts: Vec<Verdict>,
}

impl GateLine {
    /// The verdicts since the last [`end_all`](Self::end_all).
    pub(super) fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Ends every accepted order.
    ///
    /// # Errors
    /// The gate does not take the reports.
    pub(super) fn end_all(&mut self, intents: &[OrderIntent], orders: &[Order]) -> anyhow::Result<()> {
        for (intent, order) in intents.iter().zip(orders).filter(|(_, order)| !order.is_refused) {
            let report = order.report(intent.client_id, ReportKind::CANCELLED);
            ensure!(self.ports.reports.send(report).is_ok(), "no room for a report");
        }
        self.verdicts.clear();
        Ok(())
    }
}

impl Line for GateLine {
    #[inline(always)]
    fn send(&mut self, intent: OrderIntent) -> bool {
        self.book.0.store(intent.ts_ns, Ordering::Relaxed);
        self.ports.intents.send(intent).is_ok()
    }

    #[inline(always)]
    fn poll(&mut self) -> Option<Verdict> {
        let verdict = self.ports.verdicts.poll()?;
        self.verdicts.push(verdict);
        Some(verdict)
    }
}

/// Calls `use_line` with the ends of a new gate whose thread is pinned to `cpu`.
///
/// # Errors
/// That of `use_line`, or the gate cannot be made.
pub(super) fn with_gate<R>(
    spins: bool,
    cpu: usize,
    use_line: impl FnOnce(&mut GateLine) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let folder = rig::new_folder()?;
    let used = in_folder(&folder, spins, cpu, use_line);
    rig::remove_folder(&folder);
    used
}

fn in_folder<R>(
    folder: &Path,
    spins: bool,
    cpu: usize,
    use_line: impl FnOnce(&mut GateLine) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let limits = LimitsFile::parse(&limits::text(1, None)).context("the limits of the bench")?;
    let journal = JournalConfig {
        folder: folder.to_owned(),
        durability: Durability::Process,
        segment_bytes: Some(SEGMENT_BYTES),
    };
    let (mut gate, _) = DurableGate::open(&limits, &journal, unix_now().0)?;
    for input in [Input::State(INSTRUMENT, InstrumentState::Open), Input::Equity(0, EQUITY)] {
        let answer = gate.perform(unix_now().0, &input);
        ensure!(answer == Answer::Applied(Ok(())), "{input:?}: {answer:?}");
    }
    let book = Arc::new(Book(AtomicU64::new(unix_now().0)));
    let row = BoardRow::of(&limits, 0, INSTRUMENT).context("the row of the bench")?;
    let (running, ports) = risk_gate::start(GateConfig {
        gate,
        rows: vec![row],
        quotes: Some(Arc::clone(&book) as Arc<dyn QuoteSource>),
        ring_slots: SLOTS,
        sample_one_in: 64,
        cpu: Some(cpu),
        spins,
        senders: Vec::new(),
        dead_man: None,
    })?;
    let mut line = GateLine { ports, book, verdicts: Vec::with_capacity(SLOTS) };
    let used = use_line(&mut line);
    running.stop();
    used
}
