//! Which of a venue's reports of an order's terms is the latest.

use super::{Bits, Orders};
use crate::fields::visit;
use tt_model::Report;

/// The order in which a venue has changed an order, as far as its reports say.
///
/// A report may come late or twice. Terms that may be old never lower a quantity, since the venue may work more of it;
/// terms that may be older than a bust or a correction count the lots that corrections have added once more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Versions {
    /// Version of the terms that were taken over last.
    terms: u64,
    /// Version of the last bust or correction.
    executions: u64,
    /// Lots by which corrections have enlarged the order since terms that include them.
    pub(crate) added: i64,
    /// The quantity was enlarged.
    is_raised: bool,
    /// The quantity was enlarged by a report without a version.
    is_raised_blindly: bool,
    /// Terms were taken over from a report without a version.
    is_stated_blindly: bool,
}

/// Why an order has other terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A replace has asked for them.
    Replace,
    /// The venue has set them.
    Venue,
}

/// What a bust or a correction does to the quantity of its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Includes {
    /// The order's terms are older.
    No,
    /// They may be older.
    Maybe,
    /// They include it.
    Yes,
}

impl Versions {
    /// Returns whether a report of `version` is older than the terms that were taken over.
    pub(crate) const fn is_old(&self, version: u64) -> bool {
        version != 0 && version < self.terms
    }

    /// Returns whether a report of `version` is later than the terms that were taken over.
    pub(crate) const fn is_later(&self, version: u64) -> bool {
        version > self.terms
    }

    /// Returns the most that the order can be of by a report of `version` that states `qty`.
    pub(crate) fn most(&self, version: u64, qty: i64, cause: Cause) -> i64 {
        if self.is_latest(version, cause) { qty } else { qty.saturating_add(self.added) }
    }

    /// Returns whether no change of the order is later than a report of `version`.
    fn is_latest(&self, version: u64, cause: Cause) -> bool {
        match version {
            Report::CURRENT => true,
            0 => self.added == 0 && (cause == Cause::Replace || !self.is_raised),
            version => version > self.terms.max(self.executions) && !self.is_raised_blindly,
        }
    }

    /// Takes over `qty`, stated by a report of `version` in place of `kept`; returns the order's quantity from now on,
    /// `None` if the report changes no terms.
    pub(crate) fn take(&mut self, version: u64, [kept, qty]: [i64; 2], cause: Cause) -> Option<i64> {
        let is_answer = cause == Cause::Replace;
        let is_blind = is_blind(version);
        let is_latest = self.is_latest(version, cause);
        let most = self.most(version, qty, cause);
        if self.is_old(version) || (!is_latest && !is_answer && most < kept) {
            return None;
        }
        if !is_blind {
            self.terms = self.terms.max(version);
        }
        self.added = if is_latest { 0 } else { self.added };
        self.is_stated_blindly |= is_blind;
        self.is_raised |= most > kept;
        self.is_raised_blindly |= most > kept && is_blind;
        Some(most)
    }

    /// Takes note of a bust or a correction of `version`.
    pub(crate) fn take_execution(&mut self, version: u64) -> Includes {
        if is_blind(version) {
            let has_terms = self.terms > 0 || self.is_stated_blindly;
            return if has_terms { Includes::Maybe } else { Includes::No };
        }
        self.executions = self.executions.max(version);
        match version {
            version if version < self.terms => Includes::Yes,
            version if version == self.terms || self.is_stated_blindly => Includes::Maybe,
            _ => Includes::No,
        }
    }

    /// Takes note of `lots` by which a correction of `version` enlarges the order.
    pub(crate) fn add(&mut self, version: u64, lots: i64) {
        self.added = self.added.saturating_add(lots);
        self.is_raised |= lots > 0;
        self.is_raised_blindly |= lots > 0 && is_blind(version);
    }
}

/// Returns whether a version cannot be compared with others.
const fn is_blind(version: u64) -> bool {
    version == 0 || version == Report::CURRENT
}

impl Orders {
    /// Returns what is known of the order of changes of the order at `slot`.
    pub(crate) fn versions(&self, slot: u32) -> Versions {
        let is_known = self.records[slot as usize].bits.has(Bits::VERSIONS_KEPT);
        if is_known { self.versions[slot as usize] } else { Versions::default() }
    }

    /// Keeps it.
    pub(crate) fn keep_versions(&mut self, slot: u32, versions: Versions) {
        self.records[slot as usize].bits.set(Bits::VERSIONS_KEPT);
        self.versions[slot as usize] = versions;
    }
}

visit!(Versions: terms, executions, added, is_raised, is_raised_blindly, is_stated_blindly);
