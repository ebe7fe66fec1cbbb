//! A verdict in plain words: the intent, the exposure, the mark and the limits at its time, and why.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use gate_limits::{Instrument, LimitsFile};
use risk_gate::{Answer, Input, JournalReader, JournalRecord, Replay};
use tt_journal::segments::Disk;
use tt_model::{Breach, IntentKind, Notes, Notional, OrderIntent, OrderSide, Qty, Verdict};
use tt_risk::tree::{Finding, Node};
use tt_risk::{Exposure, InstrumentLimits, InstrumentRules, KillSwitch, Limits, Mark, Mode};

/// The words for the kinds of intents, by number.
const KINDS: [&str; 6] = ["limit", "market", "cancel", "replace", "stop-market", "stop-limit"];

/// What an intent was judged by.
struct Scene<'a> {
    intent: &'a OrderIntent,
    file: &'a LimitsFile,
    /// The reasons of the nodes.
    findings: Vec<Finding>,
    verdict: &'a Verdict,
    of: &'a Instrument,
    held: Exposure,
    mark: Option<(u64, Mark)>,
    limits: Option<Limits>,
    market: InstrumentLimits,
    rules: InstrumentRules,
    is_used: bool,
    /// The clock of temporary limits when those in force began.
    limits_ns: u64,
    /// The scopes in reduce mode that the intent is in.
    reduced: Vec<String>,
}

/// Explains the verdict with a number: performs the journal on `disk` up to it.
///
/// # Errors
/// The journal is broken, gives another answer before, or has no such verdict.
pub fn explain_verdict<D: Disk>(disk: &D, verdict: u64) -> Result<String> {
    let mut reader = JournalReader::new(disk)?;
    let mut before: Option<Replay> = None;
    while let Some(record) = reader.read()? {
        let is_it = matches!(&record.answer, Answer::Verdict(of) if of.seq == verdict);
        match &mut before {
            Some(before) if is_it => {
                return explain(before, &record)?.with_context(|| format!("no verdict {verdict}"));
            }
            Some(before) => {
                if let Some(divergence) = before.step(&record) {
                    bail!("{divergence}");
                }
            }
            None => before = Some(Replay::begin(&record)?),
        }
    }
    bail!("no verdict {verdict}")
}

/// Explains `record`, a verdict, with the gate before it, whose time passes. Returns `None` if it is no verdict.
///
/// # Errors
/// The journal's limits are not valid in this version.
pub fn explain(before: &mut Replay, record: &JournalRecord) -> Result<Option<String>> {
    let (Input::Intent { intent, producer, .. }, Answer::Verdict(verdict)) = (&record.input, &record.answer) else {
        return Ok(None);
    };
    let OrderIntent { account, instrument, strategy, client_id, seq, ts_ns, .. } = *intent;
    let mut out = String::new();
    let word = if verdict.accept == 1 { "accepted" } else { "rejected" };
    writeln!(out, "verdict {}: {word}, record {}, at {} ns", verdict.seq, record.number, record.now_ns)?;
    let place = format!("account {account}, strategy {strategy}, client id {client_id}");
    // What is held, before old marks and ids are forgotten.
    let held = before.gate.exposure(account, instrument).unwrap_or_default();
    let is_used = before.gate.open_order(account, client_id).is_some();
    let mut findings = Vec::new();
    before.gate.findings(record.now_ns, *producer, intent, |finding| findings.push(finding));
    let Some(of) = before.limits.instrument(instrument) else {
        writeln!(out, "intent: instrument {} is not in the limits; {place}", instrument.0)?;
        return Ok(Some(out));
    };
    let changed = before.changed_limits.get(&(account, instrument.0)).copied();
    let limits = changed.or(before.limits.limits_of(account, instrument, before.limits_ns));
    let scene = Scene {
        intent,
        file: &before.limits,
        findings,
        verdict,
        of,
        held,
        mark: before.marks.get(&instrument.0).copied(),
        limits,
        market: of.all_accounts(),
        rules: of.rules(),
        is_used,
        limits_ns: before.limits_ns,
        reduced: reduced(before, intent, of),
    };
    writeln!(out, "intent: {}; {place}", scene.asked())?;
    let age_ns = record.now_ns.saturating_sub(ts_ns);
    writeln!(out, "        number {seq} of producer {producer}, {age_ns} ns old")?;
    writeln!(out, "exposure before: {}", scene.exposure())?;
    writeln!(out, "mark: {}", scene.mark_text(record.now_ns))?;
    writeln!(out, "limits, version {}: {}", verdict.limits_version, scene.limits_text())?;
    scene.write_reasons(&mut out, record.now_ns).context("text")?;
    Ok(Some(out))
}

