//! Everything that has happened, and what follows from it.

use super::{
    life::{Fact, Life, Schedule},
    settings::{Quote, RateSettings, Settings},
    tree::{Level, NodeMemory, Trade},
};
use tt_model::{IntentFlags, IntentKind, OrderSide, Report, ReportKind};

/// Quantities of orders and executions end here.
pub(super) const LOTS_MAX: i128 = 1 << 61;

/// Exposure of a row as the oracle knows it: position, open buys, open sells, open orders.
pub type Known = [i128; 4];

/// The second opinion.
#[derive(Clone, Debug)]
pub struct Oracle {
    pub(super) settings: Settings,
    pub(super) lives: Vec<Life>,
    pub(super) quotes: Vec<Option<(Quote, u32)>>,
    pub(super) account_rates: Vec<Schedule>,
    pub(super) instrument_rates: Vec<Schedule>,
    pub(super) global_rate: Schedule,
    pub(super) doubts: Vec<bool>,
    /// States of instruments: 2 is open, 1 and 3 take limit orders, the others none.
    pub(super) states: Vec<u8>,
    /// Modes (0 active, 1 reduce, 2 kill): of all, by account, by strategy, by instrument.
    pub(super) modes: [Vec<u8>; 4],
    pub(super) next_seqs: Vec<u64>,
    pub(super) is_journal_lost: bool,
    pub(super) is_full: bool,
    pub(super) trades: Vec<Trade>,
    /// By account, strategy: its rate.
    pub(super) strategy_rates: Vec<Vec<Schedule>>,
    /// By producer: refused intents.
    pub(super) refusals: Vec<Schedule>,
    /// Firm, accounts, strategies of accounts.
    pub(super) memory: Vec<NodeMemory>,
    /// From currency 1 on: rate and its time.
    pub(super) conversions: Vec<Option<((i128, i128), i128)>>,
    /// By account and currency.
    pub(super) balances: Vec<Vec<i128>>,
    /// Time, account and instrument of cancels and replaces, and of fills.
    pub(super) cancels: Vec<(i128, u16, u32)>,
    pub(super) fills: Vec<(i128, u16, u32)>,
    pub(super) faults: u32,
    /// The time after the last fault of the clock.
    pub(super) fault_ns: i128,
    pub(super) last_ns: i128,
    /// The latest time that was seen: ids and gaps do not return when the clock goes back.
    pub(super) horizon: i128,
}

impl Oracle {
    /// An oracle of `settings`, for `producers` producers and `strategies` strategies.
    #[must_use]
    pub fn new(settings: Settings, producers: usize, strategies: usize) -> Self {
        let schedule = |rate: &RateSettings| Schedule { rate: *rate, due: 0 };
        let (accounts, instruments) = (settings.rows.len(), settings.instruments.len());
        Self {
            lives: Vec::new(),
            quotes: vec![None; instruments],
            account_rates: settings.account_rates.iter().map(schedule).collect(),
            instrument_rates: settings.instruments.iter().map(|of| schedule(&of.rate)).collect(),
            global_rate: schedule(&settings.global_rate),
            doubts: vec![false; accounts],
            states: vec![0; instruments],
            modes: [vec![0], vec![0; accounts], vec![0; strategies], vec![0; instruments]],
            next_seqs: vec![1; producers],
            is_journal_lost: false,
            is_full: false,
            trades: Vec::new(),
            strategy_rates: vec![settings.strategies.iter().map(|of| schedule(&of.rate)).collect(); accounts],
            refusals: vec![schedule(&settings.refusal_rate); producers],
            memory: vec![
                NodeMemory { bases: vec![None; instruments], ..NodeMemory::default() };
                1 + accounts * (1 + settings.strategies.len())
            ],
            conversions: vec![None; settings.currencies.len()],
            balances: vec![vec![0; 1 + settings.currencies.len()]; accounts],
            cancels: Vec::new(),
            fills: Vec::new(),
            faults: 0,
            fault_ns: 0,
            last_ns: 0,
            horizon: 0,
            settings,
        }
    }

    /// A price arrives; one of before the last fault of the clock does not end it.
    pub fn quote(&mut self, instrument: u32, quote: Quote) {
        let known = &mut self.quotes[instrument as usize];
        let before = known.as_ref().map_or(0, |(_, faults)| *faults);
        *known = Some((quote, if quote.at_ns < self.fault_ns { before } else { self.faults }));
    }

