//! A book after an update, with its proof.

use std::sync::Arc;

use market_feed::{BookEventKind, BookSide, BookStatus};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDelta, PyList, PyType};

use crate::image::BookImage;
use crate::levels::Levels;
use crate::text;

/// `numpy.asarray`.
static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// `truetick.Level`.
static LEVEL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `BookStatus::proof_age_us` of a proof that is older than it can say, or never was.
const AGE_UNKNOWN_US: u32 = (1 << 28) - 1;

/// How a book was verified.
#[pyclass(frozen, eq, hash, module = "truetick._truetick")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Proof {
    word: u64,
}

#[pymethods]
impl Proof {
    /// Whether the levels were verified at their last update.
    #[getter]
    fn ok(&self) -> bool {
        self.status().proof.is_verified()
    }

    /// `crc`, `sequence`, `oracle`, `snapshot`; or `syncing`, `unverified`, `stale`, which are not `ok`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.status().proof.name()
    }

    /// A sentence about the kind.
    #[getter]
    fn reason(&self) -> &'static str {
        match self.status().proof {
            market_feed::Proof::Syncing => "there is no book yet: a snapshot is awaited",
            market_feed::Proof::Crc => "the venue's checksum over the best levels fits",
            market_feed::Proof::Sequence => "each update followed the one before by number",
            market_feed::Proof::Oracle => "the venue's best bid and offer of the same update fit",
            market_feed::Proof::Unverified => "the venue offers nothing to verify with",
            market_feed::Proof::Stale => "the book is incomplete or silent: an update is missing or was rejected",
            market_feed::Proof::Snapshot => "a REST snapshot fitted all of its levels",
        }
    }

    /// Time from the proof to `ts_recv`; `None` if it is more than 268 s, or there never was a proof.
    #[getter]
    fn age<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDelta>>> {
        let us = self.status().proof_age_us;
        let (seconds, us_left) = (us / 1_000_000, us % 1_000_000);
        (us < AGE_UNKNOWN_US).then(|| PyDelta::new(py, 0, seconds as i32, us_left as i32, false)).transpose()
    }

    /// Whether the best bid is above the best offer.
    #[getter]
    fn is_crossed(&self) -> bool {
        self.status().is_crossed
    }

    /// Whether the best bid equals the best offer.
    #[getter]
    fn is_locked(&self) -> bool {
        self.status().is_locked
    }

    fn __bool__(&self) -> bool {
        self.ok()
    }

    fn __repr__(&self) -> String {
        format!("Proof({})", self.kind())
    }
}

impl Proof {
    fn status(&self) -> BookStatus {
        BookStatus::from_bits(self.word)
    }
}

/// A book after an update. It does not change.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct Book {
    image: Arc<BookImage>,
    venue: &'static str,
    symbol: Arc<str>,
}

impl Book {
    pub(crate) fn new(image: BookImage, venue: &'static str, symbol: Arc<str>) -> Self {
        Self { image: Arc::new(image), venue, symbol }
    }

    /// The levels and their proof.
    pub(crate) fn image(&self) -> &BookImage {
        &self.image
    }

    /// Start and number of the best `n` levels of a side; all that are kept if `n` is `None`.
    fn range(&self, side: BookSide, n: Option<usize>) -> PyResult<(usize, usize)> {
        let (start, len) = self.image.range(side);
        let has_more = self.image.has_more[side as usize];
        match n {
            Some(n) if n > len && has_more => Err(PyValueError::new_err(format!(
                "{n} levels: this book keeps the best {len} of more; ask for them with levels={n}"
            ))),
            Some(n) => Ok((start, len.min(n))),
            None => Ok((start, len)),
        }
    }