/// Returns the scopes in reduce mode that `intent` is in.
fn reduced(before: &Replay, intent: &OrderIntent, of: &Instrument) -> Vec<String> {
    let OrderIntent { account, strategy, instrument, .. } = *intent;
    let controls = before.gate.controls();
    let scopes = [
        (KillSwitch::Global, before.limits.node_place(Node::Firm)),
        (KillSwitch::Account(account), before.limits.node_place(Node::Account(account))),
        (KillSwitch::Strategy(strategy), before.limits.node_place(Node::Strategy { account, strategy })),
        (KillSwitch::Instrument(instrument), of.symbol.clone()),
    ];
    let is_reduced = |(switch, _): &(KillSwitch, String)| controls.mode(*switch) == Mode::Reduce;
    scopes.into_iter().filter(is_reduced).map(|(_, place)| place).collect()
}

impl Scene<'_> {
    fn asked(&self) -> String {
        let OrderIntent { kind, side, qty, limit_px, trigger_px, .. } = *self.intent;
        let word = KINDS.get(usize::from(kind.0)).copied().unwrap_or("unknown kind");
        let symbol = &self.of.symbol;
        if kind == IntentKind::CANCEL {
            return format!("cancel in {symbol}");
        }
        let side = if side == OrderSide::Buy { "buy" } else { "sell" };
        let mut text = format!("{word} {side} {} {symbol}", self.of.qty_text(qty.0));
        if !kind.is_market() {
            text += &format!(" at {}", self.of.px_text(limit_px.0));
        }
        if trigger_px.0 != 0 {
            text += &format!(", trigger {}", self.of.px_text(trigger_px.0));
        }
        text
    }

    fn exposure(&self) -> String {
        let Exposure { position, open_buy_qty, open_sell_qty, open_orders } = self.held;
        let [position, buys, sells] = [position, open_buy_qty, open_sell_qty].map(|qty| self.of.qty_text(qty.0));
        format!("position {position}, open buys {buys}, open sells {sells}, {open_orders} open orders")
    }

    fn mark_text(&self, now_ns: u64) -> String {
        let Some((_, mark)) = self.mark else { return "none".to_owned() };
        let [reference, bid, ask] = [mark.ref_px, mark.bid_px, mark.ask_px].map(|px| self.of.px_text(px.0));
        let proof = if mark.is_verified { "verified" } else { "not verified" };
        let age = match now_ns.checked_sub(mark.ts_ns) {
            Some(age_ns) => format!("{age_ns} ns old"),
            None => "from the future".to_owned(),
        };
        format!("{reference} (bid {bid}, ask {ask}), {age}, {proof}")
    }

    fn limits_text(&self) -> String {
        let Some(limits) = &self.limits else { return "none for this account in this instrument".to_owned() };
        let qty = |qty: Qty| self.of.qty_text(qty.0);
        let value = |value: Notional| self.of.notional_text(value.0);
        format!(
            "quantity {} to {}, value {} to {}, position -{} to {}, open quantity {} per side, {} open orders",
            qty(limits.qty_min),
            qty(limits.qty_max),
            value(limits.notional_min),
            value(limits.notional_max),
            qty(limits.position_short_max),
            qty(limits.position_long_max),
            qty(limits.open_qty_max),
            limits.open_orders_max
        )
    }

    fn write_reasons(&self, out: &mut String, now_ns: u64) -> std::fmt::Result {
        let names = Breach::NAMES.iter().filter(|(_, reason)| self.verdict.reasons.contains(*reason));
        for (name, reason) in names {
            let mut findings = self.findings.iter().filter(|finding| finding.reason == *reason).peekable();
            if findings.peek().is_none() {
                writeln!(out, "{name}: {}", self.sentence(*reason, now_ns))?;
            }
            for finding in findings {
                let node = finding.node.map_or_else(|| self.of.symbol.clone(), |node| self.file.node_place(node));
                writeln!(out, "{name}: {node}: {}", self.finding_text(finding))?;
            }
        }
        if self.verdict.reasons == Breach::NONE {
            writeln!(out, "no check was breached")?;
        }
        if self.verdict.notes.contains(Notes::ORDER_UNKNOWN) {
            writeln!(out, "note: the gate knows no such open order; the venue may")?;
        }
        if self.verdict.notes.contains(Notes::FORCED) {
            writeln!(out, "note: an order would have been rejected; a cancel passes")?;
        }
        Ok(())
    }

    /// Says why a reason was found, with value and limit where both are numbers.
    fn sentence(&self, reason: Breach, now_ns: u64) -> String {
        match reason {
            Breach::KILL_GLOBAL => "all orders are killed".to_owned(),
            Breach::KILL_ACCOUNT => format!("account {} is killed", self.intent.account),
            Breach::KILL_STRATEGY => format!("strategy {} is killed", self.intent.strategy),
            Breach::KILL_INSTRUMENT => format!("{} is killed", self.of.symbol),
            Breach::REDUCE_ONLY_STATE => {
                format!("only orders that reduce the position pass (reduce mode of {})", self.reduced.join(" and of "))
            }
            Breach::EXPIRED => {
                let age_ns = i128::from(now_ns) - i128::from(self.intent.ts_ns);
                let text = format!("the intent is {age_ns} ns old, its time to live is {} ms", self.intent.ttl_ms);
                self.with_limit(text, reason, None)
            }
            Breach::MD_STALE | Breach::BOOK_UNVERIFIED | Breach::COLLAR_REF | Breach::COLLAR_TOUCH => {
                self.about_market(reason, now_ns)
            }
            Breach::QTY_MIN | Breach::NOTIONAL_MIN => self.about_size(reason),
            Breach::DUP_ID if self.is_used => format!("client id {} is of an open order", self.intent.client_id),
            Breach::DUP_ID => format!("client id {} was used a moment ago", self.intent.client_id),
            _ => self.with_limit(about(reason).to_owned(), reason, None),
        }
    }

    /// Adds the limit of a reason that has no value, if it has a limit.
    fn with_limit(&self, text: String, reason: Breach, node: Option<Node>) -> String {
        match self.file.limit_words(self.limits_ns, reason, (node, self.intent.instrument)) {
            Some(limit) => format!("{text}, the limit is {limit}"),
            None => text,
        }
    }

    fn about_market(&self, reason: Breach, now_ns: u64) -> String {
        let Self { market, rules, .. } = self;
        let px = self.of.px_text(self.intent.limit_px.0);
        match (reason, self.mark) {
            (Breach::MD_STALE, Some((_, mark))) => {
                let age_ns = i128::from(now_ns) - i128::from(mark.ts_ns);
                format!("the mark is {age_ns} ns old, allowed are 0 to {} ns", market.mark_age_max_ns)
            }
            (Breach::BOOK_UNVERIFIED, Some((_, mark))) if mark.is_verified => {
                let age_ns = i128::from(now_ns) - i128::from(mark.proof_ns);
                let age_max_ns = rules.proof_age_max_ns.unwrap_or(u64::MAX);
                format!("the book was proved {age_ns} ns ago, allowed are 0 to {age_max_ns} ns")
            }
            (Breach::MD_STALE, None) => "there is no mark".to_owned(),
            (Breach::COLLAR_REF, Some((_, mark))) => {
                let reference = self.of.px_text(mark.ref_px.0);
                format!("the price {px} is more than {} bps from the mark {reference}", market.collar_bps)
            }
            (Breach::COLLAR_TOUCH, Some((_, mark))) => {
                let is_buy = self.intent.side == OrderSide::Buy;
                let touch = self.of.px_text(if is_buy { mark.ask_px.0 } else { mark.bid_px.0 });
                let bps = rules.touch_bps.unwrap_or(0);
                format!("the price {px} is more than {bps} bps beyond the opposite touch {touch}")
            }
            _ => about(reason).to_owned(),
        }
    }

    /// Says why a node has a reason, with value and limit.
    fn finding_text(&self, finding: &Finding) -> String {
        let Some([value, limit]) = finding.values else {
            return self.with_limit(about_node(finding.reason).to_owned(), finding.reason, finding.node);
        };
        let texts = |text: &dyn Fn(i128) -> String| (text(value), text(limit));
        let lots = |lots: i128| self.of.qty_text(i64::try_from(lots).unwrap_or(i64::MAX));
        let money = |currency: u16| move |amount: i128| self.file.amount_text(currency, amount);
        let (what, (value, limit)) = match finding.reason {
            Breach::QTY_MAX => ("the quantity is", texts(&lots)),
            Breach::NOTIONAL_MAX => ("the value is", texts(&|value| self.of.notional_text(value))),
            Breach::POS_LONG => ("with all open buys filled the position would be", texts(&lots)),
            Breach::POS_SHORT => ("with all open sells filled the position would be", texts(&|short| lots(-short))),
            Breach::OPEN_QTY => ("the open quantity of this side would be", texts(&lots)),
            Breach::OPEN_ORDERS => ("the number of open orders would be", texts(&|orders| orders.to_string())),
            Breach::BALANCE => ("open orders would hold", texts(&money(self.of.held_currency(self.intent.side)))),
            Breach::LEVERAGE => ("the gross exposure would be", texts(&|gross| self.file.amount_text(0, gross / 100))),
            Breach::DAILY_LOSS | Breach::DRAWDOWN => ("the loss is", texts(&money(0))),
            Breach::NET_EXPOSURE => ("the net exposure would be", texts(&money(0))),
            Breach::OPEN_NOTIONAL => ("the value of open orders would be", texts(&money(0))),
            Breach::MARGIN => ("the initial margin would be", texts(&money(0))),
            _ => ("the gross exposure would be", texts(&money(0))),
        };
        format!("{what} {value}, the limit is {limit}")
    }

    fn about_size(&self, reason: Breach) -> String {
        let Some(limits) = &self.limits else { return "no limits are set".to_owned() };
        let value = self.of.notional_of(self.intent.limit_px.0, self.intent.qty.0);
        let (what, value, limit) = match reason {
            Breach::QTY_MIN => ("quantity", self.of.qty_text(self.intent.qty.0), self.of.qty_text(limits.qty_min.0)),
            _ => ("value", self.of.notional_text(value), self.of.notional_text(limits.notional_min.0)),
        };
        let value = if self.intent.kind.is_market() && reason == Breach::NOTIONAL_MIN { String::new() } else { value };
        format!("the {what} {value} is below {limit}").replace("  ", " ")
    }
}