    /// The machine has slept.
    pub fn suspect_clock(&mut self, now: u64) {
        self.pass(now);
        (self.faults, self.fault_ns) = (self.faults + 1, now.into());
    }

    /// Says whether the gate's journal is lost.
    pub const fn set_journal_lost(&mut self, is_lost: bool) {
        self.is_journal_lost = is_lost;
    }

    /// Sets the trading state of an instrument: by number, from unknown (0) to expired (6).
    pub fn set_state(&mut self, instrument: u32, state: u8) {
        self.states[instrument as usize] = state;
    }

    /// Sets the mode of one of all (0), an account (1), a strategy (2) or an instrument (3).
    pub fn set_mode(&mut self, level: usize, index: usize, mode: u8) {
        self.modes[level][index] = mode;
    }

    /// Sets the rate of a currency, from 1 on.
    pub fn convert(&mut self, currency: usize, rate: (i128, i128), at_ns: i128) {
        self.conversions[currency - 1] = Some((rate, at_ns));
    }

    /// Sets the balance of an account.
    pub fn balance(&mut self, account: u16, currency: usize, total: i128) {
        self.balances[usize::from(account)][currency] = total;
    }

    /// Sets the equity of an account.
    pub fn equity(&mut self, account: u16, equity: i128, at_ns: i128) {
        let index = self.index(Level::Account(account));
        self.memory[index].equity = Some((equity, at_ns));
    }

    /// A day begins.
    pub fn start_day(&mut self, now: u64) {
        self.pass(now);
        let sums = self.sums();
        for level in self.levels() {
            let index = self.index(level);
            if let Some(total) = self.total(level, now.into(), &sums, None) {
                self.memory[index].day_start = total.profit;
            }
        }
        self.watch(now.into());
    }

    /// A named person lets a strategy continue.
    pub fn enable(&mut self, account: u16, strategy: u16) {
        let index = self.index(Level::Strategy(account, strategy));
        (self.memory[index].is_stopped, self.memory[index].executions) = (false, Vec::new());
    }

    /// An operator has settled the account.
    pub fn adopt(&mut self, now: u64, account: u16) {
        self.pass(now);
        let now = self.horizon;
        self.doubts[usize::from(account)] = false;
        for life in self.lives.iter_mut().filter(|life| life.account == account) {
            let sum = life.sum();
            if sum.gap() > 0 || sum.is_dim {
                life.facts.push((now, Fact::Settled));
            }
        }
    }

    /// What is known of the orders under a client id.
    #[must_use]
    pub fn explain(&self, account: u16, client_id: u64) -> String {
        let named = self.lives.iter().filter(|life| (life.account, life.client_id) == (account, client_id));
        named.map(|life| format!("{life:?}\n{:?}\n", life.sum())).collect()
    }

    /// Whether the account is in doubt.
    #[must_use]
    pub fn is_doubtful(&self, account: u16) -> bool {
        self.doubts[usize::from(account)]
    }

    /// Exposure of the account in the instrument.
    #[must_use]
    pub fn known(&self, account: u16, instrument: u32) -> Known {
        let start = self.settings.positions[usize::from(account)][instrument as usize];
        let mut known = [start, 0, 0, 0];
        for life in self.lives.iter().filter(|life| (life.account, life.instrument) == (account, instrument)) {
            let sum = life.sum();
            let (side, sign) = if life.side == OrderSide::Buy { (1, 1) } else { (2, -1) };
            known[0] += sign * sum.executed();
            known[side] += sum.reserved();
            known[3] += i128::from(sum.is_open);
        }
        known
    }

    /// Time passes.
    pub fn pass(&mut self, now: u64) {
        let now = i128::from(now);
        if now < self.last_ns {
            (self.faults, self.fault_ns) = (self.faults + 1, now);
        }
        self.last_ns = now;
        self.horizon = self.horizon.max(now);
        let now = self.horizon;
        for life in &self.lives {
            if life.sum().gap_since.is_some_and(|since| now >= since + self.settings.gap_ns) {
                self.doubts[usize::from(life.account)] = true;
            }
        }
        self.watch(self.last_ns);
    }

