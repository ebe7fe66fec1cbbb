//! The limits file of a setup, in format 2.

use std::fmt::{Display, Write as _};

use super::{Kind, LARGEST, MONEY_DECIMALS, MS, STRATEGIES, Setup};
use crate::gate_oracle::{ContractSettings, InstrumentSettings, NodeSettings, RateSettings, RowMax, RowSettings};

/// A number with so many decimals, in quotes.
fn text(value: i128, decimals: u32) -> String {
    let one = 10_i128.pow(decimals);
    let (sign, value) = (if value < 0 { "-" } else { "" }, value.abs());
    format!("\"{sign}{}.{:0width$}\"", value / one, value % one, width = decimals as usize)
}

fn or_off<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "\"off\"".to_owned(), |value| value.to_string())
}

fn line(out: &mut String, key: &str, value: impl Display) {
    // A string takes everything.
    let _ = writeln!(out, "{key} = {value}");
}

fn rate_text(RateSettings { per_second, burst }: &RateSettings) -> String {
    format!("{{ per-second = {per_second}, burst = {burst} }}")
}

fn money(out: &mut String, of: &NodeSettings) {
    for (key, max) in [
        ("gross-max", of.gross),
        ("net-max", of.net),
        ("open-value-max", of.open_value),
        ("daily-loss-max", of.daily_loss),
        ("drawdown-max", of.drawdown),
    ] {
        line(out, key, or_off(max.map(|max| text(max, MONEY_DECIMALS))));
    }
}

impl Setup {
    /// The limits file.
    pub(in super::super) fn text(&self) -> String {
        let of = &self.settings;
        let mut out = String::new();
        line(&mut out, "format", 2);
        line(&mut out, "version", self.version);
        line(&mut out, "currency-of-limits", "\"USDT\"");
        for (key, ns) in [
            ("id-window-ms", of.id_window_ns),
            ("intent-age-max-ms", of.intent_age_ns),
            ("cancel-repeat-ms", of.cancel_repeat_ns),
            ("gap-max-ms", of.gap_ns),
            ("same-window-ms", of.same_ns),
            ("cancel-window-ms", of.cancel_window_ns),
            ("exec-window-ms", of.exec_window_ns),
            ("revalue-max-ms", 100 * MS),
            ("equity-age-max-ms", of.equity_age_ns),
        ] {
            line(&mut out, key, ns / MS);
        }
        line(&mut out, "same-orders-max", of.same_orders);
        line(&mut out, "refusal-rate", rate_text(&of.refusal_rate));
        line(&mut out, "rate", rate_text(&of.global_rate));
        out.push_str("[currency.BTC]\nnumber = 1\n");
        line(&mut out, "decimals", MONEY_DECIMALS);
        line(&mut out, "haircut-bps", of.currencies[0].0);
        line(&mut out, "age-max-ms", of.currencies[0].1 / MS);
        for number in 0..self.instruments {
            self.instrument_text(&mut out, number);
        }
        out.push_str("[firm]\n");
        money(&mut out, &of.firm);
        for (number, row) in (0..).zip(&of.firm_rows) {
            self.row_text(&mut out, "firm", number, row);
        }
        for account in 0..self.accounts {
            self.account_text(&mut out, account);
        }
        out
    }

    fn instrument_text(&self, out: &mut String, number: u32) {
        let of: &InstrumentSettings = &self.settings.instruments[number as usize];
        let steps: &RowSettings = &self.settings.rows[0][number as usize];
        let [px, qty] = self.decimals;
        let _ = writeln!(out, "[instrument.\"{}\"]", Self::symbol(number));
        line(out, "number", number);
        for (key, value, decimals) in [
            ("px-unit", 1, px),
            ("qty-unit", 1, qty),
            ("px-step", steps.px_step, px),
            ("qty-step", steps.qty_step, qty),
            ("qty-min", steps.qty[0], qty),
            ("notional-min", steps.notional[0], px + qty),
        ] {
            line(out, key, text(value, decimals));
        }
        line(out, "contract", self.contract_text(number as usize));
        line(out, "collar-bps", of.collar_bps);
        line(out, "touch-bps", or_off(of.touch_bps));
        line(out, "trigger-bps", of.trigger_bps);
        line(out, "slip-bps", or_off(of.slip_bps));
        line(out, "mark-age-max-ms", of.mark_age_ns / MS);
        line(out, "book-proof", if steps.needs_proof { "\"required\"" } else { "\"off\"" });
        line(out, "proof-age-max-ms", or_off(of.proof_age_ns.map(|age_ns| age_ns / MS)));
        line(out, "cancels-per-fill-max", or_off(of.cancel_pct.map(|pct| text(pct, 2))));
        line(out, "may-be-negative", of.may_be_negative);
        line(out, "enforces-reduce-only", of.enforces_reduce_only);
        line(out, "replaces-atomically", of.replaces_atomically);
        line(out, "rate", rate_text(&of.rate));
    }

