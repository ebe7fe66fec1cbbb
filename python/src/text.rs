//! Numbers and names between Rust and Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use market_feed::{Decimal, Venue};

/// Python's `decimal.Decimal`.
static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns `text` as Python's exact decimal number.
pub(crate) fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    DECIMAL.import(py, "decimal", "Decimal")?.call1((text,))
}

/// Returns a step as Python's exact decimal number.
pub(crate) fn step(py: Python<'_>, size: Decimal) -> PyResult<Bound<'_, PyAny>> {
    decimal(py, &steps_text(1, size))
}

/// Returns `steps` of `size` as exact decimal text.
pub(crate) fn steps_text(steps: i64, size: Decimal) -> String {
    let level = market_feed::BookLevel { px: market_feed::Price(steps), qty: market_feed::Qty(0) };
    market_feed::level_text(level, size, size).0
}

/// Returns the venue called `name`, with `-` or `_`.
pub(crate) fn venue(name: &str) -> PyResult<Venue> {
    Venue::find(&name.replace('-', "_")).ok_or_else(|| {
        let names = Venue::ALL.map(Venue::name).join(", ");
        PyValueError::new_err(format!("no venue is called {name:?}: one of {names}"))
    })
}
