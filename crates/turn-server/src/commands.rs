//! Commands of the control plane to the workers. A worker executes them between two batches, from a bounded queue.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use tt_model::{Nanos, Transport};
use tt_net::Waker;
use tt_status::turn::{
    AllocationAdmin, AllocationCursor, AllocationPage, EndedUsers, LiveAllocation, NoReply, ReplyFuture,
};
use tt_turn::config::{Config as EngineConfig, RealmConfig};
use tt_turn::credential::{Secrets, UserPart};
use tt_turn::event::EndReason;
use tt_turn::shared::Limits;
use tt_turn::{LiveAllocation as EngineAllocation, Server, WorkerId};
use turn_config::{AllocationCaps, DscpSet, PeerPolicies, StreamLimits};

use crate::ended_allocations::EndedAllocations;
use crate::hand_off::WorkerEndpoint;
use crate::listeners::ListenerChange;
use crate::relay_pool::RelayPlan;
use crate::relays::announce;

/// Length of a worker's command queue.
pub(crate) const COMMANDS_MAX: usize = 16;
/// How long the control plane waits for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// A command that a worker executes.
pub(crate) enum WorkerCommand {
    /// For its engine.
    Engine(Box<EngineCommand>),
    /// For its loop. The sender is dropped when it uses them.
    Settings(LoopSettings, Sender<()>),
    /// For its listeners. The sender is dropped when they have changed.
    Listeners(ListenerChange, Sender<()>),
    /// The links to new workers. The sender is dropped when they are known.
    Links(Vec<(WorkerId, WorkerEndpoint)>, Sender<()>),
    /// It gives up its listeners, and ends once it has nothing more to serve.
    Retire,
    /// It does not retire any more, and says so.
    Serve(Sender<()>),
}

/// How a worker's loop waits and sends, and the limits of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopSettings {
    /// How long it polls without blocking after the last datagram.
    pub(crate) busy_poll: Nanos,
    /// DSCP values that relayed datagrams may have.
    pub(crate) dscp_allow: DscpSet,
    pub(crate) streams: StreamLimits,
}

/// What a reload replaces in the engine of a worker; the users come before.
pub(crate) struct EngineReload {
    /// Without peer rules.
    pub(crate) config: EngineConfig,
    pub(crate) caps: AllocationCaps,
    pub(crate) secrets: Secrets,
    pub(crate) policies: PeerPolicies,
}

/// What a reload has replaced in a worker.
pub(crate) struct Retired(#[expect(dead_code, reason = "it is only freed")] Box<dyn Send>);

type EngineCommand = dyn FnOnce(&mut Server, Nanos) + Send;

impl WorkerCommand {
    /// Makes a command of a function of the engine and the time.
    pub(crate) fn new(run: impl FnOnce(&mut Server, Nanos) + Send + 'static) -> Self {
        Self::Engine(Box::new(run))
    }

    /// Replaces quotas, realms and the addresses of relays while `secrets` are in force, and sends `retired` what was
    /// replaced.
    pub(crate) fn replace_surroundings(
        (limits, realms, plan): (Arc<Limits>, Vec<RealmConfig>, RelayPlan),
        secrets: Secrets,
        retired: Sender<Retired>,
    ) -> Self {
        Self::new(move |server, _| {
            let before = server.replace_limits(limits);
            server.replace_realms(&realms, &secrets);
            if let Err(error) = announce(&plan, server) {
                tracing::error!(%error, "the engine rejected a relay address");
            }
            // Without a receiver the worker frees it.
            let _ = retired.send(Retired(Box::new((before, realms, plan, secrets))));
        })
    }

    /// Replaces a part of the users, and sends `retired` what was replaced.
    pub(crate) fn replace_users(part: UserPart, retired: Sender<Retired>) -> Self {
        Self::new(move |server, _| {
            let before = server.replace_users(&part);
            drop(part);
            // Without a receiver the worker frees it.
            let _ = retired.send(Retired(Box::new(before)));
        })
    }

    /// Replaces what `next` contains, and sends `retired` what was replaced: to free it takes longer than a worker may
    /// pause.
    pub(crate) fn reload(next: EngineReload, retired: Sender<Retired>) -> Self {
        Self::new(move |server, now| {
            let EngineReload { config, caps, secrets, policies: (policy, further) } = next;
            server.replace_config(config);
            server.set_allocation_caps(caps.permissions, caps.channels);
            let before = (server.replace_secrets(now, &secrets), server.replace_policies(policy, further));
            // Without a receiver the worker frees it.
            let _ = retired.send(Retired(Box::new(before)));
        })
    }
}

impl fmt::Debug for WorkerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerCommand(..)")
    }
}

