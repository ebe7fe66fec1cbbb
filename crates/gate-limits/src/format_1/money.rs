//! Limits of firm, accounts and strategies in money.

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use tt_model::Decimal;
use tt_risk::money::{Contract, Ratio};
use tt_risk::tree::{Node, NodeLimits};

use super::super::settings::MONEY_DECIMALS;
use super::{Document, InstrumentEntry};

/// `{ gross_max = "1000000" }`; the keys are those of [`NodeLimits`]. Without a key, nothing is checked.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoneyEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    gross_max: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    net_max: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_value_max: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daily_loss_max: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drawdown_max: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancels_per_fill_max_pct: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executions_stop: Option<u32>,
}

impl MoneyEntry {
    /// The keys in money, with their values.
    fn amounts(&self) -> [(&'static str, Option<&String>); 5] {
        [
            ("gross_max", self.gross_max.as_ref()),
            ("net_max", self.net_max.as_ref()),
            ("open_value_max", self.open_value_max.as_ref()),
            ("daily_loss_max", self.daily_loss_max.as_ref()),
            ("drawdown_max", self.drawdown_max.as_ref()),
        ]
    }

    fn limits(&self) -> Result<NodeLimits> {
        let [gross_max, net_max, open_value_max, daily_loss_max, drawdown_max] =
            self.amounts().map(|(key, text)| text.map(|text| amount(key, text)).transpose());
        Ok(NodeLimits {
            gross_max: gross_max?,
            net_max: net_max?,
            open_value_max: open_value_max?,
            daily_loss_max: daily_loss_max?,
            drawdown_max: drawdown_max?,
            cancels_per_fill_max_pct: self.cancels_per_fill_max_pct,
            executions_stop: self.executions_stop,
            ..NodeLimits::default()
        })
    }
}

fn amount(key: &str, text: &str) -> Result<i64> {
    let steps = Decimal::steps(text, MONEY_DECIMALS)
        .with_context(|| format!("{key} = {text} is not a decimal number with at most {MONEY_DECIMALS} decimals"))?;
    ensure!(steps >= 0, "{key} = {text} is below zero");
    Ok(steps)
}

impl InstrumentEntry {
    /// Returns what a lot is worth: its price times its quantity.
    pub(super) fn contract(&self) -> Result<Contract> {
        let decimals = u32::from(self.px_decimals) + u32::from(self.qty_decimals);
        let den = 10_u64.checked_pow(decimals);
        let den =
            den.with_context(|| format!("instrument {}: px_decimals and qty_decimals are {decimals}", self.symbol))?;
        let num = 10_u64.pow(MONEY_DECIMALS.into());
        Ok(Contract { value: Ratio { num, den }, ..Contract::default() })
    }
}

impl Document {
    /// Returns the limits of every node.
    pub(super) fn nodes(&self) -> Result<Vec<(Node, NodeLimits)>> {
        let mut nodes = Vec::new();
        if let Some(firm) = &self.firm {
            nodes.push((Node::Firm, firm.get_ref().limits()?));
        }
        for account in self.accounts().filter(|account| !account.limits.is_empty()) {
            let number = account.account;
            if let Some(money) = &account.money {
                nodes.push((Node::Account(number), money.get_ref().limits()?));
            }
            if let Some(money) = &account.strategy_money {
                for strategy in &account.strategies {
                    nodes.push((Node::Strategy { account: number, strategy: *strategy }, money.get_ref().limits()?));
                }
            }
        }
        Ok(nodes)
    }

    /// Checks that no limit in money is negative, or above the same limit of the node that contains its own.
    ///
    /// # Errors
    /// The error names the lines, and both values.
    pub(super) fn check_money(&self, line: impl Fn(&Spanned<MoneyEntry>) -> usize) -> Result<()> {
        let below = |what: &str, entry: Option<&Spanned<MoneyEntry>>, parent: (&str, Option<&Spanned<MoneyEntry>>)| {
            let Some(entry) = entry else { return Ok(()) };
            let parents = parent.1.map_or([("", None); 5], |parent| parent.get_ref().amounts());
            for ((key, text), (_, above)) in entry.get_ref().amounts().into_iter().zip(parents) {
                let Some(text) = text else { continue };
                let place = || format!("line {}: {what}", line(entry));
                let value = amount(key, text).with_context(place)?;
                if let (Some(above), Some(of)) = (above, parent.1) {
                    let (name, at) = (parent.0, line(of));
                    let is_within = value <= amount(key, above)?;
                    ensure!(is_within, "{}: {key} = {text} is above {above}, the {name}'s, in line {at}", place());
                }
            }
            Ok(())
        };
        let firm = self.firm.as_ref();
        below("firm", firm, ("", None))?;
        for account in self.accounts() {
            let (number, money) = (account.account, account.money.as_ref());
            below(&format!("account {number}"), money, ("firm", firm))?;
            let strategies = format!("account {number}: strategy_money");
            below(&strategies, account.strategy_money.as_ref(), ("account", money))?;
        }
        Ok(())
    }
}
