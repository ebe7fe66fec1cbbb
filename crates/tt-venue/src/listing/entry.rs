//! Members of a list's entries, without a limit on the number of keys.

use super::{Listing, Terms};
use crate::error::ParseError;
use crate::json::{self, Elements, Members};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;
use tt_model::{Decimal, Nanos};

/// The year 9999 and a day: what is later is no time.
const MILLIS_MAX: u64 = 253_402_300_800_000;

/// A JSON object of a list.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    raw: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Takes `raw`, which is read when a member is.
    pub(crate) const fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// Returns the raw value of `key`.
    pub(crate) fn raw(self, key: &str) -> Option<&'a [u8]> {
        let mut members = Members::parse(self.raw).ok()?;
        while let Some((found, value)) = members.next().ok()? {
            if found == key.as_bytes() {
                return Some(value);
            }
        }
        None
    }

    /// Returns the object under `key`.
    pub(crate) fn object(self, key: &str) -> Option<Self> {
        self.raw(key).filter(|raw| raw.starts_with(b"{")).map(Self::new)
    }

    /// Returns the objects of the array under `key`.
    pub(crate) fn array(self, key: &str) -> Option<Vec<Self>> {
        let mut elements = Elements::parse(self.raw(key)?).ok()?;
        let mut entries = Vec::new();
        while let Some(element) = elements.next().ok()? {
            entries.push(Self::new(element));
        }
        Some(entries)
    }

    /// Returns the text of `key`, if it is not empty.
    pub(crate) fn text(self, key: &str) -> Option<&'a str> {
        let text = str::from_utf8(json::text(self.raw(key)?).ok()?).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns the text of `key`, if it is not empty.
    pub(crate) fn string(self, key: &str) -> Option<String> {
        self.text(key).map(String::from)
    }

    /// Returns the exact number of `key`, in quotes or not.
    pub(crate) fn number(self, key: &str) -> Option<Decimal> {
        let raw = self.raw(key)?;
        Decimal::parse(json::text(raw).unwrap_or(raw)).ok()
    }

    /// Returns the time of `key` in milliseconds, in quotes or not; none for zero.
    pub(crate) fn millis(self, key: &str) -> Option<Nanos> {
        let number = self.number(key).filter(|number| number.decimals == 0)?;
        let ms = u64::try_from(number.mantissa).ok().filter(|ms| (1..=MILLIS_MAX).contains(ms))?;
        Some(Nanos::from_millis(ms))
    }

    /// Returns the small whole number of `key`.
    pub(crate) fn small(self, key: &str) -> Option<u8> {
        u8::try_from(json::bare_u64(self.raw(key)?).ok()?).ok()
    }
}

/// Reads the array at `path` of `body` with `read`, which returns `None` for entries to leave out.
///
/// # Errors
/// `MissingKey` if `body` has no such array, or why it is not JSON.
pub(crate) fn entries(
    body: &[u8],
    path: &[&str],
    read: impl Fn(Entry<'_>) -> Option<Listing>,
) -> Result<Vec<Listing>, ParseError> {
    let mut raw = body;
    for key in path {
        raw = Entry::new(raw).raw(key).ok_or(ParseError::MissingKey)?;
    }
    let mut elements = Elements::parse(raw)?;
    let mut listings = Vec::new();
    while let Some(element) = elements.next()? {
        listings.extend(read(Entry::new(element)));
    }
    Ok(listings)
}

impl Listing {
    /// Returns `BTC/USDT`, or `BTC/USDT:USDT` for a contract that settles in USDT, with expiry and strike of `terms`.
    pub(crate) fn name_of(base: &str, quote: &str, settle: Option<&str>, terms: &Terms) -> String {
        let pair = settle.map_or_else(|| format!("{base}/{quote}"), |settle| format!("{base}/{quote}:{settle}"));
        pair + &terms.suffix()
    }
}
