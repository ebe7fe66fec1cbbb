//! Reads a gate's journal: replay, explanation, CSV.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use risk_gate::{Answer, Input, JournalReader, JournalRecord, LimitsFile, Snapshot, open_journal};
use tt_model::{InstrumentId, OrderIntent, OrderSide, Report};
use tt_os::clock::WallTime;
use tt_os::stdout;
use tt_risk::{KillSwitch, Mark, Mode};

/// Performs the journal again; status 1 if an answer is another one.
pub(super) fn replay(folder: &Path) -> Result<ExitCode> {
    let segments = open_journal(folder)?;
    let (mut records, mut verdicts) = (0_u64, 0_u64);
    let replayed = risk_gate::replay(&segments, |_, record| {
        records += 1;
        verdicts += u64::from(matches!(record.answer, Answer::Verdict(_)));
        Ok(())
    })?;
    if let Some(divergence) = replayed.divergence {
        bail!("{}: {divergence}", folder.display());
    }
    let cut = match replayed.end.cut_bytes {
        0 => String::new(),
        bytes => format!("; {bytes} bytes of a record that is not whole are behind them"),
    };
    stdout::write(&format!("{records} records, {verdicts} verdicts: every answer is the recorded one{cut}\n"));
    Ok(ExitCode::SUCCESS)
}

/// Writes a snapshot of the journal.
pub(super) fn snapshot(folder: &Path) -> Result<ExitCode> {
    let Snapshot { records, performed, bytes } = risk_gate::snapshot(folder)?;
    stdout::write(&match bytes {
        0 => format!("{records} records: the last snapshot has all of them\n"),
        _ => format!("{records} records in {bytes} bytes; {performed} performed: every answer is the recorded one\n"),
    });
    Ok(ExitCode::SUCCESS)
}

/// Explains the verdict with a number.
pub(super) fn explain(folder: &Path, verdict: u64) -> Result<ExitCode> {
    let text =
        gate_text::explain_verdict(&open_journal(folder)?, verdict).with_context(|| folder.display().to_string())?;
    stdout::write(&text);
    Ok(ExitCode::SUCCESS)
}

/// Columns of the CSV file.
const COLUMNS: &str = "record,time_ns,input,producer,seq,account,strategy,symbol,client_id,side,kind,qty,px,trigger_px,\
                       execution_id,verdict,accept,reasons,worst_position,limits_version,generation,outcome";

/// Prints every record as a row of CSV (RFC 4180).
pub(super) fn export(folder: &Path) -> Result<ExitCode> {
    let segments = open_journal(folder)?;
    let mut reader = JournalReader::new(&segments)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut limits = None;
    let written = (|| {
        writeln!(out, "{COLUMNS}")?;
        while let Some(record) = reader.read()? {
            if let Input::Begin { limits: text } = &record.input {
                limits = Some(LimitsFile::parse(text)?);
            }
            if let Input::Load(loaded, _) = &record.input {
                limits = Some((**loaded).clone());
            }
            writeln!(out, "{}", row(&record, limits.as_ref()))?;
        }
        out.flush().context("standard output")
    })();
    stdout::ignore_broken_pipe(written)?;
    Ok(ExitCode::SUCCESS)
}

/// The cells of a row; those that an input does not have are empty.
#[derive(Default)]
struct Row {
    producer: String,
    seq: String,
    account: String,
    strategy: String,
    symbol: String,
    client_id: String,
    side: &'static str,
    kind: String,
    qty: String,
    px: String,
    trigger_px: String,
    execution_id: String,
    verdict: [String; 6],
    outcome: String,
}

fn row(record: &JournalRecord, limits: Option<&LimitsFile>) -> String {
    let mut row = Row::default();
    let input = row.input(&record.input, limits);
    row.answer(&record.input, &record.answer, limits);
    let Row { producer, seq, account, strategy, symbol, client_id, side, kind, .. } = row;
    let Row { qty, px, trigger_px, execution_id, verdict, outcome, .. } = row;
    let side = side.to_owned();
    let head = [record.number.to_string(), record.now_ns.to_string(), input.to_owned()];
    let cells = [producer, seq, account, strategy, symbol, client_id, side, kind, qty, px, trigger_px, execution_id];
    let cells = head.into_iter().chain(cells).chain(verdict).chain([outcome]);
    cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",")
}

/// Returns a cell with quotes if it needs them.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

const fn side_word(side: OrderSide) -> &'static str {
    match side {
        OrderSide::Buy => "buy",
        OrderSide::Sell => "sell",
    }
}

const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Active => "active",
        Mode::Reduce => "reduce",
        Mode::Kill => "kill",
    }
}

fn wall_text(WallTime { unix_ns, error_ns }: &WallTime) -> String {
    let error = error_ns.map_or_else(|| "unknown".to_owned(), |error_ns| format!("{error_ns} ns"));
    format!("{} ({unix_ns} ns), error {error}", risk_gate::utc_text(*unix_ns))
}

