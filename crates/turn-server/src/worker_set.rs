//! The workers of a server, whose number a reload changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use arc_swap::ArcSwap;
use tt_net::Poller;
use tt_turn::WorkerId;
use turn_config::WORKERS_MAX;

use crate::blueprint::{Blueprint, WorkerIo, change_listeners};
use crate::commands::{COMMANDS_MAX, WorkerCommand, WorkerHandle, Workers};
use crate::counters::WorkerStatus;
use crate::hand_off::{InboundRings, WorkerEndpoint};
use crate::listeners::{self, ListenerChange};
use crate::supervisor::supervise;
use crate::worker::{Outputs, Parts};

/// Maximum number of ready sockets per poll.
const READY_MAX: usize = 1_024;
/// How long a change waits for workers.
const REPLY_WITHIN: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(1);

/// The workers of a server. A worker that retires keeps its number until it has ended, and a later one gets it again.
#[derive(Debug)]
pub(crate) struct WorkerSet {
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) workers: Workers,
    /// By the number of the worker, also of those that have ended.
    statuses: ArcSwap<Vec<Arc<WorkerStatus>>>,
    endpoints: Mutex<Vec<WorkerEndpoint>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Workers that do not retire: the first ones.
    serving: AtomicUsize,
    /// Until the end: the threads of log, records and messages end with the last sender.
    outputs: Mutex<Option<Outputs>>,
}

/// A worker before its thread starts.
#[derive(Debug)]
pub(crate) struct PreparedWorker {
    parts: Parts,
    handle: WorkerHandle,
    endpoint: WorkerEndpoint,
}

impl WorkerSet {
    /// Returns a set without workers.
    pub(crate) fn new(blueprint: Arc<Blueprint>, outputs: Outputs) -> Self {
        Self {
            blueprint,
            workers: Workers::default(),
            statuses: ArcSwap::default(),
            endpoints: Mutex::default(),
            threads: Mutex::default(),
            serving: AtomicUsize::new(0),
            outputs: Mutex::new(Some(outputs)),
        }
    }

    /// Returns the status of every worker since the start.
    pub(crate) fn statuses(&self) -> Arc<Vec<Arc<WorkerStatus>>> {
        self.statuses.load_full()
    }

    /// Returns the number of workers that do not retire.
    pub(crate) fn serving(&self) -> usize {
        self.serving.load(Ordering::Relaxed)
    }