    /// Positions in the list of lives, latest first, that are not forgotten.
    pub(super) fn named(&self, now: i128, account: u16, client_id: u64) -> impl Iterator<Item = usize> {
        let window = self.settings.id_window_ns;
        (0..self.lives.len()).rev().filter(move |index| {
            let life = &self.lives[*index];
            let is_it = life.account == account && life.client_id == client_id;
            is_it && life.sum().settled_at.is_none_or(|settled| now < settled + window)
        })
    }

    /// A report arrives; returns the name of what becomes of it.
    pub fn report(&mut self, now: u64, report: &Report) -> &'static str {
        self.pass(now);
        let name = self.apply(self.horizon, report);
        self.watch(now.into());
        let states_more = report.executed.0 > 0;
        let is_execution = [ReportKind::FILL, ReportKind::BUST, ReportKind::CORRECT].contains(&report.kind);
        let is_doubt = match name {
            "adopted" | "unknown_fill" | "conflict" | "malformed" => true,
            "unknown" => is_execution || states_more,
            _ => false,
        };
        if let Some(doubt) = self.doubts.get_mut(usize::from(report.account)) {
            *doubt |= is_doubt;
        }
        if let Some(mode) = self.modes[1].get_mut(usize::from(report.account))
            && name == "overfill"
            && *mode == 0
        {
            *mode = 1;
        }
        name
    }

    fn apply(&mut self, now: i128, report: &Report) -> &'static str {
        let is_known = usize::from(report.account) < self.settings.rows.len()
            && (report.instrument.0 as usize) < self.settings.instruments.len();
        let qty = i128::from(report.qty.0);
        let (executed, order_qty) = (i128::from(report.executed.0), i128::from(report.order_qty.0));
        let needs_qty = report.kind == ReportKind::FILL || report.kind == ReportKind::CORRECT;
        let is_sound = report.kind.0 < 12
            && (-1..=i128::from(i64::MAX / 2)).contains(&executed)
            && (0..=LOTS_MAX).contains(&order_qty)
            && (!needs_qty || (1..=LOTS_MAX).contains(&qty));
        let has_price = |of: usize| {
            let may_be = self.settings.instruments[of].may_be_negative && !self.settings.contracts[of].is_inverse;
            let may_be = report.px.0 > 0 || may_be;
            !needs_qty || (may_be && self.settings.contracts[of].cost(report.px.0.into(), qty).is_some())
        };
        if !is_known || !is_sound || !has_price(report.instrument.0 as usize) {
            return "malformed";
        }
        let mut named = self.named(now, report.account, report.client_id);
        let Some(index) = named.find(|index| self.lives[*index].instrument == report.instrument.0) else {
            drop(named);
            return self.apply_unknown(now, report);
        };
        drop(named);
        if needs_qty && self.lives[index].side != report.side {
            return "conflict";
        }
        match report.kind {
            ReportKind::ACK => self.acknowledge(now, index, report),
            ReportKind::FILL => self.fill(now, index, report),
            ReportKind::CANCELLED | ReportKind::REJECTED | ReportKind::EXPIRED | ReportKind::UNSENT => {
                self.finish(now, index, report)
            }
            ReportKind::BUST | ReportKind::CORRECT => self.undo(now, index, report),
            _ => self.answer(now, index, report),
        }
    }

    fn acknowledge(&mut self, now: i128, index: usize, report: &Report) -> &'static str {
        let life = &mut self.lives[index];
        let sum = life.sum();
        let (executed, qty) = (i128::from(report.executed.0), i128::from(report.order_qty.0));
        if sum.is_dim && sum.claims.most(report.version, qty) > sum.executed() {
            let (px, trigger) = (report.limit_px.0.into(), report.trigger_px.0.into());
            let at = report.version;
            let Some(qty) = sum.claims.total(at, sum.qty, qty, false) else { return "overtaken" };
            life.facts.push((now, Fact::Adopted { px, qty, trigger, at }));
            return "adopted";
        }
        if !sum.is_open {
            return "late";
        }
        if sum.is_acknowledged && executed <= sum.stated {
            return "duplicate";
        }
        if sum.is_acknowledged || qty == 0 || qty == sum.qty {
            life.facts.push((now, Fact::Live));
            life.facts.push((now, Fact::Stated { executed }));
            return "applied";
        }
        self.answer(now, index, report)
    }

    fn fill(&mut self, now: i128, index: usize, report: &Report) -> &'static str {
        let life = &mut self.lives[index];
        let sum = life.sum();
        let (qty, px) = (i128::from(report.qty.0), i128::from(report.px.0));
        if let Some(same) = sum.find(report.execution_id) {
            return if (same.qty, same.px) == (qty, px) { "duplicate" } else { "conflict" };
        }
        if !self.can_move(report.account, report.instrument.0, report.side, qty) {
            return "malformed";
        }
        let life = &mut self.lives[index];
        let stated = if sum.is_open { report.executed.0.into() } else { 0 };
        life.facts.push((now, Fact::Executed { id: report.execution_id, qty, px, stated }));
        self.trade(index, qty, px, report.fee.into());
        self.executed(now, index);
        match (sum.is_dim, sum.executed() + qty > sum.qty, sum.is_open) {
            (true, ..) => "unknown_fill",
            (_, true, _) => "overfill",
            (.., false) => "late",
            _ => "applied",
        }
    }

    /// Counts an execution.
    fn executed(&mut self, now: i128, index: usize) {
        let life = &self.lives[index];
        self.fills.push((now, life.account, life.instrument));
        if life.asked.is_some() {
            let level = Level::Strategy(life.account, life.strategy);
            let (node, stop) = (self.index(level), self.settings_of(level).stop);
            let memory = &mut self.memory[node];
            memory.executions.push(now);
            let count = Self::within(memory.executions.iter().copied(), now, self.settings.exec_window_ns);
            memory.is_stopped |= stop.is_some_and(|stop| count >= stop);
        }
    }

    fn finish(&mut self, now: i128, index: usize, report: &Report) -> &'static str {
        let life = &mut self.lives[index];
        let sum = life.sum();
        let executed = i128::from(report.executed.0);
        let states_less = executed >= 0 && executed < sum.executed();
        let states_more = executed > sum.executed().max(sum.stated);
        let mut note = |fact| life.facts.push((now, fact));
        if sum.is_open {
            note(Fact::Stated { executed });
            note(Fact::Ended);
            return if states_less { "conflict" } else { "applied" };
        }
        if sum.is_filled {
            note(Fact::Ended);
        }
        if states_less || (states_more && sum.settled_at.is_some()) {
            return "conflict";
        }
        if sum.is_dim {
            let total = sum.qty.max(executed.max(sum.stated));
            note(Fact::Totalled { qty: total });
            note(Fact::Stated { executed });
            note(Fact::Ended);
            return "applied";
        }
        note(Fact::Stated { executed });
        if states_more { "applied" } else { "duplicate" }
    }

    /// A bust, or a correction: a bust with another fill.
    fn undo(&mut self, now: i128, index: usize, report: &Report) -> &'static str {
        let life = &mut self.lives[index];
        let sum = life.sum();
        let (qty, px) = (i128::from(report.qty.0), i128::from(report.px.0));
        let Some(old) = sum.find(report.undone_id) else { return "unknown" };
        let undone = Fact::Undone { id: report.undone_id, at: report.version };
        if report.kind == ReportKind::BUST {
            if !old.counts {
                return "duplicate";
            }
            let (old_qty, old_px) = (old.qty, old.px);
            life.facts.push((now, undone));
            self.trade(index, -old_qty, old_px, 0);
            return "applied";
        }
        match sum.find(report.execution_id) {
            Some(new) if (new.qty, new.px) == (qty, px) && !old.counts => "duplicate",
            Some(_) => "conflict",
            None if !old.counts => "conflict",
            None => {
                let (old_qty, old_px) = (old.qty, old.px);
                life.facts.push((now, undone));
                let (id, at) = (report.execution_id, report.version);
                life.facts.push((now, Fact::Corrected { id, qty, px, old: old_qty, at }));
                self.trade(index, -old_qty, old_px, 0);
                self.trade(index, qty, px, report.fee.into());
                "applied"
            }
        }
    }

    /// What a venue says of a cancel or of terms.
    fn answer(&mut self, now: i128, index: usize, report: &Report) -> &'static str {
        let life = &mut self.lives[index];
        let sum = life.sum();
        let mut note = |fact| life.facts.push((now, fact));
        let states_terms = report.kind == ReportKind::REPLACED || report.kind == ReportKind::RESTATED;
        let (at, most) = (report.version, sum.claims.most(report.version, report.order_qty.0.into()));
        if !sum.is_open && states_terms && most > sum.executed() {
            let (px, trigger) = (report.limit_px.0.into(), report.trigger_px.0.into());
            let total = sum.claims.total(at, sum.qty, report.order_qty.0.into(), false);
            // The venue works an order of which only executions were known.
            if sum.is_dim {
                let Some(qty) = total else { return "overtaken" };
                note(Fact::Adopted { px, qty, trigger, at });
                return "adopted";
            }
            // The venue has enlarged it before its executions used the old quantity up.
            if sum.is_filled && report.kind == ReportKind::RESTATED {
                let Some(qty) = total else { return "overtaken" };
                let or = |stated: i128, known: i128| if stated == 0 { known } else { stated };
                note(Fact::Reopened { px: or(px, sum.px), qty, trigger: or(trigger, sum.trigger), at });
                note(Fact::Stated { executed: report.executed.0.into() });
                return "enlarged";
            }
        }
        if !sum.is_open {
            return "late";
        }
        if report.kind == ReportKind::CANCEL_REJECTED {
            note(Fact::CancelRefused);
            return if sum.cancelled_at.is_some() { "applied" } else { "duplicate" };
        }
        if report.kind == ReportKind::REPLACE_REJECTED {
            if sum.pending.is_none() {
                return "duplicate";
            }
            note(Fact::ReplaceRefused);
            return "applied";
        }
        // Replaced, restated, or an acknowledgement of another quantity.
        let (at, stated) = (report.version, i128::from(report.order_qty.0));
        let is_answer = |asked: i128| report.kind == ReportKind::REPLACED && sum.claims.may_answer(at, stated, asked);
        let answer = sum.pending.filter(|(_, asked, ..)| is_answer(*asked));
        let asked = answer.map_or((sum.px, sum.qty, sum.trigger), |(px, qty, trigger, _)| (px, qty, trigger));
        let or = |stated: i64, asked: i128| if stated == 0 { asked } else { stated.into() };
        let (px, trigger) = (or(report.limit_px.0, asked.0), or(report.trigger_px.0, asked.2));
        let qty = or(report.order_qty.0, asked.1);
        note(Fact::Live);
        note(Fact::Stated { executed: report.executed.0.into() });
        let Some(qty) = sum.claims.total(at, sum.qty, qty, answer.is_some()) else { return "overtaken" };
        let is_answer = answer.is_some();
        note(if is_answer { Fact::Replaced { px, qty, trigger, at } } else { Fact::Restated { px, qty, trigger, at } });
        if qty > asked.1 { "enlarged" } else { "applied" }
    }

    fn apply_unknown(&mut self, now: i128, report: &Report) -> &'static str {
        let life = Life {
            account: report.account,
            strategy: 0,
            instrument: report.instrument.0,
            client_id: report.client_id,
            side: report.side,
            kind: IntentKind::LIMIT,
            flags: IntentFlags(0),
            asked: None,
            facts: Vec::new(),
        };
        let (px, trigger) = (i128::from(report.limit_px.0), i128::from(report.trigger_px.0));
        match report.kind {
            ReportKind::ACK | ReportKind::REPLACED | ReportKind::RESTATED if report.order_qty.0 > 0 => {
                let adopted = Fact::Adopted { px, qty: report.order_qty.0.into(), trigger, at: report.version };
                self.lives.push(Life { facts: vec![(now, adopted)], ..life });
                "adopted"
            }
            ReportKind::FILL if !self.can_move(life.account, life.instrument, life.side, report.qty.0.into()) => {
                "malformed"
            }
            ReportKind::FILL => {
                let seen = Fact::SeenInAFill { px, trigger };
                let (id, qty, px) = (report.execution_id, report.qty.0.into(), report.px.0.into());
                let facts = vec![(now, seen), (now, Fact::Executed { id, qty, px, stated: 0 })];
                self.lives.push(Life { facts, ..life });
                let index = self.lives.len() - 1;
                self.trade(index, qty, px, report.fee.into());
                self.executed(now, index);
                "unknown_fill"
            }
            _ => "unknown",
        }
    }
}
