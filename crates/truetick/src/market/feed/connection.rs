//! One connection from its handshake to its end.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};
use tt_market::{ConnectionId, Request};
use tt_model::InstrumentId;

use super::Feed;
use crate::market::backoff::Backoff;
use crate::market::dial::{LastRead, Wire};
use crate::market::topics::Requests;
use crate::market::{rest, socket};

/// How often deadlines are looked at and numbers published.
const BEAT: Duration = Duration::from_millis(50);

/// Beats between two looks at the distributions, which are larger.
const BEATS_PER_REPORT: u32 = 5;

/// Beats between two hashes of the published state in a recording.
const BEATS_PER_CHECKPOINT: u32 = 20;

/// Frames that are taken before timers and snapshots get their turn.
const FRAMES_PER_TURN: usize = 256;

/// A closing handshake may take this long.
const CLOSE_MAX: Duration = Duration::from_millis(500);

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was asked to.
    Stopped,
    /// It was not.
    Lost(String),
}

type Fetched = (InstrumentId, Result<Bytes, rest::Failed>);

struct Connection<'a> {
    feed: &'a mut Feed,
    id: ConnectionId,
    socket: WebSocketStream<Wire>,
    last_read: LastRead,
    requests: Requests,
    fetches: FuturesUnordered<Pin<Box<dyn Future<Output = Fetched>>>>,
    /// Books whose snapshots wait until the venue has answered all requests: one from before its updates cannot join.
    held: Vec<InstrumentId>,
    /// No snapshot is fetched before this.
    fetch_not_before: Instant,
    last_heard: Instant,
    last_ping: Instant,
}

/// Connects, subscribes, and follows until something ends it. The books are stale when this returns.
pub(super) async fn run(feed: &mut Feed, mut stop: watch::Receiver<bool>, backoff: &mut Backoff) -> Ended {
    let opened = tokio::select! {
        _ = stop.wait_for(|stop| *stop) => return Ended::Stopped,
        opened = socket::open(&feed.config.streams, feed.clock) => opened,
    };
    let (socket, last_read) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ended::Lost(format!("{error:#}")),
    };
    let now = feed.wall.now();
    let Ok(id) = feed.intake.open_connection(feed.config.venue, &feed.config.streams.to_string(), now) else {
        return Ended::Lost("the engine holds no more connections".to_owned());
    };
    feed.status.connections += 1;
    let requests = Requests::new(feed.config.venue, feed.config.depth, feed.config.timing.answer_max);
    let mut connection = Connection {
        feed,
        id,
        socket,
        last_read,
        requests,
        fetches: FuturesUnordered::new(),
        held: Vec::new(),
        fetch_not_before: Instant::now(),
        last_heard: Instant::now(),
        last_ping: Instant::now(),
    };
    let ended = connection.follow(stop, backoff).await;
    let now = connection.feed.wall.now();
    connection.feed.intake.close_connection(id, now);
    if matches!(ended, Ended::Stopped) {
        // The venue may have gone first.
        let _ = tokio::time::timeout(CLOSE_MAX, connection.socket.close(None)).await;
    }
    ended
}

