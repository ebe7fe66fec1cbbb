//! The Python module `truetick._truetick`: feeds, books, recordings and a simulator.
//!
//! The package in `python/truetick` gives it its documented interface. A wait releases the interpreter lock and ends
//! with Ctrl-C.

#![forbid(unsafe_code)]

mod arrow;
mod audit;
mod book;
mod feed;
mod frames;
mod gate;
mod image;
mod levels;
mod player;
mod queue;
mod recorder;
mod replay;
mod simulator;
mod text;

use pyo3::prelude::*;

pyo3::create_exception!(truetick, FeedError, pyo3::exceptions::PyException, "A feed that cannot be followed.");
pyo3::create_exception!(
    truetick,
    RecordingError,
    pyo3::exceptions::PyException,
    "A recording that cannot be read or written, or that leads to another state than the recorded one."
);

#[pymodule]
mod _truetick {
    #[pymodule_export]
    use super::FeedError;
    #[pymodule_export]
    use super::RecordingError;
    #[pymodule_export]
    use super::arrow::ArrowBooks;
    #[pymodule_export]
    use super::audit::examine_recording;
    #[pymodule_export]
    use super::book::Book;
    #[pymodule_export]
    use super::book::Proof;
    #[pymodule_export]
    use super::feed::Feed;
    #[pymodule_export]
    use super::feed::venues;
    #[pymodule_export]
    use super::frames::FrameReader;
    #[pymodule_export]
    use super::gate::Gate;
    #[pymodule_export]
    use super::recorder::Recorder;
    #[pymodule_export]
    use super::replay::Replay;
    #[pymodule_export]
    use super::simulator::Simulator;
}
