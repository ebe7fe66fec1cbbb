//! Limits of a seed, as the oracle is given them; `file` writes them as a limits file.

mod file;

use risk_gate::Durability;

use crate::draw::Draw;
use crate::gate_oracle::{
    ContractSettings, InstrumentSettings, NodeSettings, RateSettings, RowMax, RowSettings, Settings, StrategySettings,
};

/// The price around which everything happens, in steps.
pub(super) const CENTER: i64 = 10_000;
/// The number of strategies of each account.
pub(super) const STRATEGIES: u16 = 2;
/// Decimals of money, and of the other currency.
const MONEY_DECIMALS: u32 = 8;
const MS: i128 = 1_000_000;
/// The margin of the last bracket.
const LARGEST: i128 = i64::MAX as i128;

/// What the contract of an instrument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    /// Linear, in the other currency.
    Quanto,
    Inverse,
    Spot,
}

/// The limits, the journal and the sizes of rings of a seed.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The version of the limits file.
    pub(super) version: u32,
    pub(super) accounts: u16,
    pub(super) instruments: u32,
    /// Decimals of prices and of quantities.
    decimals: [u32; 2],
    kinds: Vec<Kind>,
    pub(super) settings: Settings,
    pub(super) durability: Durability,
    pub(super) segment_bytes: usize,
    pub(super) ring_slots: usize,
    /// Orders of an account for which there is room.
    pub(super) orders_max: usize,
}

fn rate(draw: &mut Draw) -> RateSettings {
    match draw.below(6) {
        0 => RateSettings { per_second: i128::from(draw.between(50, 400)), burst: i128::from(draw.between(1, 6)) },
        _ => RateSettings { per_second: 2_000, burst: 60 },
    }
}

/// What an instrument asks of each order; limits of sizes are those of the account's row.
fn steps(draw: &mut Draw) -> RowSettings {
    let qty_step = i128::from(draw.pick(&[1, 1, 10]));
    RowSettings {
        px_step: i128::from(draw.pick(&[1, 1, 5])),
        qty_step,
        qty: [qty_step * i128::from(draw.between(1, 3)), 0],
        market_qty: 0,
        notional: [i128::from(draw.below(20_000)), 0],
        position: [0; 2],
        open_qty: 0,
        open_orders: 0,
        needs_proof: draw.chance(5, 6),
    }
}

/// Limits of a node in an instrument, within those of `above`, in whole lots.
fn row_max(draw: &mut Draw, step: i128, above: &RowMax) -> RowMax {
    let mut lots = |from: u64, to: u64, above: i128| (step * i128::from(draw.between(from, to) / 10)).min(above);
    let (qty, market_qty) = (lots(60, 300, above.qty), lots(40, 300, above.market_qty));
    let position = above.position.map(|above| lots(100, 2_400, above));
    let open_qty = lots(80, 1_800, above.open_qty);
    RowMax {
        qty,
        market_qty,
        notional: i128::from(draw.between(400_000, 3_000_000)).min(above.notional),
        position,
        open_qty,
        open_orders: i128::from(draw.between(1, 16)).min(above.open_orders),
    }
}

/// The age of a proof is limited only where a proof is required.
fn instrument(draw: &mut Draw, row: &RowSettings) -> InstrumentSettings {
    let collar_bps = draw.pick(&[60, 200, 500]);
    let mark_age_ms = draw.between(3, 40);
    InstrumentSettings {
        collar_bps,
        mark_age_ns: i128::from(mark_age_ms) * MS,
        rate: rate(draw),
        slip_bps: draw.pick(&[None, Some(20), Some(150)]),
        touch_bps: draw.pick(&[None, None, Some(0), Some(100)]),
        trigger_bps: draw.pick(&[0, 300, 2_000]),
        may_be_negative: draw.chance(1, 8),
        enforces_reduce_only: draw.chance(1, 2),
        replaces_atomically: draw.chance(1, 2),
        cancel_pct: draw.chance(1, 8).then(|| i128::from(draw.between(100, 900))),
        proof_age_ns: (row.needs_proof && mark_age_ms.is_multiple_of(2)).then_some(i128::from(mark_age_ms + 10) * MS),
    }
}

/// Limits in money of which each is within that of `above`; a lot is worth `lot`.
fn node(draw: &mut Draw, lot: i128, above: &NodeSettings) -> NodeSettings {
    let mut some = |to: u64, above: Option<i128>| {
        let to = draw.pick(&[to, to * 8]);
        let lots = i128::from(draw.between(to / 20, to));
        let max = lots * lot + i128::from(draw.below(100));
        Some(above.map_or(max, |above| max.min(above)))
    };
    let (gross, net, open_value) = (some(900, above.gross), some(900, above.net), some(700, above.open_value));
    let (daily_loss, drawdown) = (some(9, above.daily_loss), some(9, above.drawdown));
    NodeSettings {
        gross,
        net: net.filter(|_| draw.chance(1, 2)),
        open_value,
        daily_loss,
        drawdown,
        margin: draw.chance(1, 4),
        leverage_pct: draw.chance(1, 4).then(|| i128::from(draw.between(50, 600))),
        balance: draw.chance(1, 2),
        cancel_pct: draw.chance(1, 6).then(|| i128::from(draw.between(100, 900))),
        stop: Some(i128::from(draw.between(3, 60))),
    }
}

