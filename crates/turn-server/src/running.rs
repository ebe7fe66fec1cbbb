//! A running server: its addresses, its status, reload, drain and stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tt_net::Waker;
use tt_os::clock;
use tt_status::accounting::Count;
use tt_status::turn::{AllocationAdmin, CallErrors, Memory, Operator, TurnStatus};
use tt_status::{Reading, timing};
use turn_config::{ExternalCredentials, TurnConfig};

use crate::commands::WorkerHandles;
use crate::counters::{self, Totals};
use crate::ended_allocations::EndedAllocations;
use crate::event_log::LogLoss;
use crate::listeners::StreamAddr;
use crate::memory::MemoryReader;
use crate::messages::MessageCounts;
use crate::operator::Orders;
use crate::records::RecordCounts;
use crate::worker_set::WorkerSet;

/// A running server. Without [`Running::stop`] its threads run until the process ends.
#[derive(Debug)]
pub struct Running {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) streams: Vec<StreamAddr>,
    pub(crate) listens: Vec<String>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) wakers: Vec<Waker>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) worker_set: Arc<WorkerSet>,
    pub(crate) status: StatusReader,
}

/// Reads the status of the workers from any thread.
#[derive(Clone, Debug)]
pub(crate) struct StatusReader {
    pub(crate) worker_set: Arc<WorkerSet>,
    pub(crate) sample_one_in: u32,
    pub(crate) log_loss: LogLoss,
    pub(crate) records: Option<Arc<RecordCounts>>,
    pub(crate) ended: EndedAllocations,
    pub(crate) messages: Option<Arc<MessageCounts>>,
    pub(crate) memory: MemoryReader,
}

impl Running {
    /// Returns the addresses of all listeners at the start, as `TRANSPORT ADDRESS`.
    #[must_use]
    pub fn listens(&self) -> &[String] {
        &self.listens
    }

    /// Returns the addresses that accepted connections at the start.
    #[must_use]
    pub fn streams(&self) -> &[StreamAddr] {
        &self.streams
    }

    /// Returns the UDP addresses at the start, with the kernel's choice for port 0.
    #[must_use]
    pub fn listen(&self) -> &[SocketAddr] {
        &self.listen
    }

    /// Returns the counters as of at most 100 ms ago.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.status.totals()
    }

    /// Returns the reading of the status, for the control plane.
    #[must_use]
    pub fn reading(&self) -> Reading<TurnStatus> {
        let status = self.status.clone();
        Arc::new(move || status.read())
    }

    /// Returns access to the live allocations of all workers, for the control plane.
    #[must_use]
    pub fn allocation_admin(&self) -> Arc<dyn AllocationAdmin> {
        Arc::new(WorkerHandles::new(self.worker_set.workers.clone(), self.status.ended.clone()))
    }

    /// Returns bans and drains, for the control plane.
    #[must_use]
    pub fn operator(&self) -> Arc<dyn Operator> {
        Arc::new(Orders { workers: self.worker_set.workers.clone(), blueprint: Arc::clone(&self.worker_set.blueprint) })
    }

    /// Rejects new allocations from now on; live allocations continue.
    pub fn drain(&self) {
        self.worker_set.blueprint.shared.drain();
    }

    /// Returns the number of live allocations.
    #[must_use]
    pub fn allocations(&self) -> u32 {
        self.worker_set.blueprint.shared.allocations()
    }

    /// As [`Reloader::reload`].
    ///
    /// # Errors
    /// As [`Reloader::reload`].
    pub fn reload(&self, config: TurnConfig) -> anyhow::Result<()> {
        self.reloader().reload(config, || Ok(()))
    }

    /// Returns access to the configuration, for the thread that reads it again.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        Reloader { worker_set: Arc::clone(&self.worker_set) }
    }

    /// Returns access to further users and secrets, if the configuration says that they are provided.
    #[must_use]
    pub fn credential_sink(&self) -> CredentialSink {
        CredentialSink { worker_set: Arc::clone(&self.worker_set) }
    }

    /// Stops the workers after their current round and returns the final counters.
    pub fn stop(self) -> Totals {
        self.stop.store(true, Ordering::Relaxed);
        self.wakers.iter().for_each(Waker::wake);
        self.worker_set.workers.all().iter().for_each(|handle| handle.waker.wake());
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        for thread in self.threads.into_iter().chain(self.worker_set.end()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the TURN server panicked");
            }
        }
        self.status.totals().settle()
    }
}

/// Replaces the configuration of a running server, from any thread.
#[derive(Clone, Debug)]
pub struct Reloader {
    worker_set: Arc<WorkerSet>,
}

