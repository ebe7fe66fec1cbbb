//! Instruments as venues list them: symbols, price and quantity steps.

mod entry;
mod terms;

use crate::error::ParseError;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tt_model::Decimal;

pub use crate::status::InstrumentStatus;
pub(crate) use entry::{Entry, entries};
pub use terms::{InstrumentKind, OptionRight, Terms};

/// An instrument as its venue lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The venue's symbol.
    pub symbol: String,
    /// `BTC/USDT` on spot markets, `BTC/USDT:USDT` for a contract that settles in USDT; with an end
    /// `BTC/USD:BTC-20270326`, as an option `BTC/USD:BTC-20270326-50000-C`.
    pub name: String,
    /// The price step.
    pub tick_size: Decimal,
    /// The quantity step.
    pub lot_size: Decimal,
    /// The size of one unit of quantity.
    pub unit: ContractUnit,
    /// What distinguishes it from others of its pair.
    pub terms: Terms,
    /// The symbol of its frames and subscriptions, if that is another one.
    pub alias: Option<String>,
}

impl Listing {
    /// Returns the symbol of its frames and subscriptions.
    #[must_use]
    pub fn frame_symbol(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.symbol)
    }
}

/// Appends `#` and the symbol to each name that several symbols share.
pub fn distinguish(listings: &mut [Listing]) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for listing in listings.iter() {
        let symbol = *first.entry(&listing.name).or_insert(&listing.symbol);
        if symbol != listing.symbol {
            shared.insert(listing.name.clone());
        }
    }
    for listing in listings.iter_mut().filter(|listing| shared.contains(&listing.name)) {
        listing.name = format!("{}#{}", listing.name, listing.symbol);
    }
}

/// The size of one unit of an instrument's quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContractUnit {
    /// One of the base asset: spot markets, and linear contracts that count so.
    #[default]
    Base,
    /// A linear contract over so much of the base asset.
    Linear(Decimal),
    /// An inverse contract, worth so much of the quote asset and settled in the base asset.
    Inverse(Decimal),
}

/// Reads one answer with instruments; entries that it does not understand are left out.
///
/// It fails if the answer is not a list of instruments.
pub type ListParser = fn(&[u8]) -> Result<Vec<Listing>, ParseError>;

/// A venue's list of instruments.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentList {
    /// How it is requested.
    pub request: ListRequest,
    /// Reads an answer.
    pub parse: ListParser,
    /// How further pages are requested.
    pub pages: Pages,
    /// Returns the family of a symbol, which fills `{family}` of a path or a topic; `None` for symbols without one.
    pub family: Option<fn(&str) -> Option<&str>>,
    /// Returns the series of an event's symbol, which fills `{series}` of a path; `None` for other symbols.
    pub series: Option<fn(&str) -> Option<&str>>,
}

impl InstrumentList {
    /// Returns a list without pages and families.
    #[must_use]
    pub const fn new(request: ListRequest, parse: ListParser) -> Self {
        Self { request, parse, pages: Pages::One, family: None, series: None }
    }
}

/// How further pages of a list are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// An answer holds everything.
    One,
    /// An answer names the next page.
    Cursor {
        /// Where the name is; it is empty on the last page.
        path: &'static [&'static str],
        /// What it follows in the next request.
        parameter: &'static str,
    },
    /// An answer says how many entries there are.
    Offset {
        /// Where that is.
        total: &'static str,
        /// Where the entries are.
        list: &'static str,
        /// What the number of entries so far follows in the next request.
        parameter: &'static str,
    },
}

impl Pages {
    /// Returns what the path of the next page ends with, after `known` entries of earlier pages and those of `body`;
    /// `None` after the last page.
    #[must_use]
    pub fn next(self, body: &[u8], known: usize) -> Option<String> {
        match self {
            Self::One => None,
            Self::Cursor { path, parameter } => {
                let (last, objects) = path.split_last()?;
                let entry = objects.iter().try_fold(Entry::new(body), |entry, key| entry.object(key))?;
                entry.text(last).map(|cursor| format!("{parameter}{cursor}"))
            }
            Self::Offset { total, parameter, .. } => {
                let (entry, here) = (Entry::new(body), self.count(body));
                let total = entry.number(total).and_then(|total| usize::try_from(total.mantissa).ok())?;
                (here > 0 && known + here < total).then(|| format!("{parameter}{}", known + here))
            }
        }
    }

    /// Returns the number of entries of `body` where that is counted.
    #[must_use]
    pub fn count(self, body: &[u8]) -> usize {
        match self {
            Self::One | Self::Cursor { .. } => 0,
            Self::Offset { list, .. } => Entry::new(body).array(list).map_or(0, |entries| entries.len()),
        }
    }
}

/// A list that is requested by POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedList {
    /// The JSON text.
    pub body: &'static str,
    /// The start of the symbols that it lists: it is requested if one of them is followed.
    pub prefix: &'static str,
}

impl PostedList {
    /// Returns a list that is always requested.
    #[must_use]
    pub const fn of_all(body: &'static str) -> Self {
        Self { body, prefix: "" }
    }
}

/// How a list of instruments is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListRequest {
    /// REST paths that list every instrument together; one with `{family}` or `{series}` is requested for each that is
    /// followed.
    Get(&'static [&'static str]),
    /// A REST path with `{symbols}`, which lists these symbols.
    GetSymbols(&'static str),
    /// A REST path and what is posted to it, one after the other; the answers are read as one array.
    Post(&'static str, &'static [PostedList]),
    /// A message on the WebSocket.
    Message(&'static str),
}
