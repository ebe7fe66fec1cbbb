//! Levels of one side of a book as memory that NumPy reads in place.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::image::BookImage;

/// The memory of an array: pairs of price and quantity, in steps. The array keeps it alive.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct Levels {
    image: Arc<BookImage>,
    start: usize,
    len: usize,
}

impl Levels {
    pub(crate) const fn new(image: Arc<BookImage>, start: usize, len: usize) -> Self {
        Self { image, start, len }
    }
}

#[pymethods]
impl Levels {
    /// The array's address, shape and type (NumPy's array interface, version 3), read-only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let levels = &self.image.levels[self.start..self.start + self.len];
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (levels.len(), 2))?;
        interface.set_item("typestr", if cfg!(target_endian = "little") { "<i8" } else { ">i8" })?;
        interface.set_item("data", (levels.as_ptr().addr(), true))?;
        Ok(interface)
    }
}
