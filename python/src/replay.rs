//! Books of a recording.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::RecordingError;
use crate::arrow::ArrowBooks;
use crate::book::Book;
use crate::player::{Outcome, Played, Player, error};

/// Records between two looks at signals.
const RECORDS_PER_LOOK: usize = 4096;

/// A recording through the engine again: an iterator of the books that the live feed had.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct Replay {
    path: PathBuf,
    state: Mutex<State>,
}

enum State {
    Playing(Box<Player>),
    Ended(Outcome),
    Failed,
}

impl Replay {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next book; `None` at the end of the recording.
    fn advance(&self, py: Python<'_>) -> PyResult<Option<Book>> {
        loop {
            let played = py.detach(|| self.lock().step());
            match played.map_err(|failure| error(&failure))? {
                Played::Book(book) => return Ok(Some(book)),
                Played::Ended => return Ok(None),
                Played::Nothing => py.check_signals()?,
            }
        }
    }

    /// Something of the result, after the rest of the recording.
    fn outcome<T>(&self, py: Python<'_>, look: impl FnOnce(&Outcome) -> T) -> PyResult<T> {
        while self.advance(py)?.is_some() {}
        match &*self.lock() {
            State::Ended(outcome) => Ok(look(outcome)),
            State::Playing(_) | State::Failed => Err(RecordingError::new_err("the replay has failed")),
        }
    }
}

impl State {
    fn step(&mut self) -> anyhow::Result<Played> {
        let Self::Playing(player) = self else { return Ok(Played::Ended) };
        let played = player.step(RECORDS_PER_LOOK);
        if !matches!(played, Ok(Played::Book(_) | Played::Nothing))
            && let Self::Playing(player) = std::mem::replace(self, Self::Failed)
            && played.is_ok()
        {
            *self = Self::Ended(player.finish());
        }
        played
    }
}

#[pymethods]
impl Replay {
    #[new]
    fn new(path: PathBuf, levels: usize) -> PyResult<Self> {
        if levels == 0 {
            return Err(PyValueError::new_err("levels must be at least 1"));
        }
        let player = Player::open(&path, levels).map_err(|failure| error(&failure))?;
        Ok(Self { path, state: Mutex::new(State::Playing(Box::new(player))) })
    }

    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Book>> {
        match self.advance(py)? {
            Some(book) => Ok(Some(book)),
            None => self.check(py).map(|()| None),
        }
    }

    /// Replays what is left. Raises RecordingError if the state is not the recorded one or the recording is damaged.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.outcome(py, Outcome::check)?.map_err(|failure| error(&failure))
    }

    /// Hash of the whole state at the end, as `truetick replay` prints it. Replays what is left.
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        self.outcome(py, |outcome| format!("{:016x}", outcome.hash))
    }

    /// Whether the recording contains states, and each is the same as the replayed one. Replays what is left.
    #[getter]
    fn is_right(&self, py: Python<'_>) -> PyResult<bool> {
        self.outcome(py, Outcome::is_right)
    }

    /// Recorded states that were compared. Replays what is left.
    #[getter]
    fn checkpoints(&self, py: Python<'_>) -> PyResult<u64> {
        self.outcome(py, Outcome::checkpoints)
    }

    /// Records of the file. Replays what is left.
    #[getter]
    fn records(&self, py: Python<'_>) -> PyResult<u64> {
        self.outcome(py, |outcome| outcome.records)
    }

    /// WebSocket frames of the file. Replays what is left.
    #[getter]
    fn frames(&self, py: Python<'_>) -> PyResult<u64> {
        self.outcome(py, |outcome| outcome.runs.iter().map(|run| run.frames).sum())
    }

    /// All books of the recording as an Arrow stream with the best `levels` of each side.
    #[pyo3(signature = (levels=20))]
    fn to_arrow(&self, levels: usize) -> PyResult<ArrowBooks> {
        ArrowBooks::new(self.path.clone(), levels)
    }
}
