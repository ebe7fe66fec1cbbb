//! One feed: a thread, its engine, and one connection after the other.

mod connection;
mod fallback;
mod incidents;
mod link;
mod orders;
mod relisting;
mod snapshots;
mod succession;
mod symbols;
mod verification;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;

use tokio::sync::watch;
use tt_market::Applied;
use tt_market::DropReason;
use tt_meter::Clock;
use tt_model::InstrumentId;
use tt_os::clock::unix_now;
use tt_venue::Symbol;
use tt_venue::event::UnderlyingHours;

use super::account::RequestLogin;
use super::address::{Address, Addresses};
use super::backoff::Backoff;
use super::frame_timings::FrameTimings;
use super::instruments::Instruments;
use super::intake::Intake;
use super::settings::FeedConfig;
use super::status::{ChangeSignal, FeedStatus, SharedStatus};
use connection::Ended;
use relisting::Relisting;
pub(super) use symbols::Command;
use symbols::ListWatch;
use verification::{Compare, Verifier};

/// One feed, owned by its thread.
pub(super) struct Feed {
    pub(super) config: FeedConfig,
    /// The engine's number of each of `config.symbols`.
    pub(super) instruments: Vec<InstrumentId>,
    pub(super) intake: Intake,
    pub(super) clock: Clock,
    /// What its venue still allows this host.
    pub(super) address: Address,
    pub(super) timings: FrameTimings,
    pub(super) status: FeedStatus,
    pub(super) shared_status: Arc<SharedStatus>,
    pub(super) change_signal: ChangeSignal,
    /// Messages of each instrument of the engine.
    pub(super) messages: Arc<[AtomicU64]>,
    /// Its place among the feeds.
    pub(super) index: usize,
    /// The instruments as others see them.
    pub(super) shown: Arc<Instruments>,
    /// What other threads request.
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) list_watch: ListWatch,
    relisting: Relisting,
    verifier: Verifier,
    /// Of the running connection, if its requests need one.
    login: Option<RequestLogin>,
    /// Whether a book of `status.incidents` is not proved again yet.
    has_open_incidents: bool,
}

impl Feed {
    /// Whether own orders or positions are expected.
    pub(super) const fn has_account(&self) -> bool {
        self.config.account.is_some() || self.config.listen_key.is_some() || !self.config.positions.is_empty()
    }

    pub(super) fn new(
        config: FeedConfig,
        intake: Intake,
        timings: FrameTimings,
        clock: Clock,
        change_signal: ChangeSignal,
        addresses: &Addresses,
    ) -> Self {
        let address = addresses.of(&config);
        let find = |symbol: &String| {
            let symbol = Symbol::new(symbol.as_bytes()).ok()?;
            intake.engine().find_instrument(config.venue, &symbol)
        };
        let instruments: Vec<InstrumentId> = config.symbols.iter().filter_map(find).collect();
        let once = config.rules().snapshot.is_some_and(|rule| rule.compare_once);
        let when = config.verify_every.map_or(if once { Compare::Once } else { Compare::Never }, Compare::Every);
        let verifier = Verifier::new(when, instruments.len());
        let list_watch = ListWatch::new(config.list_every);
        let messages = instruments.iter().map(|_| AtomicU64::new(0)).collect();
        Self {
            config,
            instruments,
            intake,
            clock,
            address,
            timings,
            status: FeedStatus::default(),
            shared_status: Arc::new(SharedStatus::default()),
            change_signal,
            messages,
            index: 0,
            shown: Arc::new(Instruments::new()),
            commands: mpsc::channel().1,
            list_watch,
            relisting: Relisting::new(),
            verifier,
            login: None,
            has_open_incidents: false,
        }
    }

    /// Follows the venue on the calling thread until `stop` says true.
    pub(super) fn run(mut self, mut stop: watch::Receiver<bool>) {
        if let Some(cpu) = self.config.cpu
            && let Err(error) = tt_os::cpu::pin(cpu)
        {
            tracing::warn!(cpu, %error, "market: the thread could not be pinned");
        }
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!(%error, "market: no runtime"),
        };
        runtime.block_on(self.follow(&mut stop));
        self.intake.end(unix_now());
        self.publish();
    }

    /// One connection after the other, with growing waits between those that fail.
    async fn follow(&mut self, stop: &mut watch::Receiver<bool>) {
        let mut backoff = Backoff::new(self.config.timing.backoff_min, self.config.timing.backoff_max);
        while !*stop.borrow() {
            let ended = connection::run(self, stop.clone(), &mut backoff).await;
            self.status.connected = false;
            let reason = match ended {
                Ended::Stopped => break,
                Ended::Lost(reason) => reason,
            };
            tracing::warn!(venue = self.config.venue.name(), %reason, "market: connection lost");
            self.note_lost_connection(&reason);
            self.status.last_error = Some(reason);
            self.publish();
            let wait = backoff.fail();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
    }

    /// The venue's symbol of an instrument.
    pub(super) fn symbol(&self, instrument: InstrumentId) -> Option<&str> {
        let index = self.instruments.iter().position(|known| *known == instrument)?;
        self.config.symbols.get(index).map(String::as_str)
    }

    /// Counts a message for its instrument; for the first of several.
    pub(super) fn count_message(&self, applied: Result<Applied, DropReason>) {
        let engine = self.intake.engine();
        let id = match applied {
            Ok(Applied::Trades) => {
                let first = engine.last_entries().trades().first();
                first.and_then(|trade| engine.find_instrument(self.config.venue, &trade.symbol))
            }
            Ok(applied) => applied.instrument(),
            Err(_) => None,
        };
        if let Some(count) = id.and_then(|id| self.messages.get(id.0 as usize)) {
            // This thread alone writes.
            count.store(count.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Shows the session of a market that contracts of the venue follow.
    fn take_session(&mut self, session: UnderlyingHours) {
        if self.status.take_session(session) {
            let (venue, market) = (self.config.venue.name(), session.market.name());
            tracing::info!(venue, market, session = session.session.name(), "market: trading session");
        }
    }

    /// Shows status, times and counters.
    pub(super) fn publish(&mut self) {
        self.intake.publish_counters();
        self.shared_status.publish_status(&self.status);
        self.shared_status.publish_times(self.timings.times());
        self.change_signal.notify();
    }
}
