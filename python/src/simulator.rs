//! Simulated venues on loopback.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sim::{Config, Fault, Running, Venue};

/// Simulated venues on loopback: scripted books over real WebSocket and REST.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct Simulator(Mutex<Option<Running>>);

/// A venue as its name is typed.
fn venue(name: &str) -> PyResult<Venue> {
    let name = name.replace('-', "_");
    Venue::ALL.into_iter().find(|venue| venue.name() == name).ok_or_else(|| {
        let names = Venue::ALL.map(Venue::name).join(", ");
        PyValueError::new_err(format!("the simulator has no {name:?}: one of {names}"))
    })
}

impl Simulator {
    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, look: impl FnOnce(&Running) -> PyResult<T>) -> PyResult<T> {
        look(self.lock().as_ref().ok_or_else(|| PyRuntimeError::new_err("the simulator is closed"))?)
    }
}

/// The index of a venue's symbol.
fn index(running: &Running, venue: Venue, symbol: &str) -> PyResult<usize> {
    let found = running.instruments(venue).iter().position(|listed| listed.symbol == symbol);
    found.ok_or_else(|| PyKeyError::new_err(symbol.to_owned()))
}

#[pymethods]
impl Simulator {
    #[new]
    #[pyo3(signature = (*, instruments=3, rate=200.0, seed=1))]
    fn new(instruments: u32, rate: f64, seed: u64) -> PyResult<Self> {
        if !(rate.is_finite() && rate >= 0.0) {
            return Err(PyValueError::new_err(format!("rate must be zero or more, not {rate}")));
        }
        let running = sim::start(Config { instruments, rate_hz: rate, seed, ..Config::default() })?;
        Ok(Self(Mutex::new(Some(running))))
    }

    /// The names of the simulated venues.
    #[getter]
    fn venues(&self) -> Vec<&'static str> {
        Venue::ALL.into_iter().map(Venue::name).collect()
    }

    /// The WebSocket address of a venue.
    fn url(&self, venue: &str) -> PyResult<String> {
        let venue = self::venue(venue)?;
        self.with(|running| Ok(format!("ws://{}{}", running.address(venue), venue.streams_path())))
    }

    /// The symbols of a venue.
    fn symbols(&self, venue: &str) -> PyResult<Vec<String>> {
        let venue = self::venue(venue)?;
        self.with(|running| Ok(running.instruments(venue).into_iter().map(|listed| listed.symbol).collect()))
    }

    /// Makes `count` updates of a symbol at once; returns the script's number of the last one.
    #[pyo3(signature = (venue, symbol, count=1))]
    fn step(&self, py: Python<'_>, venue: &str, symbol: &str, count: u64) -> PyResult<u64> {
        let venue = self::venue(venue)?;
        py.detach(|| self.with(|running| Ok(running.step(venue, index(running, venue, symbol)?, count))))
    }

    /// Injects a fault into the next update of a symbol: `drop`, `duplicate`, `reorder`, `flip-digit`, `checksum`,
    /// `truncate`, `delay`, `half-open`, `reset`.
    fn fault(&self, venue: &str, symbol: &str, kind: &str) -> PyResult<()> {
        let venue = self::venue(venue)?;
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == kind).ok_or_else(|| {
            let names = Fault::ALL.map(Fault::name).join(", ");
            PyValueError::new_err(format!("no fault is called {kind:?}: one of {names}"))
        })?;
        self.with(|running| {
            running.fault(venue, index(running, venue, symbol)?, fault);
            Ok(())
        })
    }

    /// The true book of a symbol: the script's number of the update, bids and asks as price and quantity in the
    /// simulator's steps (`10**-decimals`), best first, and the decimals of price and quantity.
    #[expect(clippy::type_complexity, reason = "a tuple for tests")]
    fn truth(&self, venue: &str, symbol: &str) -> PyResult<(u64, Vec<(i64, i64)>, Vec<(i64, i64)>, (u32, u32))> {
        let venue = self::venue(venue)?;
        self.with(|running| {
            let index = index(running, venue, symbol)?;
            let (update_id, book) = running.truth(venue, index);
            let listed = &running.instruments(venue)[index];
            let bids = book.bids().map(|(px, qty)| (*px, *qty)).collect();
            let asks = book.asks().map(|(px, qty)| (*px, *qty)).collect();
            Ok((update_id, bids, asks, (listed.px_decimals, listed.qty_decimals)))
        })
    }

    const fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __exit__(&self, py: Python<'_>, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        self.close(py);
    }

    /// Stops the venues.
    fn close(&self, py: Python<'_>) {
        let running = self.lock().take();
        py.detach(|| drop(running));
    }
}
