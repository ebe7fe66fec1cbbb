//! Random histories of intents, reports, marks and operators, with reports that are repeated, reordered, lost and
//! contradictory: the gate and an independent oracle agree on every bit of every verdict, on the outcome of every report
//! and on every exposure.

use testkit::gate_oracle::{
    ContractSettings, InstrumentSettings, NodeSettings, Oracle, Quote, RateSettings, RowMax, RowSettings, Settings,
    StrategySettings,
};
use tt_meter::Off;
use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, Notional, OrderIntent, OrderSide, Price, Qty, Report, ReportKind,
    SplitMix64, TimeInForce,
};
use tt_risk::money::{Bracket, Contract, Conversion, CurrencyLimits, Payoff, Ratio, Spot};
use tt_risk::tree::{Node, NodeLimits, Route, RowLimits};
use tt_risk::{
    Capacity, Gate, InstrumentLimits, InstrumentRules, InstrumentState, KillSwitch, Limits, Mark, Mode, Outcome, Rate,
    Rules,
};

const ACCOUNTS: u16 = 2;
const INSTRUMENTS: u32 = 2;
const STRATEGIES: u16 = 2;
const PRODUCERS: u16 = 2;
const WORLDS: u64 = 150;
const STEPS: u64 = 400;

struct World {
    random: SplitMix64,
    gate: Gate,
    oracle: Oracle,
    now: u64,
    seqs: [u64; PRODUCERS as usize],
    sent: Vec<OrderIntent>,
    reports: Vec<Report>,
    held: Vec<Report>,
}

fn limits_of(row: &RowSettings) -> Limits {
    let lots = |value: i128| Qty(value as i64);
    let optional = if row.needs_proof { Breach::BOOK_UNVERIFIED } else { Breach::NONE };
    Limits {
        px_step: Price(row.px_step as i64),
        qty_step: lots(row.qty_step),
        qty_min: lots(row.qty[0]),
        qty_max: lots(row.qty[1]),
        notional_min: Notional(row.notional[0]),
        notional_max: Notional(row.notional[1]),
        position_long_max: lots(row.position[0]),
        position_short_max: lots(row.position[1]),
        open_qty_max: lots(row.open_qty),
        open_orders_max: row.open_orders as u32,
        enabled: optional,
    }
}

fn rate_of(rate: &RateSettings) -> Rate {
    Rate { per_second: rate.per_second as u32, burst: rate.burst as u32 }
}

type Below<'a> = &'a mut dyn FnMut(u64) -> i128;

/// Limits of a node in an instrument.
fn largest(below: Below<'_>) -> RowMax {
    RowMax {
        qty: 60 + below(100),
        market_qty: 40 + below(100),
        notional: 500_000 + below(1_000_000),
        position: [below(900), below(900)],
        open_qty: 50 + below(900),
        open_orders: 1 + below(20),
    }
}

/// Limits in money; each is off in half of the nodes. A lot is worth about 10,000 steps.
fn node(below: Below<'_>) -> NodeSettings {
    let mut some = |from: i128, width: u64| (below(2) == 0).then(|| from + below(width));
    NodeSettings {
        gross: some(500_000, 8_000_000),
        net: some(500_000, 8_000_000),
        open_value: some(500_000, 8_000_000),
        daily_loss: some(0, 4_000_000),
        drawdown: some(0, 4_000_000),
        margin: some(0, 2).is_some(),
        leverage_pct: some(50, 500),
        balance: some(0, 2).is_some(),
        cancel_pct: some(0, 400),
        stop: some(1, 5),
    }
}

/// A linear, an inverse, a quanto or a spot contract.
fn contract(below: Below<'_>) -> ContractSettings {
    let linear = ContractSettings {
        is_inverse: false,
        value: (1, 1),
        face: (1, 1),
        currency: 0,
        spot: None,
        fee_bps: below(40),
        lot_min: [0, 9_990][below(2) as usize],
        brackets: vec![(100_000, 500), (1_000_000, 1_000), (4_000_000, 5_000), (1 << 62, 10_000)],
    };
    match below(5) {
        0 => ContractSettings { is_inverse: true, value: (100_000_007, 1), face: (10_001, 1), currency: 1, ..linear },
        1 => ContractSettings { value: (2, 3), face: (5, 4), currency: 2, ..linear },
        2 => ContractSettings { spot: Some((1, (7, 3))), currency: 2, ..linear },
        3 => ContractSettings { spot: Some((2, (1_000, 1))), ..linear },
        _ => linear,
    }
}