    fn array<'py>(&self, py: Python<'py>, side: BookSide, n: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let (start, len) = self.range(side, n)?;
        let asarray = ASARRAY.get_or_try_init(py, || py.import("numpy")?.getattr("asarray").map(Bound::unbind))?;
        asarray.bind(py).call1((Levels::new(Arc::clone(&self.image), start, len),))
    }

    fn decimals<'py>(&self, py: Python<'py>, side: BookSide, n: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let (start, len) = self.range(side, n)?;
        let levels = (start..start + len).map(|index| self.level(py, index)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, levels)
    }

    fn best<'py>(&self, py: Python<'py>, side: BookSide) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (start, len) = self.image.range(side);
        (len > 0).then(|| self.level(py, start)).transpose()
    }

    fn level<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let (px, qty) = self.image.level(index);
        let level = LEVEL.import(py, "truetick._level", "Level")?;
        level.call1((text::decimal(py, &px)?, text::decimal(py, &qty)?))
    }
}

#[pymethods]
impl Book {
    /// The venue's name.
    #[getter]
    pub(crate) const fn venue(&self) -> &'static str {
        self.venue
    }

    /// The venue's symbol.
    #[getter]
    pub(crate) fn symbol(&self) -> &str {
        &self.symbol
    }

    /// How the book was verified.
    #[getter]
    fn proof(&self) -> Proof {
        Proof { word: self.image.status.to_bits() }
    }

    /// `snapshot`, `delta`, or `status` if the proof alone is another one.
    #[getter]
    pub(crate) fn kind(&self) -> &'static str {
        match self.image.kind {
            BookEventKind::Snapshot => "snapshot",
            BookEventKind::Delta => "delta",
            BookEventKind::Status => "status",
        }
    }

    /// The venue's time in nanoseconds of the Unix epoch; `None` if it sends none.
    #[getter]
    fn ts_event(&self) -> Option<u64> {
        Some(self.image.ts_event.0).filter(|ns| *ns > 0)
    }

    /// When the update was received, in nanoseconds of the Unix epoch.
    #[getter]
    fn ts_recv(&self) -> u64 {
        self.image.ts_recv.0
    }

    /// The venue's number of the update.
    #[getter]
    fn update_id(&self) -> u64 {
        self.image.update_id
    }

    /// The number of the update before.
    #[getter]
    fn previous_id(&self) -> u64 {
        self.image.previous_id
    }

    /// Updates of this symbol between the book read before and this one that were dropped: the reader was too slow.
    #[getter]
    fn missed(&self) -> u64 {
        self.image.missed
    }

    /// The price step: prices of `bids` and `asks` count it.
    #[getter]
    fn tick_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        text::step(py, self.image.tick_size)
    }

    /// The quantity step: quantities of `bids` and `asks` count it.
    #[getter]
    fn lot_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        text::step(py, self.image.lot_size)
    }

    /// The best bid in decimal numbers; `None` if there is none.
    #[getter]
    fn best_bid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.best(py, BookSide::Bid)
    }

    /// The best offer in decimal numbers; `None` if there is none.
    #[getter]
    fn best_ask<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.best(py, BookSide::Ask)
    }

    /// The best `n` bids, best first: an array of price and quantity in steps, without a copy.
    #[pyo3(signature = (n=None))]
    fn bids<'py>(&self, py: Python<'py>, n: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, BookSide::Bid, n)
    }

    /// The best `n` offers, best first: an array of price and quantity in steps, without a copy.
    #[pyo3(signature = (n=None))]
    fn asks<'py>(&self, py: Python<'py>, n: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, BookSide::Ask, n)
    }

    /// The best `n` bids in decimal numbers, best first.
    #[pyo3(signature = (n=None))]
    fn bid_levels<'py>(&self, py: Python<'py>, n: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        self.decimals(py, BookSide::Bid, n)
    }

    /// The best `n` offers in decimal numbers, best first.
    #[pyo3(signature = (n=None))]
    fn ask_levels<'py>(&self, py: Python<'py>, n: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        self.decimals(py, BookSide::Ask, n)
    }

    fn __repr__(&self) -> String {
        let text = |side| match self.image.range(side) {
            (_, 0) => "-".to_owned(),
            (start, _) => {
                let (px, qty) = self.image.level(start);
                format!("{qty} @ {px}")
            }
        };
        let (bid, ask) = (text(BookSide::Bid), text(BookSide::Ask));
        let (venue, symbol, kind) = (self.venue, &self.symbol, self.proof().kind());
        format!("Book({venue} {symbol} {}: {bid} | {ask}, {kind})", self.image.update_id)
    }
}