    /// Starts no more workers, and returns the threads of those that there are.
    pub(crate) fn end(&self) -> Vec<JoinHandle<()>> {
        *self.outputs() = None;
        std::mem::take(&mut self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Prepares workers with these numbers, in their order, each with its listeners.
    ///
    /// # Errors
    /// A system call failed.
    pub(crate) fn prepare(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        shares: Vec<ListenerChange>,
    ) -> anyhow::Result<Vec<PreparedWorker>> {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut worker_ios = Vec::with_capacity(shares.len());
        for (number, listeners) in numbers.into_iter().zip(shares) {
            let poller = Poller::new(READY_MAX).context("turn: cannot poll sockets")?;
            let (new_rings, inbound) = sync_channel(WORKERS_MAX);
            let endpoint = WorkerEndpoint { new_rings, waker: poller.waker() };
            put_at(&mut endpoints, number, endpoint.clone());
            let (to, commands) = sync_channel(COMMANDS_MAX);
            let handle = WorkerHandle { commands: to, waker: poller.waker(), has_ended: Arc::default() };
            let worker_io = WorkerIo { poller, listeners, inbound: InboundRings::new(inbound), commands };
            worker_ios.push((number, worker_io, handle, endpoint));
        }
        let statuses = self.statuses();
        let outputs = self.outputs().clone().context("turn: the server ends")?;
        let prepare_one = |(number, worker_io, handle, endpoint): (usize, WorkerIo, _, _)| {
            let id = WorkerId(u16::try_from(number).unwrap_or(u16::MAX));
            let mut parts = self.blueprint.worker(id, worker_io, endpoints.clone(), outputs.clone())?;
            let path = self.blueprint.kernel_path().map(|path| path.worker(id.0)).transpose()?;
            parts.paths = path.flatten();
            if let Some(status) = statuses.get(number) {
                parts.continue_from(status);
            }
            Ok(PreparedWorker { parts, handle, endpoint })
        };
        worker_ios.into_iter().map(prepare_one).collect()
    }

    /// Starts the threads of prepared workers.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(&self, prepared: Vec<PreparedWorker>) -> anyhow::Result<()> {
        let mut workers = Vec::clone(&self.workers.all());
        let mut statuses = Vec::clone(&self.statuses());
        for PreparedWorker { parts, handle, endpoint } in prepared {
            let number = usize::from(parts.server.worker().0);
            let (blueprint, status, ended) =
                (Arc::clone(&self.blueprint), Arc::clone(&parts.status), Arc::clone(&handle.has_ended));
            // The worker is created on its thread: the buffers of system calls are not `Send`.
            let run = move || {
                supervise(parts, &blueprint);
                ended.store(true, Ordering::Release);
            };
            let thread = thread::Builder::new().name(format!("turn-{number}")).spawn(run);
            let thread = thread.context("turn: cannot start a thread")?;
            self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
            put_at(&mut self.endpoints.lock().unwrap_or_else(PoisonError::into_inner), number, endpoint);
            put_at(&mut statuses, number, status);
            put_at(&mut workers, number, handle);
            self.statuses.store(Arc::new(statuses.clone()));
            self.workers.replace(workers.clone());
        }
        Ok(())
    }

    /// Sets the number of workers of the start.
    pub(crate) fn set_serving(&self, workers: usize) {
        self.serving.store(workers, Ordering::Relaxed);
    }

    /// Lets `next` workers serve, if they are fewer now. On an error those of before do.
    ///
    /// # Errors
    /// A system call failed, or a worker that retires is down.
    pub(crate) fn grow(&self, next: usize) -> anyhow::Result<()> {
        let serving = self.serving();
        if next <= serving {
            return Ok(());
        }
        if let Some(ports) = self.blueprint.relay_pool.shared() {
            let most = ports.workers();
            ensure!(next <= most, "a restart is needed for turn.workers above {most} while relays share sockets");
        }
        self.serving.store(next, Ordering::Relaxed);
        let grown = self.resume(serving, next).and_then(|ended| self.start_new(&ended));
        let grown = grown.and_then(|()| self.share_listeners(serving, next));
        if grown.is_err() {
            self.shrink(serving);
        }
        grown
    }

    /// Lets the workers from number `next` on retire.
    pub(crate) fn shrink(&self, next: usize) {
        let serving = self.serving();
        if next < serving {
            self.serving.store(next, Ordering::Relaxed);
            let workers = self.workers.all();
            workers.iter().skip(next).for_each(|handle| {
                handle.send(WorkerCommand::Retire);
            });
        }
    }

    /// Lets workers that retire serve again, and returns the numbers of those that have ended or never were.
    fn resume(&self, first: usize, next: usize) -> anyhow::Result<Vec<usize>> {
        let workers = self.workers.all();
        let mut ended = Vec::new();
        for number in first..next {
            let (done, is_done) = channel();
            match workers.get(number).map(|handle| handle.send(WorkerCommand::Serve(done))) {
                None | Some(false) => ended.push(number),
                Some(true) => match is_done.recv_timeout(REPLY_WITHIN) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Timeout) => bail!("turn.workers: worker {number} is down; try again"),
                    Err(RecvTimeoutError::Disconnected) => ended.push(number),
                },
            }
        }
        Ok(ended)
    }

    /// Starts new workers with these numbers.
    fn start_new(&self, numbers: &[usize]) -> anyhow::Result<()> {
        let former = self.workers.all();
        let deadline = Instant::now() + REPLY_WITHIN;
        for handle in numbers.iter().filter_map(|number| former.get(*number)) {
            // It drops what it had.
            while !handle.has_ended.load(Ordering::Acquire) && Instant::now() < deadline {
                thread::park_timeout(RETRY);
            }
        }
        let none = numbers.iter().map(|_| ListenerChange::default()).collect();
        let prepared = self.prepare(numbers.iter().copied(), none)?;
        let links: Vec<_> = prepared.iter().map(|new| (new.parts.server.worker(), new.endpoint.clone())).collect();
        self.start(prepared)?;
        let workers = self.workers.all();
        let (done, all_done) = channel();
        for (number, handle) in workers.iter().enumerate() {
            if numbers.contains(&number) {
                let blueprint = Arc::clone(&self.blueprint);
                handle.send(WorkerCommand::new(move |server, _| blueprint.repeat_orders(server)));
            } else {
                handle.send(WorkerCommand::Links(links.clone(), done.clone()));
            }
        }
        drop(done);
        // It ends when all senders are gone. A worker that is down learns of them when it starts again.
        let _ = all_done.recv_timeout(REPLY_WITHIN);
        Ok(())
    }

    fn outputs(&self) -> MutexGuard<'_, Option<Outputs>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives workers sockets of every listener.
    fn share_listeners(&self, first: usize, next: usize) -> anyhow::Result<()> {
        let sockets = listeners::bind_further(&self.blueprint.listening(), next - first)?;
        let shares = listeners::share_out(sockets, next - first);
        change_listeners(self.workers.all().iter().skip(first).zip(shares));
        Ok(())
    }
}

/// Puts `value` at a place, or behind the last one.
fn put_at<T>(values: &mut Vec<T>, place: usize, value: T) {
    match values.get_mut(place) {
        Some(before) => *before = value,
        None => values.push(value),
    }
}