fn contract_of(of: &ContractSettings) -> Contract {
    let ratio = |(num, den): (i128, i128)| Ratio { num: num as u64, den: den as u64 };
    let bracket = |(value_max, bps): &(i128, i128)| Bracket { value_max: *value_max as i64, bps: *bps as u32 };
    Contract {
        payoff: if of.is_inverse { Payoff::Inverse } else { Payoff::Linear },
        value: ratio(of.value),
        face: ratio(of.face),
        currency: of.currency as u16,
        spot: of.spot.map(|(base, per_lot)| Spot { base: base as u16, per_lot: ratio(per_lot) }),
        fee_bps: of.fee_bps as u32,
        lot_value_min: of.lot_min as i64,
        brackets: [0, 1, 2, 3].map(|index| bracket(&of.brackets[index])),
    }
}

fn row_limits_of(of: &RowMax) -> RowLimits {
    let lots = |value: i128| Qty(value as i64);
    RowLimits {
        qty_max: lots(of.qty),
        market_qty_max: lots(of.market_qty),
        notional_max: Notional(of.notional),
        position_long_max: lots(of.position[0]),
        position_short_max: lots(of.position[1]),
        open_qty_max: lots(of.open_qty),
        open_orders_max: of.open_orders as u32,
    }
}

fn node_limits_of(of: &NodeSettings) -> NodeLimits {
    let money = |value: Option<i128>| value.map(|value| value as i64);
    let count = |value: Option<i128>| value.map(|value| value as u32);
    NodeLimits {
        gross_max: money(of.gross),
        net_max: money(of.net),
        open_value_max: money(of.open_value),
        daily_loss_max: money(of.daily_loss),
        drawdown_max: money(of.drawdown),
        checks_margin: of.margin,
        leverage_max_pct: count(of.leverage_pct),
        checks_balance: of.balance,
        cancels_per_fill_max_pct: count(of.cancel_pct),
        executions_stop: count(of.stop),
    }
}

/// Sets the tree in the gate.
fn plant(gate: &mut Gate, settings: &Settings) {
    gate.set_node_limits(Node::Firm, &node_limits_of(&settings.firm)).expect("known");
    for (currency, (haircut, age)) in (1..).zip(&settings.currencies) {
        let limits = CurrencyLimits { haircut_bps: *haircut as u32, age_max_ns: *age as u64 };
        gate.set_currency_limits(currency, &limits).expect("known");
    }
    for (instrument, of) in (0..).map(InstrumentId).zip(&settings.contracts) {
        gate.set_contract(instrument, &contract_of(of)).expect("unused");
        let limits = row_limits_of(&settings.firm_rows[instrument.0 as usize]);
        gate.set_firm_limits(instrument, &limits).expect("known");
    }
    for (account, node) in (0..).zip(&settings.accounts) {
        gate.set_node_limits(Node::Account(account), &node_limits_of(node)).expect("known");
        for (strategy, of) in (0..).zip(&settings.strategies) {
            for instrument in (0..INSTRUMENTS).map(InstrumentId) {
                let route = Route { producer: of.producer, account, strategy, instrument };
                gate.set_route(&route, &row_limits_of(&of.rows[instrument.0 as usize])).expect("room");
            }
            let node = Node::Strategy { account, strategy };
            gate.set_node_limits(node, &node_limits_of(&of.node)).expect("known");
            gate.set_strategy_rate(account, strategy, rate_of(&of.rate)).expect("known");
        }
    }
}