/// Handle for sending commands to one worker.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) commands: SyncSender<WorkerCommand>,
    pub(crate) waker: Waker,
    pub(crate) has_ended: Arc<AtomicBool>,
}

/// The workers by their numbers, also those that have ended. A reload changes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workers(Arc<ArcSwap<Vec<WorkerHandle>>>);

impl Workers {
    /// Returns the workers of now.
    pub(crate) fn all(&self) -> Arc<Vec<WorkerHandle>> {
        self.0.load_full()
    }

    /// Returns the workers of now that have not ended.
    fn live(&self) -> Vec<(usize, WorkerHandle)> {
        let all = self.all();
        let live = all.iter().enumerate().filter(|(_, handle)| !handle.has_ended.load(Ordering::Acquire));
        live.map(|(number, handle)| (number, handle.clone())).collect()
    }

    /// Returns the workers of now that have not ended.
    pub(crate) fn handles(&self) -> Vec<WorkerHandle> {
        self.live().into_iter().map(|(_, handle)| handle).collect()
    }

    pub(crate) fn replace(&self, workers: Vec<WorkerHandle>) {
        self.0.store(Arc::new(workers));
    }
}

impl WorkerHandle {
    /// Sends a command, and waits while the queue is full. Returns false if the worker has ended.
    pub(crate) fn send(&self, command: WorkerCommand) -> bool {
        let is_sent = self.commands.send(command).is_ok();
        self.waker.wake();
        is_sent
    }

    /// Runs `query` on the worker's thread and returns its result.
    async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Server, Nanos) -> T + Send + 'static,
    ) -> Result<T, NoReply> {
        let (to, reply) = oneshot::channel();
        let command = WorkerCommand::new(move |server, now| {
            // The receiver is gone after a time-out.
            let _ = to.send(query(server, now));
        });
        self.commands.try_send(command).map_err(|_| NoReply)?;
        self.waker.wake();
        in_time(reply).await
    }

    /// Runs `order` on the worker's thread and returns its result. It runs also if the queue is full now.
    pub(crate) async fn order<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Server, Nanos) -> T + Send + 'static,
    ) -> Result<T, NoReply> {
        let (to, reply) = oneshot::channel();
        let command = WorkerCommand::new(move |server, now| {
            // The receiver is gone after a time-out.
            let _ = to.send(order(server, now));
        });
        let handle = self.clone();
        tokio::task::spawn_blocking(move || handle.send(command));
        in_time(reply).await
    }
}

async fn in_time<T>(reply: oneshot::Receiver<T>) -> Result<T, NoReply> {
    match tokio::time::timeout(REPLY_TIMEOUT, reply).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) | Err(_) => Err(NoReply),
    }
}

/// The live allocations of all workers.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandles {
    workers: Workers,
    ended: EndedAllocations,
}

impl WorkerHandles {
    pub(crate) fn new(workers: Workers, ended: EndedAllocations) -> Self {
        Self { workers, ended }
    }

