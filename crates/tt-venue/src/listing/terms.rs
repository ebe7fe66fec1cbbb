//! What distinguishes the instruments of one pair: kind, expiry, strike; and whether they are traded.

use crate::status::InstrumentStatus;
use alloc::format;
use alloc::string::String;
use tt_model::{Decimal, Nanos};

/// The kind of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstrumentKind {
    /// A spot market.
    #[default]
    Spot,
    /// A contract without an end.
    Perpetual,
    /// A contract that ends at its expiry.
    Future,
    /// An option.
    Option,
    /// A contract that pays one unit if an event happens, and nothing if it does not.
    Event,
}

impl InstrumentKind {
    /// The kind's name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spot => "spot",
            Self::Perpetual => "perpetual",
            Self::Future => "future",
            Self::Option => "option",
            Self::Event => "event",
        }
    }
}

/// What the owner of an option may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionRight {
    /// Buy at the strike.
    Call,
    /// Sell at the strike.
    Put,
}

impl OptionRight {
    /// The right's name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Put => "put",
        }
    }

    /// Returns the right of a word that begins with C or P.
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word.as_bytes().first() {
            Some(b'C' | b'c') => Some(Self::Call),
            Some(b'P' | b'p') => Some(Self::Put),
            Some(_) | None => None,
        }
    }
}

/// What distinguishes an instrument from others of its pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The kind.
    pub kind: InstrumentKind,
    /// When it ends, Unix epoch; `None` where it does not, or the list does not say.
    pub expiry: Option<Nanos>,
    /// An option's strike.
    pub strike: Option<Decimal>,
    /// An option's right.
    pub right: Option<OptionRight>,
    /// Whether it is traded.
    pub status: InstrumentStatus,
}

impl Terms {
    /// The end of the normalised name: `-20270326`, `-20270326-50000-C`; empty for spot markets and perpetuals.
    pub(crate) fn suffix(&self) -> String {
        let mut suffix = self.expiry.map_or_else(String::new, |expiry| format!("-{}", date(expiry)));
        if let Some(strike) = self.strike {
            suffix.push_str(&format!("-{strike}"));
        }
        suffix.push_str(match self.right {
            Some(OptionRight::Call) => "-C",
            Some(OptionRight::Put) => "-P",
            None => "",
        });
        suffix
    }
}

/// The day of a time in UTC, as eight digits. The calendar's 400 years have 146,097 days.
fn date(at: Nanos) -> String {
    let days = at.0 / (86_400 * Nanos::PER_SECOND) + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}{month:02}{day:02}", era * 400 + year_of_era + next_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0, "19700101"),
            (951_782_399, "20000228"),
            (951_782_400, "20000229"),
            (951_868_800, "20000301"),
            (1_798_761_599, "20261231"),
            (1_798_761_600, "20270101"),
            (4_107_542_400, "21000301"),
        ] {
            assert_eq!(date(Nanos::from_secs(seconds)), day);
        }
    }
}