/// Draws settings that are often met and often exceeded.
fn settings(random: &mut SplitMix64) -> Settings {
    let mut below = |bound: u64| i128::from(random.below(bound));
    let rate = |random: &mut dyn FnMut(u64) -> i128| match random(12) {
        0 => RateSettings { per_second: 0, burst: 5 },
        1 => RateSettings { per_second: 100_000, burst: 3 },
        _ => RateSettings { per_second: 1_000_000_000, burst: 1_000_000 },
    };
    let row = |below: &mut dyn FnMut(u64) -> i128| RowSettings {
        px_step: [1, 1, 5][below(3) as usize],
        qty_step: [1, 1, 10][below(3) as usize],
        qty: [1 + below(20), 60 + below(100)],
        market_qty: 40 + below(100),
        notional: [below(10_000), 500_000 + below(1_000_000)],
        position: [below(600), below(600)],
        open_qty: 50 + below(600),
        open_orders: 1 + below(12),
        needs_proof: below(3) > 0,
    };
    let instrument = |below: &mut dyn FnMut(u64) -> i128| InstrumentSettings {
        collar_bps: [100, 500, 9_999][below(3) as usize],
        mark_age_ns: [5_000, 1_000_000][below(2) as usize],
        rate: rate(below),
        slip_bps: [None, Some(50), Some(700)][below(3) as usize],
        touch_bps: [None, Some(0), Some(100)][below(3) as usize],
        trigger_bps: [0, 300, 2_000][below(3) as usize],
        may_be_negative: below(5) == 0,
        enforces_reduce_only: below(2) == 0,
        replaces_atomically: below(2) == 0,
        cancel_pct: (below(4) == 0).then(|| below(300)),
        proof_age_ns: [None, Some(3_000), Some(1_000_000)][below(3) as usize],
    };
    let below: &mut dyn FnMut(u64) -> i128 = &mut below;
    let rows = (0..ACCOUNTS).map(|_| (0..INSTRUMENTS).map(|_| row(below)).collect()).collect();
    let instruments = (0..INSTRUMENTS).map(|_| instrument(below)).collect();
    let [a, b, global_rate] = [0; 3].map(|_| match below(12) {
        0 => RateSettings { per_second: 1_000, burst: 2 },
        _ => RateSettings { per_second: 1_000_000_000, burst: 1_000_000 },
    });
    Settings {
        rows,
        instruments,
        account_rates: vec![a, b],
        global_rate,
        id_window_ns: [1_000, 100_000][below(2) as usize],
        intent_age_ns: 2_000,
        cancel_repeat_ns: 1_000,
        gap_ns: [500, 50_000][below(2) as usize],
        same_orders: below(4),
        same_ns: 900,
        firm_rows: (0..INSTRUMENTS).map(|_| largest(below)).collect(),
        firm: node(below),
        accounts: (0..ACCOUNTS).map(|_| node(below)).collect(),
        strategies: (0..STRATEGIES)
            .map(|number| StrategySettings {
                rows: (0..INSTRUMENTS).map(|_| largest(below)).collect(),
                node: NodeSettings { margin: false, leverage_pct: None, ..node(below) },
                producer: number % PRODUCERS,
                rate: match below(12) {
                    0 => RateSettings { per_second: 1_000, burst: 2 },
                    _ => RateSettings { per_second: 1_000_000_000, burst: 1_000_000 },
                },
            })
            .collect(),
        contracts: (0..INSTRUMENTS).map(|_| contract(below)).collect(),
        currencies: vec![(0, 3_000), (below(2_000), 60_000)],
        refusal_rate: RateSettings { per_second: [1_000_000, 1_000_000_000][below(2) as usize], burst: 40 },
        cancel_window_ns: [800, 50_000][below(2) as usize],
        exec_window_ns: [1_600, 90_000][below(2) as usize],
        equity_age_ns: 20_000,
        positions: (0..ACCOUNTS).map(|_| (0..INSTRUMENTS).map(|_| below(200) - 100).collect()).collect(),
    }
}