/// Says why a node has a reason without numbers.
fn about_node(reason: Breach) -> &'static str {
    match reason {
        Breach::CANCEL_RATIO => "too many cancels and replaces for its fills",
        Breach::REPEAT_EXEC => "executions have stopped it",
        Breach::RATE_ACCOUNT => "its message rate is exceeded",
        Breach::NOT_PERMITTED => "it has no limits in this instrument",
        // A sum, a balance or an equity.
        _ => "the value is not known",
    }
}

/// Says what a reason means, without values.
fn about(reason: Breach) -> &'static str {
    match reason {
        Breach::REDUCE_ONLY_FLIP => "a reduce-only order would open a position on the other side",
        Breach::INSTRUMENT_UNKNOWN => "the instrument is not in the limits",
        Breach::NOT_PERMITTED => "the limits do not permit this account or strategy to do this in this instrument",
        Breach::INSTRUMENT_HALTED => "the instrument's trading state does not take such an order",
        Breach::PRICE_TICK => "the price is no multiple of its step",
        Breach::PRICE_NONPOS => "the price is zero or negative",
        Breach::QTY_STEP => "the quantity is no multiple of its step",
        Breach::BOOK_UNVERIFIED => "the book behind the mark is not verified",
        Breach::RATE_ACCOUNT => "the account's message rate is exceeded",
        Breach::RATE_INSTRUMENT => "the instrument's message rate is exceeded, or the cancel repeats another one",
        Breach::RATE_GLOBAL => "the message rate of all accounts is exceeded",
        Breach::DUP_ORDER => "the same order was sent too often a moment ago",
        Breach::SELF_MATCH => "the order would match an open order of the account",
        Breach::SEQ_REPLAY => "its number is not the one after the producer's last",
        Breach::UNRECONCILED => "the account's orders, executions or positions are in doubt",
        Breach::MALFORMED => "a field has a value without a meaning",
        Breach::CAPACITY => "a table of the gate has no room",
        Breach::CLOCK_FAULT => "the clock went back, or the machine slept, and no mark of a later time has come since",
        Breach::JOURNAL => "the journal cannot be written",
        Breach::ORDER_UNKNOWN => "the order to replace is not open, or another replace is pending",
        Breach::MD_STALE | Breach::COLLAR_REF | Breach::COLLAR_TOUCH => "there is no mark to compare with",
        _ => "the check was breached",
    }
}