fn contract(draw: &mut Draw, kind: Kind, [px, qty]: [u32; 2]) -> ContractSettings {
    let one = 10_i128.pow(MONEY_DECIMALS);
    let linear = (one, 10_i128.pow(px + qty));
    // An inverse contract has a size in money at which a lot is worth what it is worth of the others.
    let size = 10_i128.pow(4 - px);
    let (value, face) = match kind {
        Kind::Inverse => ((size * 10_i128.pow(px) * one, 10_i128.pow(qty)), (size * 10_i128.pow(px), 1)),
        Kind::Linear | Kind::Quanto | Kind::Spot => (linear, (1, 1)),
    };
    let brackets = match draw.below(2) {
        0 => vec![(LARGEST, 10_000)],
        _ => vec![(10 * one, 500), (100 * one, 2_000), (1_000_000 * one, 10_000)],
    };
    ContractSettings {
        is_inverse: kind == Kind::Inverse,
        value,
        face,
        currency: usize::from(matches!(kind, Kind::Inverse | Kind::Quanto)),
        spot: (kind == Kind::Spot).then(|| (1, (one, 10_i128.pow(qty)))),
        fee_bps: i128::from(draw.below(40)),
        lot_min: 0,
        brackets,
    }
}

fn least(of: impl Iterator<Item = NodeSettings> + Clone) -> NodeSettings {
    let least = |get: fn(&NodeSettings) -> Option<i128>| of.clone().filter_map(|node| get(&node)).min();
    NodeSettings {
        gross: least(|node| node.gross),
        net: least(|node| node.net),
        open_value: least(|node| node.open_value),
        daily_loss: least(|node| node.daily_loss),
        drawdown: least(|node| node.drawdown),
        ..NodeSettings::default()
    }
}

fn least_rows(of: &[&RowMax]) -> RowMax {
    let least = |get: fn(&RowMax) -> i128| of.iter().map(|row| get(row)).min().unwrap_or(0);
    RowMax {
        qty: least(|row| row.qty),
        market_qty: least(|row| row.market_qty),
        notional: least(|row| row.notional),
        position: [least(|row| row.position[0]), least(|row| row.position[1])],
        open_qty: least(|row| row.open_qty),
        open_orders: least(|row| row.open_orders),
    }
}

const UNLIMITED: RowMax = RowMax {
    qty: LARGEST,
    market_qty: LARGEST,
    notional: LARGEST,
    position: [LARGEST; 2],
    open_qty: LARGEST,
    open_orders: 40,
};

/// Draws the limits of the nodes, of which each is within those of the node that contains it.
fn limit(settings: &mut Settings, lot: i128, draw: &mut Draw) {
    let steps: Vec<RowSettings> = settings.rows[0].clone();
    let draw_rows = |above: &[RowMax], draw: &mut Draw| -> Vec<RowMax> {
        steps.iter().zip(above).map(|(steps, above)| row_max(draw, steps.qty_step, above)).collect()
    };
    let wide: Vec<RowMax> = draw_rows(&vec![UNLIMITED; steps.len()], draw);
    let twice = |row: &RowMax| RowMax { qty: row.qty * 2, position: row.position.map(|lots| lots * 2), ..*row };
    settings.firm_rows = wide.iter().map(twice).collect();
    settings.firm = NodeSettings {
        margin: false,
        leverage_pct: None,
        balance: false,
        cancel_pct: None,
        stop: None,
        ..node(draw, lot * 2, &NodeSettings::default())
    };
    let of_accounts: Vec<Vec<RowMax>> = settings.rows.iter().map(|_| draw_rows(&settings.firm_rows, draw)).collect();
    for (rows, maxima) in settings.rows.iter_mut().zip(&of_accounts) {
        for (row, max) in rows.iter_mut().zip(maxima) {
            let RowMax { qty, market_qty, notional, position, open_qty, open_orders } = *max;
            (row.qty[1], row.market_qty, row.notional[1]) = (qty, market_qty, notional);
            (row.position, row.open_qty, row.open_orders) = (position, open_qty, open_orders);
        }
    }
    let firm = settings.firm;
    settings.accounts = settings.rows.iter().map(|_| NodeSettings { stop: None, ..node(draw, lot, &firm) }).collect();
    let above = least(settings.accounts.iter().copied());
    let least_row = |index: usize| least_rows(&of_accounts.iter().map(|rows| &rows[index]).collect::<Vec<_>>());
    let above_rows: Vec<RowMax> = (0..steps.len()).map(least_row).collect();
    settings.strategies = (0..STRATEGIES)
        .map(|_| StrategySettings {
            rows: draw_rows(&above_rows, draw),
            node: NodeSettings {
                margin: false,
                leverage_pct: None,
                balance: false,
                cancel_pct: None,
                ..node(draw, lot, &above)
            },
            producer: 0,
            rate: rate(draw),
        })
        .collect();
}