impl Connection<'_> {
    async fn follow(&mut self, mut stop: watch::Receiver<bool>, backoff: &mut Backoff) -> Ended {
        if let Err(reason) = self.follow_books().await {
            return Ended::Lost(reason);
        }
        let mut unsent = self.requests();
        unsent.extend(self.feed.config.venue.rules().keep_alive.begin.map(str::to_owned));
        unsent.reverse();
        let mut request_times =
            tokio::time::interval(Duration::from_nanos(self.feed.config.venue.rules().request_gap.0));
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beat_count = 0_u32;
        loop {
            let step = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ended::Stopped,
                _ = beats.tick() => {
                    beat_count = beat_count.wrapping_add(1);
                    self.beat(unsent.is_empty(), beat_count, backoff).await
                }
                _ = request_times.tick(), if !unsent.is_empty() => match unsent.pop() {
                    Some(request) => self.send(request).await,
                    None => Ok(()),
                },
                Some((instrument, fetched)) = self.fetches.next(), if !self.fetches.is_empty() => {
                    self.take_snapshot(instrument, fetched);
                    self.serve_requests().await
                }
                frame = self.socket.next() => self.take_turn(frame).await,
            };
            if let Err(reason) = step {
                return Ended::Lost(reason);
            }
        }
    }

    /// Tells the engine which books follow, before the venue knows: no update comes before the engine can take it.
    async fn follow_books(&mut self) -> Result<(), String> {
        let now = self.feed.wall.now();
        for instrument in self.feed.instruments.clone() {
            if let Err(error) = self.feed.intake.subscribe(self.id, instrument, now) {
                tracing::error!(?error, instrument = instrument.0, "market: the engine does not follow");
            }
        }
        self.feed.changed.tell();
        // The engine keeps updates for a snapshot from the moment that it has asked for one.
        self.serve_requests().await
    }

    /// The requests that make the venue send.
    fn requests(&mut self) -> Vec<String> {
        let mut requests = self.requests.subscribe(&self.feed.config.symbols);
        if let Some(listen_key) = &self.feed.config.listen_key {
            requests.extend(self.requests.subscribe_orders(listen_key));
        }
        requests
    }

    async fn send(&mut self, text: String) -> Result<(), String> {
        self.socket.send(Message::text(text)).await.map_err(|error| error.to_string())
    }

    /// Takes a frame and those that are there already.
    async fn take_turn(&mut self, first: Option<Result<Message, tungstenite::Error>>) -> Result<(), String> {
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(frame) = next {
            let received = self.feed.ledger.received();
            let frame = frame.ok_or("the venue closed the connection")?.map_err(|error| error.to_string())?;
            self.last_heard = Instant::now();
            match frame {
                Message::Text(text) => self.take_frame(text.as_str(), received),
                Message::Binary(bytes) => self.take_bytes(&bytes, received),
                Message::Close(reason) => {
                    let reason = reason.map_or_else(String::new, |close| close.to_string());
                    return Err(format!("the venue closed the connection: {reason}"));
                }
                // The library answers pings.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
            self.serve_requests().await?;
            taken += 1;
            // What is taken out of the socket must be handled: a turn ends before the next one is, not after.
            next = if taken < FRAMES_PER_TURN { self.socket.next().now_or_never() } else { None };
        }
        self.feed.intake.flush();
        self.feed.changed.tell();
        Ok(())
    }

    fn take_frame(&mut self, text: &str, received: tt_meter::Stamp) {
        self.take_bytes(text.as_bytes(), received);
        if self.requests.is_answer(text)
            && let Some(refusal) = self.requests.take(text)
        {
            let venue = self.feed.config.venue.name();
            tracing::warn!(venue, subject = refusal.subject, reason = refusal.reason, "market: refused");
            self.feed.status.refuse(refusal);
        }
    }

    fn take_bytes(&mut self, bytes: &[u8], received: tt_meter::Stamp) {
        let feed = &mut *self.feed;
        feed.status.frames += 1;
        let snapshots = feed.intake.engine().counters().venue(feed.config.venue).snapshots;
        let applied = feed.intake.handle_frame(feed.wall.now(), self.id, bytes, &mut feed.ledger);
        let is_snapshot = feed.intake.engine().counters().venue(feed.config.venue).snapshots != snapshots;
        let applied = applied.ok().map(|applied| (applied, is_snapshot));
        feed.ledger.visible(received, self.last_read.stamp(), applied);
    }

    /// Does what the engine asks for.
    async fn serve_requests(&mut self) -> Result<(), String> {
        while let Some(request) = self.feed.intake.next_request() {
            match request {
                Request::FetchSnapshot { instrument } if self.feed.status.connected => self.fetch(instrument),
                Request::FetchSnapshot { instrument } => self.held.push(instrument),
                Request::Resubscribe { instrument, connection } if connection == self.id => {
                    for text in self.requests.resubscribe(&self.symbol(instrument)) {
                        self.send(text).await?;
                    }
                }
                Request::Reconnect { connection } if connection == self.id => {
                    return Err("silent for too long".to_owned());
                }
                Request::Answer { connection } if connection == self.id => {
                    if let Some(answer) = self.feed.config.venue.rules().keep_alive.answer {
                        self.send(answer.to_owned()).await?;
                    }
                }
                // Asked for on behalf of a connection that is gone.
                Request::Resubscribe { .. } | Request::Reconnect { .. } | Request::Answer { .. } => {}
            }
        }
        Ok(())
    }

    fn symbol(&self, instrument: InstrumentId) -> String {
        self.feed.intake.engine().instrument(instrument).map(|spec| spec.symbol.to_string()).unwrap_or_default()
    }

    fn fetch(&mut self, instrument: InstrumentId) {
        let symbol = self.symbol(instrument);
        // Elsewhere snapshots come on the socket.
        let Some(rule) = self.feed.config.venue.rules().snapshot else { return };
        let path = rule.path.replace("{symbol}", &symbol);
        let (uri, clock) = (self.feed.config.rest_uri(&path), self.feed.clock);
        let at = self.fetch_not_before.max(Instant::now());
        self.fetch_not_before = at + self.feed.config.timing.snapshot_gap;
        self.fetches.push(Box::pin(async move {
            tokio::time::sleep_until(at.into()).await;
            let fetched = match uri {
                Ok(uri) => rest::get(&uri, clock).await,
                Err(error) => Err(rest::Failed::new(error)),
            };
            (instrument, fetched)
        }));
    }

    fn take_snapshot(&mut self, instrument: InstrumentId, fetched: Result<Bytes, rest::Failed>) {
        let feed = &mut *self.feed;
        let now = feed.wall.now();
        match fetched {
            Ok(body) => {
                feed.status.snapshots += 1;
                // A body that does not help is counted and asked for again by the engine.
                let _ = feed.intake.handle_snapshot(now, instrument, &body, &mut feed.ledger);
            }
            Err(failed) => {
                feed.status.snapshots_failed += 1;
                if let Some(wait) = failed.retry_after {
                    self.fetch_not_before = self.fetch_not_before.max(Instant::now() + wait);
                }
                let venue = feed.config.venue.name();
                tracing::warn!(venue, reason = failed.reason, "market: no snapshot");
                feed.intake.snapshot_failed(instrument, now);
            }
        }
        feed.changed.tell();
    }

    /// Deadlines and numbers.
    async fn beat(&mut self, all_sent: bool, count: u32, backoff: &mut Backoff) -> Result<(), String> {
        let now = Instant::now();
        let timing = self.feed.config.timing;
        if now.duration_since(self.last_heard) > timing.silence_max {
            return Err(format!("silent for {:.1} s", timing.silence_max.as_secs_f64()));
        }
        if let Some(subject) = self.requests.overdue(now) {
            return Err(format!("no answer to the request for {}", subject.chars().take(80).collect::<String>()));
        }
        if all_sent && self.requests.all_answered() && !self.feed.status.connected {
            self.feed.status.connected = true;
            backoff.succeed();
            for instrument in std::mem::take(&mut self.held) {
                self.fetch(instrument);
            }
        }
        let wall_now = self.feed.wall.now();
        self.feed.intake.handle_timeout(wall_now);
        if count.is_multiple_of(BEATS_PER_CHECKPOINT) {
            self.feed.intake.checkpoint(wall_now);
        }
        self.feed.intake.flush();
        self.serve_requests().await?;
        if let Some((ping, every)) = self.requests.ping()
            && now.duration_since(self.last_ping) > every
        {
            self.last_ping = now;
            self.send(ping.to_owned()).await?;
        }
        self.feed.intake.publish_counters();
        self.feed.published.publish_status(&self.feed.status);
        if count.is_multiple_of(BEATS_PER_REPORT) {
            self.feed.published.publish_times(self.feed.ledger.times());
        }
        self.feed.changed.tell();
        Ok(())
    }
}
