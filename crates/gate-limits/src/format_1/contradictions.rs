//! What a limits file may not contain: repeated blocks, and limits that contradict each other.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

use anyhow::{Context as _, Result, bail, ensure};
use toml::Spanned;

use super::super::Instrument;
use super::{Document, InstrumentEntry, LimitsEntry};

/// A collar of the whole reference price and more would accept any price.
const COLLAR_BPS_MAX: u32 = 9_999;

impl Document {
    /// Checks the file that was read from `text`.
    ///
    /// # Errors
    /// The error names the line of each block that is concerned, and both values.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        let line = |at: usize| 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        let lines = |block: &std::ops::Range<usize>| line(block.start);
        once(self.instruments.iter().map(|block| (&block.get_ref().symbol, lines(&block.span()))), "instrument")?;
        for block in &self.instruments {
            let InstrumentEntry { symbol, collar_bps, .. } = block.get_ref();
            ensure!(
                *collar_bps <= COLLAR_BPS_MAX,
                "line {}: instrument {symbol}: collar_bps = {collar_bps} is above {COLLAR_BPS_MAX}",
                lines(&block.span())
            );
        }
        ensure!(
            self.same_window_ms <= self.id_window_ms,
            "same_window_ms = {} is above id_window_ms = {}",
            self.same_window_ms,
            self.id_window_ms
        );
        self.check_money(|entry| line(entry.span().start))?;
        let instruments = self.instruments()?;
        once(self.accounts.iter().map(|block| (block.get_ref().account, lines(&block.span()))), "account")?;
        for account in self.accounts.iter().map(Spanned::get_ref) {
            let what = format!("account {}: limits of", account.account);
            once(account.limits.iter().map(|block| (&block.get_ref().symbol, lines(&block.span()))), &what)?;
            for block in &account.limits {
                let place = || format!("line {}: {what} {}", lines(&block.span()), block.get_ref().symbol);
                self.in_order(block.get_ref(), &instruments).with_context(place)?;
            }
        }
        Ok(())
    }

    /// No limit is below its other end, and no check is off that the gate needs.
    fn in_order(&self, entry: &LimitsEntry, instruments: &[Instrument]) -> Result<()> {
        let (_, instrument) = self.find(&entry.symbol, instruments)?;
        for (is_on, key) in
            [(entry.reject_duplicate_ids, "reject_duplicate_ids"), (entry.reject_self_match, "reject_self_match")]
        {
            ensure!(is_on, "{key} = false: the check cannot be switched off");
        }
        ensure!(
            instrument.qty(&entry.qty_min)? <= instrument.qty(&entry.qty_max)?,
            "qty_min = {} is above qty_max = {}",
            entry.qty_min,
            entry.qty_max
        );
        ensure!(
            instrument.notional(&entry.notional_min)? <= instrument.notional(&entry.notional_max)?,
            "notional_min = {} is above notional_max = {}",
            entry.notional_min,
            entry.notional_max
        );
        Ok(())
    }
}

/// Returns an error if two blocks have one name.
fn once<T: Hash + Eq + Display + Copy>(blocks: impl Iterator<Item = (T, usize)>, what: &str) -> Result<()> {
    let mut first = HashMap::new();
    for (name, line) in blocks {
        if let Some(before) = first.insert(name, line) {
            bail!("line {line}: {what} {name}: listed twice, first in line {before}");
        }
    }
    Ok(())
}