impl Setup {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let (accounts, instruments) = (draw.between(1, 2) as u16, draw.between(1, 2) as u32);
        let decimals = draw.pick(&[[2, 3], [1, 9], [2, 8], [3, 7]]);
        let kind = |_| draw.pick(&[Kind::Linear, Kind::Linear, Kind::Quanto, Kind::Inverse, Kind::Spot]);
        let kinds: Vec<Kind> = (0..instruments).map(kind).collect();
        let steps: Vec<RowSettings> = (0..instruments).map(|_| steps(draw)).collect();
        let most = draw.pick(&[0, 0, 4]);
        let mut start =
            |row: &RowSettings| (i128::from(draw.below(2 * most + 1)) - i128::from(most)) * 10 * row.qty_step;
        let positions = (0..accounts).map(|_| steps.iter().map(&mut start).collect::<Vec<_>>()).collect::<Vec<_>>();
        let id_window = draw.between(250, 400);
        let mut settings = Settings {
            instruments: steps.iter().map(|row| instrument(draw, row)).collect(),
            rows: vec![steps; usize::from(accounts)],
            account_rates: (0..accounts).map(|_| rate(draw)).collect(),
            global_rate: rate(draw),
            id_window_ns: i128::from(id_window) * MS,
            intent_age_ns: i128::from(draw.between(2, 20)) * MS,
            cancel_repeat_ns: i128::from(draw.between(1, 20)) * MS,
            gap_ns: i128::from(draw.between(2, 60)) * MS,
            same_orders: i128::from(draw.between(1, 5)),
            same_ns: i128::from(draw.between(5, 200)) * MS,
            firm_rows: Vec::new(),
            firm: NodeSettings::default(),
            accounts: Vec::new(),
            strategies: Vec::new(),
            contracts: kinds.iter().map(|kind| contract(draw, *kind, decimals)).collect(),
            currencies: vec![(i128::from(draw.below(500)), i128::from(draw.between(10, 80)) * MS)],
            refusal_rate: draw.pick(
                &[(20, 8), (1_000, 1_000), (1_000, 1_000)]
                    .map(|(per_second, burst)| RateSettings { per_second, burst }),
            ),
            cancel_window_ns: i128::from(draw.between(20, 300)) * MS,
            exec_window_ns: i128::from(draw.between(20, 300)) * MS,
            equity_age_ns: i128::from(draw.between(10, 80)) * MS,
            positions,
        };
        let lot = lot_value(decimals);
        limit(&mut settings, lot, draw);
        let orders_max = orders_max(&settings);
        let durability = draw.pick(&[Durability::Process, Durability::Durable]);
        let segment_bytes = draw.pick(&[16 << 10, 24 << 10, 48 << 10]);
        let ring_slots = draw.pick(&[2, 8, 32]);
        let version = 1;
        Self {
            version,
            accounts,
            instruments,
            decimals,
            kinds,
            settings,
            durability,
            segment_bytes,
            ring_slots,
            orders_max,
        }
    }

    /// The symbol of an instrument.
    pub(super) fn symbol(instrument: u32) -> String {
        ["BTC/USDT", "ETH/USDT"][instrument as usize].to_owned()
    }

    /// The same limits in a file of another version.
    pub(super) fn numbered(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// The same gate with other limits.
    pub(super) fn replaced(&self, version: u32, draw: &mut Draw) -> Self {
        let mut next = Self { version, ..self.clone() };
        let settings = &mut next.settings;
        let known = self.settings.instruments.iter().zip(&self.settings.rows[0]);
        for (of, (old, row)) in settings.instruments.iter_mut().zip(known) {
            *of = InstrumentSettings { may_be_negative: old.may_be_negative, ..instrument(draw, row) };
        }
        settings.account_rates.iter_mut().for_each(|of| *of = rate(draw));
        settings.global_rate = rate(draw);
        limit(settings, lot_value(self.decimals), draw);
        next
    }

    /// The price of the other currency's smallest step at which a lot is worth what it is worth of the first.
    pub(super) fn rate_of_other(&self) -> u64 {
        10_u64.pow(4 - self.decimals[0])
    }

    /// What a lot is worth at the center, in the smallest steps of the currency of limits.
    pub(super) fn lot(&self) -> i64 {
        lot_value(self.decimals) as i64
    }
}

fn lot_value([px, qty]: [u32; 2]) -> i128 {
    (i128::from(CENTER) * 10_i128.pow(MONEY_DECIMALS) / 10_i128.pow(px + qty)).max(1)
}

/// The room that a file makes for the orders of an account: as many as its rate allows in the window, its burst, and those
/// that may be open.
fn orders_max(settings: &Settings) -> usize {
    let of_account = |(rate, rows): (&RateSettings, &Vec<RowSettings>)| {
        let open: i128 = rows.iter().map(|row| row.open_orders).sum();
        rate.per_second * (settings.id_window_ns / MS) / 1_000 + rate.burst + open
    };
    settings.account_rates.iter().zip(&settings.rows).map(of_account).max().unwrap_or(0) as usize
}