    async fn page(&self, from: AllocationCursor, rows_max: usize) -> Result<AllocationPage, NoReply> {
        let mut rows = Vec::new();
        for (number, worker) in self.workers.live().into_iter().filter(|(number, _)| *number >= from.worker) {
            // One row more than requested shows whether there is another page.
            if rows.len() > rows_max {
                break;
            }
            let slot = if number == from.worker { from.slot } else { 0 };
            let more = rows_max + 1 - rows.len();
            let page = worker.ask(move |server, now| {
                let live = server.live_allocations().filter(|live| live.place >= slot && live.expires > now);
                live.take(more).map(|live| row(number, &live, now)).collect::<Vec<_>>()
            });
            rows.extend(page.await?);
        }
        let next = rows.get(rows_max).map(|row| AllocationCursor { worker: row.worker, slot: row.slot });
        rows.truncate(rows_max);
        Ok(AllocationPage { rows, next })
    }

    async fn find(&self, relayed: SocketAddr) -> Result<Option<LiveAllocation>, NoReply> {
        for (number, worker) in self.workers.live() {
            let found = worker.ask(move |server, now| {
                let mut live = server.live_allocations().filter(|live| live.expires > now);
                live.find(|live| has_relayed_addr(live, relayed)).map(|live| row(number, &live, now))
            });
            if let Some(found) = found.await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn end(&self, relayed: SocketAddr) -> Result<bool, NoReply> {
        for worker in self.workers.handles() {
            let ended = worker.ask(move |server, now| {
                let found = server.live_allocations().find(|live| has_relayed_addr(live, relayed));
                let flow = found.map(|live| live.flow);
                flow.is_some_and(|flow| server.end_flow(now, &flow, EndReason::Operator))
            });
            if ended.await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl WorkerHandles {
    async fn end_user(&self, user: String, realm: Option<String>) -> Result<u64, NoReply> {
        let (user, realm): (Arc<str>, Option<Arc<str>>) = (user.into(), realm.map(Into::into));
        let mut ended = Ok(0);
        for worker in self.workers.handles() {
            let (user, realm) = (Arc::clone(&user), realm.clone());
            let reply = worker
                .ask(move |server, now| server.end_user(now, realm.as_deref(), user.as_bytes(), EndReason::Operator));
            // The other workers end theirs, also if one does not reply.
            let reply = reply.await;
            ended = ended.and_then(|sum: u64| Ok(sum + u64::from(reply?)));
        }
        ended
    }
}

impl AllocationAdmin for WorkerHandles {
    fn page(&self, from: AllocationCursor, rows_max: usize) -> ReplyFuture<'_, AllocationPage> {
        Box::pin(self.page(from, rows_max))
    }

    fn find(&self, relayed: SocketAddr) -> ReplyFuture<'_, Option<LiveAllocation>> {
        Box::pin(self.find(relayed))
    }

    fn end(&self, relayed: SocketAddr) -> ReplyFuture<'_, bool> {
        Box::pin(self.end(relayed))
    }

    fn ended_users(&self, rows_max: usize) -> EndedUsers {
        self.ended.users(rows_max)
    }

    fn end_user(&self, user: String, realm: Option<String>) -> ReplyFuture<'_, u64> {
        Box::pin(self.end_user(user, realm))
    }
}

fn has_relayed_addr(live: &EngineAllocation<'_>, relayed: SocketAddr) -> bool {
    live.relayed == relayed || live.relayed_second == Some(relayed)
}

fn row(worker: usize, live: &EngineAllocation<'_>, now: Nanos) -> LiveAllocation {
    LiveAllocation {
        worker,
        slot: live.place,
        client: live.flow.client,
        server: live.flow.server,
        transport: transport_name(live.flow.transport),
        relayed: live.relayed,
        relayed_second: live.relayed_second,
        realm: live.realm.to_owned(),
        user: String::from_utf8_lossy(live.user).into_owned(),
        age_s: now.saturating_sub(live.made).0 / Nanos::PER_SECOND,
        expires_s: live.expires.saturating_sub(now).0.div_ceil(Nanos::PER_SECOND),
        permissions: live.permissions,
        channels: live.channels,
        to_peers_bytes: live.bytes_to_peers,
        to_client_bytes: live.bytes_to_client,
    }
}

/// Returns the name of `transport` in the API and in log events.
pub(crate) const fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
    }
}
