//! A feed that is written to a file.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use market_feed::{MarketConfig, RecordingConfig, Runner, Startup, StartupStep};
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;
use tokio::sync::oneshot;
use tt_journal::Progress;

use crate::feed::{Source, deadline};
use crate::queue::LOOK_EVERY;
use crate::{FeedError, RecordingError};

/// What is written is synced at most this much later.
const SYNC_EVERY: Duration = Duration::from_millis(10);

/// A feed that is written to a file. It never blocks the feed; what finds no room is counted.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct Recorder {
    path: PathBuf,
    state: Mutex<State>,
}

enum State {
    Running(Runner),
    Ended(Progress),
}

/// A start on another thread.
enum Started {
    Unreached(String),
    Failed(String),
    Running(Box<Runner>),
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> PyResult<Progress> {
        let progress = match &*self.lock() {
            State::Running(runner) => runner.recording().unwrap_or_default(),
            State::Ended(progress) => progress.clone(),
        };
        match &progress.failure {
            Some(failure) => {
                let (path, reason) = (self.path.display(), &failure.reason);
                Err(RecordingError::new_err(format!("{path}: recording stopped: {reason}")))
            }
            None => Ok(progress),
        }
    }
}

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, source: Source, path: PathBuf, append: bool, packed: bool, timeout: f64) -> PyResult<Self> {
        let deadline = deadline(Some(timeout))?;
        let feeds = vec![source.config()?];
        let recording = RecordingConfig { path: path.clone(), append, sync_every: SYNC_EVERY, packed };
        let market = MarketConfig { feeds, recording: Some(recording), ..MarketConfig::default() };
        let startup = Startup::new(market).map_err(|error| FeedError::new_err(format!("{error:#}")))?;
        let (stop, stopped) = oneshot::channel();
        let (steps, started) = sync_channel(64);
        std::thread::Builder::new().name("truetick-start".to_owned()).spawn(move || {
            let mut stopped = stopped;
            let mut startup = startup;
            loop {
                let step = match startup.advance(async { drop((&mut stopped).await) }) {
                    Ok(StartupStep::Unreached(venue)) => Started::Unreached(venue.error),
                    Ok(StartupStep::Started(runner)) => Started::Running(Box::new(runner)),
                    Ok(StartupStep::Ended) => return,
                    Err(error) => Started::Failed(format!("{error:#}")),
                };
                let is_last = !matches!(step, Started::Unreached(_));
                // Whoever waited may be gone; a runner that is dropped leaves its threads.
                if let Err(error) = steps.send(step)
                    && let Started::Running(runner) = error.0
                {
                    runner.stop();
                }
                if is_last {
                    return;
                }
            }
        })?;
        let runner = running(py, &started, deadline);
        if runner.is_err() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        let runner = runner?;
        let reader = runner.reader();
        let refusals = (0..reader.feeds_len()).flat_map(|index| reader.status(index).refusals);
        let refusals: Vec<String> = refusals.map(|refusal| refusal.reason).collect();
        if !refusals.is_empty() {
            py.detach(|| runner.stop());
            return Err(FeedError::new_err(refusals.join("; ")));
        }
        Ok(Self { path, state: Mutex::new(State::Running(runner)) })
    }

    /// Records that were written.
    #[getter]
    fn records(&self) -> PyResult<u64> {
        self.progress().map(|progress| progress.written)
    }

    /// Bytes that were written.
    #[getter]
    fn bytes(&self) -> PyResult<u64> {
        self.progress().map(|progress| progress.bytes)
    }

    /// Records that were dropped because the disk was too slow; the recording counts them, too.
    #[getter]
    fn dropped(&self) -> PyResult<u64> {
        self.progress().map(|progress| progress.dropped())
    }

    /// Waits `seconds`, or for ever. Raises RecordingError if nothing can be written any more.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let deadline = deadline(seconds)?;
        while matches!(&*self.lock(), State::Running(_)) {
            self.progress()?;
            let left = deadline.map_or(LOOK_EVERY, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            py.detach(|| std::thread::sleep(left.min(LOOK_EVERY)));
            py.check_signals()?;
        }
        Ok(())
    }

    /// Closes the connections and brings the recording to its end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.lock();
            if let State::Running(runner) = std::mem::replace(&mut *state, State::Ended(Progress::default())) {
                *state = State::Ended(runner.stop().unwrap_or_default());
            }
        });
        self.progress().map(drop)
    }

    const fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

/// Waits for the start.
fn running(py: Python<'_>, started: &Receiver<Started>, deadline: Option<Instant>) -> PyResult<Runner> {
    let mut last = "the venue does not list its instruments in time".to_owned();
    loop {
        // The receiver is this thread's alone.
        match started.recv_timeout(Duration::ZERO) {
            Ok(Started::Running(runner)) => return Ok(*runner),
            Ok(Started::Failed(error)) => return Err(FeedError::new_err(error)),
            Ok(Started::Unreached(error)) => last = error,
            Err(RecvTimeoutError::Timeout) => py.detach(|| std::thread::sleep(LOOK_EVERY / 10)),
            Err(RecvTimeoutError::Disconnected) => return Err(FeedError::new_err(last)),
        }
        py.check_signals()?;
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(PyConnectionError::new_err(last));
        }
    }
}