fn gate_of(settings: &Settings) -> Gate {
    let capacity = Capacity {
        accounts: ACCOUNTS,
        instruments: INSTRUMENTS,
        producers: PRODUCERS,
        orders: 4_096,
        executions: 8_192,
        routes: INSTRUMENTS * u32::from(ACCOUNTS) * u32::from(STRATEGIES),
        currencies: 2,
    };
    let mut gate = Gate::new(capacity);
    let ns = |value: i128| value as u64;
    gate.set_rules(&Rules {
        id_window_ns: ns(settings.id_window_ns),
        intent_age_max_ns: ns(settings.intent_age_ns),
        cancel_repeat_ns: ns(settings.cancel_repeat_ns),
        gap_max_ns: ns(settings.gap_ns),
        same_orders_max: settings.same_orders as u32,
        same_window_ns: ns(settings.same_ns),
        refusal_rate: rate_of(&settings.refusal_rate),
        cancel_window_ns: ns(settings.cancel_window_ns),
        exec_window_ns: ns(settings.exec_window_ns),
        revalue_max_ns: 0,
        equity_age_max_ns: ns(settings.equity_age_ns),
    });
    plant(&mut gate, settings);
    gate.set_global_rate(rate_of(&settings.global_rate));
    for (number, of) in (0..).zip(&settings.instruments) {
        let (collar_bps, mark_age_max_ns) = (of.collar_bps as u32, ns(of.mark_age_ns));
        let limits = InstrumentLimits { collar_bps, mark_age_max_ns, rate: rate_of(&of.rate) };
        gate.set_instrument_limits(InstrumentId(number), &limits).expect("known");
        let rules = InstrumentRules {
            slip_bps: of.slip_bps.map(|bps| bps as u32),
            touch_bps: of.touch_bps.map(|bps| bps as u32),
            trigger_bps: of.trigger_bps as u32,
            may_be_negative: of.may_be_negative,
            enforces_reduce_only: of.enforces_reduce_only,
            replaces_atomically: of.replaces_atomically,
            cancels_per_fill_max_pct: of.cancel_pct.map(|pct| pct as u32),
            proof_age_max_ns: of.proof_age_ns.map(ns),
        };
        gate.set_instrument_rules(InstrumentId(number), &rules).expect("known");
    }
    for account in 0..ACCOUNTS {
        gate.set_account_rate(account, rate_of(&settings.account_rates[usize::from(account)])).expect("known");
        for instrument in 0..INSTRUMENTS {
            let row = &settings.rows[usize::from(account)][instrument as usize];
            let position = settings.positions[usize::from(account)][instrument as usize];
            gate.set_limits(account, InstrumentId(instrument), &limits_of(row)).expect("sound");
            gate.set_market_qty_max(account, InstrumentId(instrument), Qty(row.market_qty as i64)).expect("sound");
            gate.restore(account, InstrumentId(instrument), Qty(position as i64), 0).expect("known");
        }
    }
    gate
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let settings = settings(&mut random);
        let gate = gate_of(&settings);
        let mut oracle = Oracle::new(settings, PRODUCERS.into(), STRATEGIES.into());
        let mut gate = gate;
        for instrument in 0..INSTRUMENTS {
            gate.set_state(InstrumentId(instrument), InstrumentState::Open).expect("known");
            oracle.set_state(instrument, 2);
        }
        let (sent, reports, held) = (Vec::new(), Vec::new(), Vec::new());
        Self { random, gate, oracle, now: 1_000_000_000, seqs: [0; PRODUCERS as usize], sent, reports, held }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn side(&mut self) -> OrderSide {
        if self.one_in(2) { OrderSide::Buy } else { OrderSide::Sell }
    }

    fn near(&mut self, center: i64, width: u64) -> i64 {
        center - width as i64 / 2 + self.below(width).cast_signed()
    }

    fn mark(&mut self) {
        let instrument = self.below(INSTRUMENTS.into()) as u32;
        let reference = if self.one_in(12) { -1 } else { self.near(10_000, 200) };
        let side = |world: &mut Self, away: i64| if world.one_in(8) { 0 } else { reference + away * world.near(3, 5) };
        let (bid, ask) = (side(self, -1), side(self, 1));
        let ahead = if self.one_in(10) { 1_000_001 } else { 0 };
        // One of before a fault of the clock does not end it.
        let age = if self.one_in(3) { self.below(4_000) } else { 0 };
        let at = self.now - age + ahead;
        let is_verified = !self.one_in(6);
        let (bid_px, ask_px) = (Price(bid), Price(ask));
        // Some proofs are older than the mark, some than any limit, some are of the future.
        let proof_ns =
            at.saturating_sub([0, 0, 900, 5_000][self.below(4) as usize]) + if self.one_in(12) { 1_100_000 } else { 0 };
        let mark = Mark { ref_px: Price(reference), bid_px, ask_px, ts_ns: at, is_verified, proof_ns };
        self.gate.set_reference(self.now, InstrumentId(instrument), &mark).expect("known");
        let quote = Quote {
            reference: reference.into(),
            bid: bid.into(),
            ask: ask.into(),
            at_ns: at.into(),
            is_verified,
            proved_ns: proof_ns.into(),
        };
        self.oracle.quote(instrument, quote);
    }

    fn operator(&mut self) {
        let level = self.below(4) as usize;
        let index = if level == 0 { 0 } else { self.below(2) };
        let switch = match level {
            0 => KillSwitch::Global,
            1 => KillSwitch::Account(index as u16),
            2 => KillSwitch::Strategy(index as u16),
            _ => KillSwitch::Instrument(InstrumentId(index as u32)),
        };
        let mode = [Mode::Active, Mode::Active, Mode::Active, Mode::Reduce, Mode::Kill][self.below(5) as usize];
        self.gate.controls().set_mode(switch, mode).expect("known");
        self.oracle.set_mode(level, index as usize, mode as u8);
        for instrument in 0..INSTRUMENTS {
            let state = if self.one_in(2) { 2 } else { self.below(7) as usize };
            self.gate.set_state(InstrumentId(instrument), InstrumentState::ALL[state]).expect("known");
            self.oracle.set_state(instrument, state as u8);
        }
        let is_journal_lost = self.one_in(8);
        self.gate.set_journal_lost(is_journal_lost);
        self.oracle.set_journal_lost(is_journal_lost);
        let account = self.below(ACCOUNTS.into()) as u16;
        self.gate.adopt(account, self.now).expect("known");
        self.oracle.adopt(self.now, account);
    }

    /// Rates of currencies, balances, equities.
    fn money(&mut self) {
        let at = self.now - self.below(2_000) + if self.one_in(15) { 1_000_001 } else { 0 };
        let currency = 1 + self.below(2) as u16;
        let (num, den) = (1 + self.below(30), 1 + self.below(10) * u64::from(!self.one_in(10)));
        gate_conversion(&mut self.gate, currency, (num, den), at);
        self.oracle.convert(currency.into(), (num.into(), den.into()), at.into());
        let account = self.below(ACCOUNTS.into()) as u16;
        let equity = self.near(1_000_000, 3_000_000);
        self.gate.set_equity(account, equity, at).expect("known");
        self.oracle.equity(account, equity.into(), at.into());
        let (currency, total) = (self.below(3) as u16, self.below(6_000_000).cast_signed());
        self.gate.set_balance(account, currency, total).expect("known");
        self.oracle.balance(account, currency.into(), total.into());
        if self.one_in(6) {
            self.gate.start_day(self.now);
            self.oracle.start_day(self.now);
        }
        if self.one_in(3) {
            let strategy = self.below(STRATEGIES.into()) as u16;
            self.gate.enable(account, strategy).expect("known");
            self.oracle.enable(account, strategy);
        }
    }

    /// Draws an intent and its producer.
    fn intent(&mut self) -> (u16, OrderIntent) {
        let old = if self.sent.is_empty() { None } else { Some(self.below(self.sent.len() as u64) as usize) };
        let old = old.map(|index| self.sent[index]);
        let kind = match self.below(12) {
            0..5 => IntentKind::LIMIT,
            5 => IntentKind::MARKET,
            6 | 7 => IntentKind::CANCEL,
            8 | 9 => IntentKind::REPLACE,
            10 => IntentKind::STOP_LIMIT,
            _ if self.one_in(6) => IntentKind(9),
            _ => IntentKind::STOP_MARKET,
        };
        let fresh = OrderIntent {
            client_id: self.below(1 << 40),
            account: self.below(ACCOUNTS.into()) as u16,
            strategy: self.below(STRATEGIES.into()) as u16,
            instrument: InstrumentId(self.below(INSTRUMENTS.into()) as u32),
            side: self.side(),
            ..OrderIntent::default()
        };
        let names_old = kind == IntentKind::CANCEL || kind == IntentKind::REPLACE;
        let keeps = if names_old { !self.one_in(8) } else { self.one_in(15) };
        let base = old.filter(|_| keeps).unwrap_or(fresh);
        let base = if self.one_in(15) { OrderIntent { strategy: fresh.strategy, ..base } } else { base };
        let repeats = !names_old && !self.sent.is_empty() && self.one_in(8);
        let px = match self.below(8) {
            0 => self.near(0, 40),
            1 => self.near(10_000, 4_000),
            _ => self.near(10_000, 60),
        };
        let qty = match self.below(10) {
            0 => self.near(0, 6),
            1 => base.qty.0,
            _ => self.near(40, 80),
        };
        let has_trigger = kind.is_stop() || self.one_in(40);
        let trigger = if has_trigger { self.near(10_000, 600) } else { base.trigger_px.0 * i64::from(names_old) };
        let own = usize::from(base.strategy % PRODUCERS);
        let producer = if self.one_in(25) { self.below(PRODUCERS.into()) as usize } else { own };
        let seq = if self.one_in(25) { self.below(50) } else { self.seqs[producer] + 1 };
        let age = if self.one_in(15) { self.below(4_000) } else { 0 };
        let ahead = if self.one_in(30) { 1_000_001 } else { 0 };
        let ttl_ms = if self.one_in(10) { 1 } else { 0 };
        // The latest order once more, under another id.
        if repeats {
            let last = self.sent[self.sent.len() - 1];
            let producer = usize::from(last.strategy % PRODUCERS);
            let seq = self.seqs[producer] + 1;
            let again = OrderIntent { seq, ts_ns: self.now, client_id: fresh.client_id, ..last };
            return (producer as u16, again);
        }
        let intent = OrderIntent {
            seq,
            ts_ns: self.now - age + ahead - if ttl_ms == 1 && self.one_in(3) { 1_000_000 } else { 0 },
            limit_px: Price(px),
            qty: Qty(qty),
            trigger_px: Price(trigger),
            kind,
            tif: TimeInForce(if self.one_in(40) { 3 } else { self.below(3) as u8 }),
            flags: IntentFlags(if self.one_in(40) { 8 } else { (self.below(8) & self.below(8)) as u8 }),
            ttl_ms,
            ..base
        };
        (producer as u16, intent)
    }

    fn send(&mut self, seen: &mut u64) {
        let (producer, intent) = self.intent();
        let generation = self.gate.controls().generation();
        let verdict = self.gate.evaluate(self.now, producer, &intent, &mut Off);
        let opinion = self.oracle.evaluate(self.now, producer, &intent);
        let names = |reasons: Breach| reasons.names().collect::<Vec<_>>();
        let explained = || self.oracle.explain(intent.account, intent.client_id);
        assert_eq!(names(verdict.reasons), names(opinion.reasons), "{intent:?} at {}\n{}", self.now, explained());
        let got = (verdict.accept == 1, i128::from(verdict.worst_pos), verdict.notes.0, verdict.first_level);
        assert_eq!(
            got,
            (opinion.accept, opinion.worst, opinion.notes, opinion.level),
            "{intent:?} {:?}",
            names(opinion.reasons)
        );
        assert_eq!((verdict.generation, verdict.intent_seq, verdict.producer), (generation, intent.seq, producer));
        *seen |= opinion.reasons.0;
        if verdict.reasons.0 & Breach::SEQ_REPLAY.0 == 0 {
            self.seqs[usize::from(producer)] = intent.seq;
        }
        if verdict.accept == 1 && intent.kind != IntentKind::CANCEL && intent.kind != IntentKind::REPLACE {
            self.sent.push(intent);
        }
    }

    /// A report on one of the orders, or on none that was sent.
    fn draw_report(&mut self) -> Report {
        let (again, other) = (self.one_in(6), self.one_in(25));
        if again && !self.reports.is_empty() {
            let index = self.below(self.reports.len() as u64) as usize;
            let mut report = self.reports[index];
            if self.one_in(5) {
                report.qty = Qty(report.qty.0 + 1);
            }
            return report;
        }
        let recent = self.sent.len().min(12) as u64;
        let order = match recent {
            0 => OrderIntent::default(),
            _ => {
                let back = self.below(recent) as usize;
                self.sent[self.sent.len() - 1 - back]
            }
        };
        let client_id = if other { self.below(5) } else { order.client_id };
        let kind = [1, 1, 1, 1, 0, 0, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 10, 11, 12][self.below(21) as usize];
        let executed = if self.one_in(2) { -1 } else { self.below(60).cast_signed() };
        let side = if self.one_in(30) { self.side() } else { order.side };
        Report {
            kind: ReportKind(kind),
            side,
            account: order.account,
            instrument: order.instrument,
            client_id,
            execution_id: self.below(12).into(),
            undone_id: self.below(12).into(),
            qty: Qty(if self.one_in(30) { 0 } else { 1 + self.below(30).cast_signed() }),
            px: Price(if self.one_in(60) { -1 } else { self.near(10_000, 3) }),
            executed: Qty(executed),
            order_qty: Qty(if self.one_in(2) { 0 } else { self.below(90).cast_signed() }),
            limit_px: Price(if self.one_in(2) { 0 } else { self.near(10_000, 60) }),
            trigger_px: Price(if self.one_in(4) { self.near(10_000, 60) } else { 0 }),
            fee: self.near(0, 40),
            version: [0, 0, self.below(9), self.below(90), self.below(90), Report::CURRENT][self.below(6) as usize],
        }
    }

    fn report(&mut self, outcomes: &mut u64) {
        let report = self.draw_report();
        match self.below(8) {
            // Lost.
            0 => return,
            // Later than the next ones.
            1 => return self.held.push(report),
            _ => {}
        }
        let late = if self.held.is_empty() || self.one_in(2) { None } else { self.held.pop() };
        for report in [Some(report), late].into_iter().flatten() {
            let outcome = self.gate.apply(self.now, &report);
            let expected = self.oracle.report(self.now, &report);
            let explained = || self.oracle.explain(report.account, report.client_id);
            assert_eq!(outcome.name(), expected, "{report:?} at {}\n{}", self.now, explained());
            *outcomes |= 1 << outcome as u8;
            self.reports.push(report);
            self.compare(&report);
        }
    }

    fn compare_totals(&self, last: &Report) {
        let strategies = || (0..STRATEGIES).map(Some).chain([None]);
        let accounts = (0..ACCOUNTS).flat_map(|account| strategies().map(move |strategy| (Some(account), strategy)));
        for (account, strategy) in accounts.chain([(None, None)]) {
            let node = match (account, strategy) {
                (Some(account), Some(strategy)) => Node::Strategy { account, strategy },
                (Some(account), None) => Node::Account(account),
                _ => Node::Firm,
            };
            let totals =
                self.gate.totals(node).map(|of| [of.gross, of.net[0], of.net[1], of.open_value, of.margin, of.profit]);
            assert_eq!(totals, self.oracle.totals(account, strategy), "{node:?} after {last:?}");
        }
    }

    fn compare(&self, last: &Report) {
        self.compare_totals(last);
        for account in 0..ACCOUNTS {
            assert_eq!(self.gate.is_doubtful(account), self.oracle.is_doubtful(account), "{last:?}");
            for instrument in 0..INSTRUMENTS {
                let held = self.gate.exposure(account, InstrumentId(instrument)).expect("known");
                let got = [held.position.0, held.open_buy_qty.0, held.open_sell_qty.0, held.open_orders.into()];
                let known = self.oracle.known(account, instrument);
                assert_eq!(got.map(i128::from), known, "account {account}, instrument {instrument}, after {last:?}");
            }
        }
    }
}