impl Reloader {
    /// Applies these parts of `config` to every worker or to none: users, secrets, realms, quotas, certificates, peer
    /// rules, lifetimes, listeners, workers, relay addresses and ports, how workers wait and send, and how requests are
    /// answered. Live allocations and open connections continue, also where nothing is listened on any more.
    ///
    /// `before` runs when nothing of it can fail any more: whatever belongs to the same change and may fail.
    ///
    /// # Errors
    /// A certificate cannot be used, an address cannot be listened on, no socket can be bound on a new relay address, a
    /// system call failed, or `before` did; everything stays as it was.
    pub fn reload(&self, config: TurnConfig, before: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let (serving, workers) = (self.worker_set.serving(), config.workers);
        let applied = self.worker_set.blueprint.reload(config, || {
            // New workers serve before anything changes, and retire if nothing does.
            self.worker_set.grow(workers)?;
            if let Err(error) = before() {
                self.worker_set.shrink(serving);
                return Err(error);
            }
            Ok(self.worker_set.workers.all())
        });
        if applied.is_ok() {
            self.worker_set.shrink(workers);
        }
        applied
    }
}

/// Replaces the users and secrets that come from outside the configuration, from any thread.
#[derive(Clone, Debug)]
pub struct CredentialSink {
    worker_set: Arc<WorkerSet>,
}

impl CredentialSink {
    /// Puts `credentials` in place of those of the last call, and returns whether they differ. A configuration without
    /// [`ExternalUsers::Provided`](crate::ExternalUsers::Provided) takes none.
    ///
    /// # Errors
    /// A system call failed; the old ones stay in force.
    pub fn replace(&self, credentials: ExternalCredentials) -> anyhow::Result<bool> {
        self.worker_set.blueprint.replace_external(credentials, &self.worker_set.workers.all())
    }
}

impl StatusReader {
    fn totals(&self) -> Totals {
        Totals::of(self.worker_set.statuses().iter().map(Arc::as_ref))
    }

    fn read(&self) -> TurnStatus {
        let (totals, statuses) = (self.totals(), self.worker_set.statuses());
        let each = || statuses.iter().map(Arc::as_ref);
        TurnStatus {
            listens: self.worker_set.blueprint.listening().names(),
            realm: self.worker_set.blueprint.realm(),
            workers: self.worker_set.serving(),
            ledger: totals.accounting(),
            stages: timing::stages(&counters::stages(each()), self.sample_one_in, clock::calibration()),
            allocations: totals.allocations(self.worker_set.blueprint.allocations_max()),
            bindings: totals.bindings(),
            streams: totals.streams(),
            draining: self.worker_set.blueprint.shared.is_draining(),
            workers_down: each().filter(|worker| worker.is_down.load(Ordering::Relaxed)).count(),
            panics: each().map(|worker| worker.panics.load(Ordering::Relaxed)).sum(),
            kernel_lost: totals.kernel_lost(),
            overloads: totals.overloads(),
            kernel_path: self.worker_set.blueprint.kernel_path().map(|path| path.status(totals.kernel_relayed())),
            events_lost: vec![
                Count { name: "engine", count: totals.events_lost().rejected },
                Count { name: "log", count: self.log_loss.events() },
            ],
            memory: self.memory.max_bytes().map(|max_bytes| Memory {
                resident_bytes: self.memory.resident_bytes(),
                max_bytes,
                is_full: self.worker_set.blueprint.shared.is_memory_full(),
            }),
            records: self.records(&totals),
            ended_by_realm: self.ended.by_realm(),
            messages: self.messages.as_ref().map(|counts| counts.status()),
            faults: call_errors(&totals),
            errors: totals.errors(),
            failed_logins: self.log_loss.failed_logins(),
            rejected_sources: self.log_loss.rejected_sources(),
            refusals: totals.refusals(),
            denied: counters::rules(each()),
        }
    }
}

impl StatusReader {
    /// Returns the numbers of allocation records.
    fn records(&self, totals: &Totals) -> Vec<Count> {
        let Some(records) = &self.records else { return Vec::new() };
        vec![
            Count { name: "written", count: records.written() },
            Count { name: "write_failed", count: records.write_failed() },
            Count { name: "queue_full", count: records.given_up() + totals.events_lost().allocations },
        ]
    }
}

fn call_errors(totals: &Totals) -> Vec<CallErrors> {
    let failed =
        totals.faults().into_iter().map(|(call, error, count)| CallErrors { call, error: error.name(), count });
    let no_free_port = CallErrors { call: "relay sockets", error: "no_free_port", count: totals.no_free_port() };
    failed.chain(Some(no_free_port).filter(|errors| errors.count > 0)).collect()
}