    fn contract_text(&self, number: usize) -> String {
        let ContractSettings { fee_bps, brackets, .. } = &self.settings.contracts[number];
        let (kind, size, currencies) = match self.kinds[number] {
            Kind::Linear => ("linear", 1, "currency = \"USDT\""),
            Kind::Quanto => ("linear", 1, "currency = \"BTC\""),
            Kind::Inverse => ("inverse", 10_i128.pow(4 - self.decimals[0]), "currency = \"BTC\""),
            Kind::Spot => ("spot", 1, "currency = \"USDT\", base = \"BTC\""),
        };
        let bracket =
            |(max, bps): &(i128, i128)| format!("{{ value-max = {}, bps = {bps} }}", text(*max, MONEY_DECIMALS));
        let margin = match brackets[..] {
            [(LARGEST, _)] => String::new(),
            _ => format!(", margin = [{}]", brackets.iter().map(bracket).collect::<Vec<_>>().join(", ")),
        };
        format!("{{ kind = \"{kind}\", size = \"{size}\", {currencies}, fee-bps = {fee_bps}{margin} }}")
    }

    fn row_text(&self, out: &mut String, node: &str, number: u32, of: &RowMax) {
        let [px, qty] = self.decimals;
        let _ = writeln!(out, "[{node}.limits.\"{}\"]", Self::symbol(number));
        for (key, value, decimals) in [
            ("qty-max", of.qty, qty),
            ("market-qty-max", of.market_qty, qty),
            ("notional-max", of.notional, px + qty),
            ("position-long-max", of.position[0], qty),
            ("position-short-max", of.position[1], qty),
            ("open-qty-max", of.open_qty, qty),
        ] {
            line(out, key, text(value, decimals));
        }
        line(out, "open-orders-max", of.open_orders);
    }

    fn account_text(&self, out: &mut String, account: u16) {
        let (at, settings) = (usize::from(account), &self.settings);
        let (name, of) = (format!("account.a{account}"), &settings.accounts[at]);
        let _ = writeln!(out, "[{name}]\nnumber = {account}");
        money(out, of);
        line(out, "balance", if of.balance { "\"checked\"" } else { "\"off\"" });
        line(out, "margin", if of.margin { "\"checked\"" } else { "\"off\"" });
        line(out, "leverage-max", or_off(of.leverage_pct.map(|pct| text(pct, 2))));
        line(out, "cancels-per-fill-max", or_off(of.cancel_pct.map(|pct| text(pct, 2))));
        line(out, "rate", rate_text(&settings.account_rates[at]));
        for (number, row) in (0..).zip(&settings.rows[at]) {
            let RowSettings { qty, market_qty, notional, position, open_qty, open_orders, .. } = *row;
            let (qty, notional) = (qty[1], notional[1]);
            let max = RowMax { qty, market_qty, notional, position, open_qty, open_orders };
            self.row_text(out, &name, number, &max);
            line(out, "position", text(settings.positions[at][number as usize], self.decimals[1]));
        }
        for (strategy, of) in (0..STRATEGIES).zip(&settings.strategies) {
            let name = format!("{name}.strategy.s{strategy}");
            let _ = writeln!(out, "[{name}]\nnumber = {strategy}");
            money(out, &of.node);
            line(out, "executions-stop", of.node.stop.unwrap_or(0));
            line(out, "rate", rate_text(&of.rate));
            for (number, row) in (0..).zip(&of.rows) {
                self.row_text(out, &name, number, row);
            }
        }
    }
}