impl Row {
    /// Fills the cells of an input; returns its name.
    fn input(&mut self, input: &Input, limits: Option<&LimitsFile>) -> &'static str {
        match input {
            Input::Begin { .. } => "begin",
            Input::Restart => "restart",
            Input::Intent { producer, intent, .. } => {
                self.producer = producer.to_string();
                self.intent(intent, limits);
                "intent"
            }
            Input::Report(report) => {
                self.report(report, limits);
                "report"
            }
            Input::Mark(instrument, mark) => {
                self.mark(*instrument, mark, limits);
                "mark"
            }
            Input::Mode(switch, mode) => {
                self.switch(*switch, limits);
                mode_word(*mode)
            }
            Input::State(instrument, state) => {
                self.symbol = symbol(*instrument, limits);
                self.kind = format!("{state:?}").to_lowercase();
                "state"
            }
            Input::Resume(producer, last_seq) => {
                (self.producer, self.seq) = (producer.to_string(), last_seq.to_string());
                "resume"
            }
            Input::Refusals(producer, due_ns) => {
                (self.producer, self.kind) = (producer.to_string(), format!("none are left before {due_ns} ns"));
                "refusals"
            }
            Input::Adopt(account) => self.account("adopt", *account),
            Input::Reconcile(statement) => self.account("reconcile", statement.account),
            Input::Time => "time",
            Input::JournalLost(true) => "journal_lost",
            Input::JournalLost(false) => "journal_written",
            Input::Load(limits, _) => {
                self.kind = limits.hash_text();
                "load"
            }
            Input::Conversion(..) => "rate",
            Input::Balance(account, ..) => self.account("balance", *account),
            Input::Equity(account, _) => self.account("equity", *account),
            Input::Day => "day",
            Input::Suspended => "suspended",
            Input::Wall(wall) => {
                self.kind = wall_text(wall);
                "wall"
            }
            Input::CancelScope(scope) => {
                self.switch(*scope, limits);
                "cancel_scope"
            }
            Input::Enable(account, strategy) => {
                (self.account, self.strategy) = (account.to_string(), strategy.to_string());
                "enable"
            }
            Input::Limits(account, instrument, _) => {
                (self.account, self.symbol) = (account.to_string(), symbol(*instrument, limits));
                "limits"
            }
        }
    }

    /// Fills the cell of an account; returns the input's name.
    fn account(&mut self, name: &'static str, account: u16) -> &'static str {
        self.account = account.to_string();
        name
    }

    fn report(&mut self, report: &Report, limits: Option<&LimitsFile>) {
        self.account = report.account.to_string();
        self.client_id = report.client_id.to_string();
        self.side = side_word(report.side);
        self.kind = gate_text::REPORT_KINDS.get(usize::from(report.kind.0)).unwrap_or(&"malformed").to_string();
        self.execution_id = report.execution_id.to_string();
        self.instrument(report.instrument, limits, report.qty.0, report.px.0, report.trigger_px.0);
    }

    fn mark(&mut self, instrument: InstrumentId, mark: &Mark, limits: Option<&LimitsFile>) {
        self.kind = if mark.is_verified { "verified" } else { "unverified" }.to_owned();
        self.instrument(instrument, limits, 0, mark.ref_px.0, 0);
        self.qty.clear();
    }

    fn intent(&mut self, intent: &OrderIntent, limits: Option<&LimitsFile>) {
        let OrderIntent { seq, account, strategy, client_id, side, kind, qty, limit_px, trigger_px, .. } = *intent;
        self.seq = seq.to_string();
        self.account = account.to_string();
        self.strategy = strategy.to_string();
        self.client_id = client_id.to_string();
        self.side = side_word(side);
        self.kind = gate_text::INTENT_KINDS.get(usize::from(kind.0)).unwrap_or(&"malformed").to_string();
        self.instrument(intent.instrument, limits, qty.0, limit_px.0, trigger_px.0);
    }

    fn instrument(&mut self, id: InstrumentId, limits: Option<&LimitsFile>, qty: i64, px: i64, trigger_px: i64) {
        self.symbol = symbol(id, limits);
        if let Some(of) = limits.and_then(|limits| limits.instrument(id)) {
            (self.qty, self.px) = (of.qty_text(qty), of.px_text(px));
            self.trigger_px = if trigger_px == 0 { String::new() } else { of.px_text(trigger_px) };
        }
    }

    fn switch(&mut self, switch: KillSwitch, limits: Option<&LimitsFile>) {
        match switch {
            KillSwitch::Global => self.kind = "global".to_owned(),
            KillSwitch::Account(account) => self.account = account.to_string(),
            KillSwitch::Strategy(strategy) => self.strategy = strategy.to_string(),
            KillSwitch::Instrument(instrument) => self.symbol = symbol(instrument, limits),
        }
    }

    fn answer(&mut self, input: &Input, answer: &Answer, limits: Option<&LimitsFile>) {
        match answer {
            Answer::Verdict(verdict) => {
                let of = if let Input::Intent { intent, .. } = input { Some(intent.instrument) } else { None };
                let worst = of.and_then(|of| limits?.instrument(of));
                self.verdict = [
                    verdict.seq.to_string(),
                    verdict.accept.to_string(),
                    verdict.reasons.names().collect::<Vec<_>>().join(" "),
                    worst.map_or_else(String::new, |of| of.qty_text(verdict.worst_pos)),
                    verdict.limits_version.to_string(),
                    verdict.generation.to_string(),
                ];
            }
            Answer::Outcome(outcome) => self.outcome = outcome.name().to_owned(),
            Answer::Differences(found) => self.outcome = format!("{} differences", found.len()),
            Answer::Applied(Ok(())) => {}
            Answer::Applied(Err(error)) => self.outcome = error.to_string(),
        }
    }
}

/// Returns the symbol of an instrument, or its number.
fn symbol(id: InstrumentId, limits: Option<&LimitsFile>) -> String {
    let known = limits.and_then(|limits| limits.instrument(id));
    known.map_or_else(|| id.0.to_string(), |of| of.symbol.clone())
}
