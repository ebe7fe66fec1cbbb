//! One connection from its handshake to its end.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_tungstenite::tungstenite::Message;
use tt_market::DropReason;
use tt_market::{Applied, BookUpdate, ConnectionId, Request};
use tt_model::InstrumentId;
use tt_os::clock::unix_now;

use super::Feed;
use super::link::{self, Link, Next, Received};
use super::relisting;
use super::snapshots::Fetched;
use super::succession::Succession;
use crate::account::{self, LoggedIn, LoginError, Renewal, RequestLogin};
use crate::address::Fetching;
use crate::arrivals::SilentTopic;
use crate::backoff::Backoff;
use crate::credentials::Credentials;
use crate::socket;
use crate::status::SILENT_MAX;
use crate::topics::{Answer, Outgoing, Refusal};

/// How often deadlines are looked at and numbers published.
const BEAT: Duration = Duration::from_millis(50);

/// Beats between two looks at what has arrived.
const BEATS_PER_SECOND: u32 = 20;

/// Beats between two looks at the distributions, which are larger.
const BEATS_PER_REPORT: u32 = 5;

/// Beats between two hashes of the published state in a recording.
const BEATS_PER_CHECKPOINT: u32 = 20;

/// Frames that are taken before timers and snapshots get their turn.
const FRAMES_PER_TURN: usize = 256;

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was asked to.
    Stopped,
    /// It was not.
    Lost(String),
}

/// The next login of requests, or nothing where a listen key goes on.
type Renewed = Result<Option<RequestLogin>, String>;

/// The WebSockets of a feed, which live and end together.
pub(super) struct Connection<'a> {
    pub(super) feed: &'a mut Feed,
    /// The first one carries the books.
    pub(super) links: Vec<Link>,
    /// The link that is listened to first, so that none waits for another for ever.
    pub(super) next_link: usize,
    pub(super) fetches: FuturesUnordered<Pin<Box<dyn Future<Output = Fetched>>>>,
    /// The books among them that are to begin.
    pub(super) fetching: Fetching,
    /// Books whose snapshots wait until the venue has answered all requests: one from before its updates cannot join.
    pub(super) held: Vec<InstrumentId>,
    /// When the account's login is to be renewed, and how.
    renewal: Option<(Instant, Renewal)>,
    renewing: FuturesUnordered<Pin<Box<dyn Future<Output = Renewed>>>>,
    /// The venue's list, where steps are finer than they were; at most one.
    pub(super) relisting: FuturesUnordered<relisting::Fetch>,
    pub(super) succession: Succession,
}

/// The listen key of an account whose orders come on the first link.
pub(super) fn listen_key(feed: &Feed, index: usize) -> Option<&str> {
    feed.config.listen_key.as_deref().filter(|_| index == 0 && feed.config.orders_address().is_none())
}

/// Connects, subscribes, and follows until something ends it. The books are stale when this returns.
pub(super) async fn run(feed: &mut Feed, mut stop: watch::Receiver<bool>, backoff: &mut Backoff) -> Ended {
    let (fetches, fetching, held) = (FuturesUnordered::new(), Fetching::default(), Vec::new());
    let (renewal, renewing, relisting) = (None, FuturesUnordered::new(), FuturesUnordered::new());
    let (links, succession) = (Vec::new(), Succession::new(feed));
    feed.verifier.end_step();
    let mut connection =
        Connection { succession, feed, links, next_link: 0, fetches, fetching, held, renewal, renewing, relisting };
    let opened = tokio::select! {
        _ = stop.wait_for(|stop| *stop) => Err(Ended::Stopped),
        opened = connection.open() => opened.map_err(Ended::Lost),
    };
    let ended = match opened {
        Ok(()) => connection.follow(stop, backoff).await,
        Err(ended) => ended,
    };
    connection.close(&ended).await;
    ended
}