fn gate_conversion(gate: &mut Gate, currency: u16, (num, den): (u64, u64), ts_ns: u64) {
    let conversion = Conversion { rate: Ratio { num, den }, ts_ns };
    gate.set_conversion(currency, &conversion).expect("known");
}

#[test]
fn agrees_with_an_oracle_that_sums_over_the_whole_history() {
    let (mut seen, mut outcomes, mut accepted) = (0, 0, 0);
    for seed in 0..WORLDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.now = if world.one_in(60) { world.now - world.below(900) } else { world.now + world.below(700) };
            if world.one_in(200) {
                world.gate.suspect_clock(world.now);
                world.oracle.suspect_clock(world.now);
            }
            match world.below(10) {
                0 | 1 => world.mark(),
                2 if world.one_in(3) => world.money(),
                2 if world.one_in(4) => world.operator(),
                3..6 => world.report(&mut outcomes),
                _ => world.send(&mut seen),
            }
        }
        accepted += world.gate.counters().accepted();
    }
    let unseen = Limits::CHECKED.0 & !seen;
    let never = Breach::INSTRUMENT_UNKNOWN.0 | Breach::CAPACITY.0;
    assert_eq!(Breach(unseen & !never).names().collect::<Vec<_>>(), [""; 0], "never came up");
    let unseen = Outcome::NAMES.iter().filter(|(_, outcome)| outcomes & 1 << *outcome as u8 == 0);
    assert_eq!(unseen.map(|(name, _)| *name).collect::<Vec<_>>(), ["full"], "never came up");
    assert!(accepted > WORLDS * 8, "{accepted} accepted");
}