impl Connection<'_> {
    async fn open(&mut self) -> Result<(), String> {
        let login = RequestLogin::new(self.feed.config.clone(), self.feed.clock).await;
        self.feed.login = login.map_err(|error| self.refused_login(error))?;
        for config in self.feed.config.links() {
            self.links.push(link::open(self.feed, &config).await?);
        }
        if let Some(address) = self.feed.config.orders_address() {
            let address = address.map_err(|error| format!("the orders' address: {error:#}"))?;
            let opened = socket::open(&address, self.feed.clock).await;
            let (socket, last_read) = opened.map_err(|error| format!("the orders' stream: {error:#}"))?;
            let login = LoggedIn { socket, last_read, early: Vec::new(), topics: 0, renewal: None };
            let books = self.links.first().map(|link| link.id);
            self.links.push(link::of_account(self.feed, login, books)?);
        }
        let has_topics = self.feed.config.rules().account.is_some_and(|stream| !stream.topics.is_empty());
        if let Some(account) = self.feed.config.account.clone().filter(|_| has_topics) {
            self.login(&account).await?;
        }
        self.feed.status.connections += 1;
        self.feed.status.silent_topics.clear();
        Ok(())
    }

    /// Why requests cannot be signed; a refusal is shown, too.
    fn refused_login(&mut self, error: LoginError) -> String {
        match error {
            LoginError::Unreached(reason) => format!("the login: {reason}"),
            LoginError::Refused(reason) => {
                self.feed.status.refuse(Refusal { subject: "account".to_owned(), reason: reason.clone() });
                format!("the login is refused: {reason}")
            }
        }
    }

    /// Opens the account's own stream. Where the venue refuses it, the books are followed nevertheless, and it is tried
    /// again with the next connection.
    async fn login(&mut self, account: &Credentials) -> Result<(), String> {
        let early = match account::login(&self.feed.config, account, self.feed.clock).await {
            Ok(mut login) => {
                let early = std::mem::take(&mut login.early);
                self.renewal = login.renewal.take().map(|renewal| (Instant::now() + renewal.every, renewal));
                let books = self.links.first().map(|link| link.id);
                self.links.push(link::of_account(self.feed, login, books)?);
                early
            }
            Err(LoginError::Unreached(reason)) => return Err(format!("the account's stream: {reason}")),
            Err(LoginError::Refused(reason)) => {
                let venue = self.feed.config.venue.name();
                tracing::warn!(venue, reason, "market: the account is refused");
                self.feed.status.refuse(Refusal { subject: "account".to_owned(), reason });
                return Ok(());
            }
        };
        for text in early {
            let received = self.feed.timings.received();
            self.take_bytes(self.links.len() - 1, text.as_bytes(), received);
        }
        Ok(())
    }

    async fn close(&mut self, ended: &Ended) {
        let now = unix_now();
        for link in &self.links {
            self.feed.intake.close_connection(link.id, now);
        }
        for link in &mut self.links {
            link.close(matches!(ended, Ended::Stopped)).await;
        }
    }

    async fn follow(&mut self, mut stop: watch::Receiver<bool>, backoff: &mut Backoff) -> Ended {
        self.take_commands();
        if let Err(reason) = self.follow_books() {
            return Ended::Lost(reason);
        }
        self.prepare_requests();
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beat_count = 0_u32;
        loop {
            let step = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ended::Stopped,
                _ = beats.tick() => {
                    beat_count = beat_count.wrapping_add(1);
                    self.beat(beat_count, backoff).await
                }
                Some(fetched) = self.fetches.next(), if !self.fetches.is_empty() => {
                    self.take_snapshot(fetched);
                    self.serve_requests()
                }
                Some(listed) = self.relisting.next(), if !self.relisting.is_empty() => {
                    self.take_list(listed);
                    self.serve_requests()
                }
                opened = self.succession.next() => {
                    self.take_successors(opened);
                    Ok(())
                }
                Some(renewed) = self.renewing.next(), if !self.renewing.is_empty() => {
                    self.take_renewed(renewed);
                    Ok(())
                }
                next = link::next(&mut self.links, self.next_link) => match next {
                    Next::Due(index) => match self.links[index].send_next() {
                        Err(reason) => self.lose_link(index, reason),
                        Ok(()) => Ok(()),
                    },
                    Next::Received(index, received) => {
                        self.next_link = index + 1;
                        match self.take_turn(index, received).await {
                            Err(reason) => self.lose_link(index, reason),
                            Ok(()) => {
                                self.look_settled(backoff);
                                Ok(())
                            }
                        }
                    }
                },
            };
            if let Err(reason) = step {
                return Ended::Lost(reason);
            }
        }
    }

    fn take_renewed(&mut self, renewed: Renewed) {
        match renewed {
            Ok(None) => {}
            Ok(login) => {
                for link in self.links.iter_mut().filter(|link| link.login.is_some()) {
                    link.login.clone_from(&login);
                }
                self.feed.login = login;
            }
            // The venue reports that the login has ended; that makes a new connection.
            Err(reason) => {
                self.feed.login.iter_mut().for_each(RequestLogin::postpone);
                tracing::warn!(venue = self.feed.config.venue.name(), reason, "market: the login is not renewed");
            }
        }
    }

    /// Announces to the engine which books follow, before the venue knows: no update comes before the engine can take it.
    fn follow_books(&mut self) -> Result<(), String> {
        let now = unix_now();
        let Some(books) = self.links.first().map(|link| link.id) else { return Ok(()) };
        for instrument in self.feed.instruments.clone() {
            if let Err(error) = self.feed.intake.subscribe(books, instrument, now) {
                tracing::error!(?error, instrument = instrument.0, "market: the engine does not follow");
            }
        }
        self.feed.change_signal.notify();
        // The engine keeps updates for a snapshot from the moment that it has asked for one.
        self.serve_requests()
    }

    /// Lays out the requests that make the venue send.
    fn prepare_requests(&mut self) {
        for (index, link) in self.links.iter_mut().enumerate() {
            link.prepare_requests(self.feed, listen_key(self.feed, index));
        }
    }

    /// Takes a frame of a link and those that are there already.
    async fn take_turn(&mut self, index: usize, first: Received) -> Result<(), String> {
        let mut next = Some(first);
        let (id, mut taken) = (self.links[index].id, 0);
        while let Some(frame) = next {
            let received = self.feed.timings.received();
            let frame = frame.ok_or("the venue closed the connection")?;
            let frame = frame.map_err(|error| self.links[index].fail(&error))?;
            if matches!(frame, Message::Pong(_)) {
                self.links[index].answered();
            } else {
                self.links[index].heard();
            }
            match frame {
                Message::Text(text) => self.take_frame(index, text.as_str(), received),
                Message::Binary(bytes) => self.take_bytes(index, &bytes, received),
                Message::Close(reason) => {
                    let reason = reason.map_or_else(String::new, |close| close.to_string());
                    return Err(format!("the venue closed the connection: {reason}"));
                }
                // The library answers pings.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
            self.serve_requests()?;
            if self.links.get(index).is_none_or(|link| link.id != id) {
                // It was replaced.
                return Ok(());
            }
            taken += 1;
            // What is taken out of the socket must be handled: a turn ends before the next one is, not after.
            next = if taken < FRAMES_PER_TURN { self.links[index].socket.next().now_or_never() } else { None };
        }
        self.feed.intake.flush();
        self.feed.change_signal.notify();
        Ok(())
    }

    fn take_frame(&mut self, index: usize, text: &str, received: tt_meter::Stamp) {
        self.take_bytes(index, text.as_bytes(), received);
        let link = &mut self.links[index];
        if !link.requests.is_answer(text) {
            return;
        }
        let Answer { refusal, again } = link.requests.take(text);
        link.unsent.extend(again);
        if let Some(refusal) = refusal {
            let venue = self.feed.config.venue.name();
            tracing::warn!(venue, subject = refusal.subject, reason = refusal.reason, "market: refused");
            self.feed.status.refuse(refusal);
        }
    }

    fn take_bytes(&mut self, index: usize, bytes: &[u8], received: tt_meter::Stamp) {
        let (feed, link) = (&mut *self.feed, &self.links[index]);
        feed.status.frames += 1;
        let applied = feed.intake.handle_frame(unix_now(), link.id, bytes, &mut feed.timings);
        feed.count_message(applied);
        match applied {
            Err(_) | Ok(Applied::Book { update: BookUpdate::Buffered, .. }) => self.look_at_drop(applied),
            Ok(Applied::Status { instrument, status }) => self.take_status(instrument, status),
            Ok(Applied::ListChanged) => self.feed.list_watch.hurry(Instant::now()),
            Ok(Applied::Session(session)) => self.feed.take_session(session),
            Ok(Applied::Ticker(_)) => self.feed.note_incident(),
            Ok(applied) if self.feed.has_open_incidents => self.feed.end_incidents(applied),
            Ok(_) => {}
        }
        if let Ok(Applied::Book { instrument, update: BookUpdate::Snapshot }) = applied {
            self.look_at_snapshot(instrument);
        }
        let link = &mut self.links[index];
        if !link.arrivals.is_complete() && link.arrivals.take(bytes, Instant::now()) {
            self.show_silent_topics();
        }
        let (feed, link) = (&mut *self.feed, &self.links[index]);
        feed.timings.visible(received, link.last_read.stamp(), applied.ok());
    }

    /// Asks for the venue's list where what was dropped is finer than the steps that are known, and names the level that a
    /// snapshot contradicted.
    #[cold]
    pub(super) fn look_at_drop(&mut self, applied: Result<Applied, DropReason>) {
        self.feed.note_incident();
        if applied == Err(DropReason::SnapshotMismatch) {
            self.feed.name_difference();
        }
        if self.relisting.is_empty() && self.feed.wants_steps(applied) {
            let feed = &mut *self.feed;
            self.relisting.push(feed.relisting.fetch(&feed.config, feed.clock));
        }
    }

    /// Does what the engine asks for.
    fn serve_requests(&mut self) -> Result<(), String> {
        while let Some(request) = self.feed.intake.next_request() {
            match request {
                Request::FetchSnapshot { instrument } if self.feed.status.connected => self.fetch(instrument),
                Request::FetchSnapshot { instrument } => self.held.push(instrument),
                Request::Resubscribe { instrument, connection } => {
                    let symbol = self.symbol(instrument);
                    // What was asked for on behalf of a connection that is gone finds no link.
                    if let Some(link) = self.link(connection) {
                        link.resubscribe(symbol);
                    }
                }
                Request::Reconnect { connection } => {
                    if let Some(index) = self.links.iter().position(|link| link.id == connection) {
                        self.lose_link(index, "silent for too long".to_owned())?;
                    }
                }
                Request::Replace { connection } => self.replace(connection),
                Request::Pong { connection } => {
                    let Some(answer) = self.feed.config.venue.rules().keep_alive.pong else { continue };
                    // Which of two links was asked is not known.
                    for link in self.links.iter_mut().filter(|link| link.id == connection) {
                        link.unsent.push_front(Outgoing::unanswered(answer));
                    }
                }
            }
        }
        Ok(())
    }

    fn link(&mut self, connection: ConnectionId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == connection)
    }

    pub(super) fn symbol(&self, instrument: InstrumentId) -> String {
        self.feed.symbol(instrument).unwrap_or_default().to_owned()
    }

    /// Judges which topics are silent.
    fn judge_arrivals(&mut self, now: Instant) {
        let venue = self.feed.config.venue.name();
        let mut is_changed = false;
        for link in &mut self.links {
            if link.is_settled() {
                link.arrivals.begin(now);
            }
            for SilentTopic { symbol, topic } in link.arrivals.check(now) {
                tracing::warn!(venue, symbol, topic, "market: accepted_but_silent");
                is_changed = true;
            }
        }
        if is_changed {
            self.show_silent_topics();
        }
    }

    #[cold]
    fn show_silent_topics(&mut self) {
        let silent = self.links.iter().flat_map(|link| link.arrivals.silent()).take(SILENT_MAX).collect();
        let before = std::mem::replace(&mut self.feed.status.silent_topics, silent);
        let venue = self.feed.config.venue.name();
        for SilentTopic { symbol, topic } in
            before.iter().filter(|topic| !self.feed.status.silent_topics.contains(topic))
        {
            tracing::info!(venue, symbol, topic, "market: the topic is sent again");
        }
    }

    /// Notes that every request is answered, and fetches the snapshots that have waited for it.
    fn look_settled(&mut self, backoff: &mut Backoff) {
        if self.feed.status.connected || !self.links.iter().all(Link::is_settled) {
            return;
        }
        self.feed.status.connected = true;
        backoff.succeed();
        for instrument in std::mem::take(&mut self.held) {
            self.fetch(instrument);
        }
    }

    /// Deadlines and numbers.
    async fn beat(&mut self, count: u32, backoff: &mut Backoff) -> Result<(), String> {
        let now = Instant::now();
        if let Some((at, renewal)) = self.renewal.as_mut().filter(|(at, _)| *at <= now) {
            *at = now + renewal.every;
            let renewed = renewal.clone().renew(self.feed.clock);
            self.renewing.push(Box::pin(async move { renewed.await.map(|()| None) }));
        }
        if self.renewing.is_empty() && self.feed.login.as_ref().is_some_and(|login| login.is_due(now)) {
            let login = RequestLogin::new(self.feed.config.clone(), self.feed.clock);
            self.renewing.push(Box::pin(async move { login.await.map_err(LoginError::into_text) }));
        }
        let mut index = 0;
        while let Some(link) = self.links.get_mut(index) {
            match link.beat(now) {
                Err(reason) => self.lose_link(index, reason)?,
                Ok(()) => index += 1,
            }
        }
        self.advance_succession(now);
        self.look_settled(backoff);
        self.advance_verification(now);
        self.take_commands();
        self.watch_list(now);
        if count.is_multiple_of(BEATS_PER_SECOND) {
            self.judge_arrivals(now);
            self.fall_back(now);
        }
        let wall_now = unix_now();
        self.feed.intake.handle_timeout(wall_now);
        self.feed.note_incident();
        self.feed.end_lost_connection(wall_now);
        if count.is_multiple_of(BEATS_PER_CHECKPOINT) {
            self.feed.intake.checkpoint(wall_now);
        }
        self.feed.intake.flush();
        self.serve_requests()?;
        self.feed.intake.publish_counters();
        self.feed.shared_status.publish_status(&self.feed.status);
        if count.is_multiple_of(BEATS_PER_REPORT) {
            self.feed.shared_status.publish_times(self.feed.timings.times());
        }
        self.feed.change_signal.notify();
        Ok(())
    }
}
