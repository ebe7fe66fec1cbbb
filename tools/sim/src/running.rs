//! The running simulator: start, faults, true books, stop.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use axum::serve::ListenerExt as _;
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    exchange::{Exchange, Stats, unix_us},
    instrument::{Instrument, Standing, Venue},
    market::{Fault, SnapshotFault},
    pace,
    script::{Script, TrueBook},
    server::{self, Shared},
    singles::OrderWindow,
};

/// Configuration of the simulator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Listening address. Default: loopback.
    pub ip: IpAddr,
    /// Ports in the order of [`Venue::ALL`]; 0 takes any free one.
    pub ports: [u16; Venue::COUNT],
    /// Instruments of each venue, at least 1.
    pub instruments: u32,
    /// Options of Bybit, after its other instruments.
    pub options: u32,
    /// Tokenized stocks of Kraken, after its other instruments; at most three.
    pub stocks: u32,
    /// Derivatives of Kraken, after its stocks; at most three.
    pub derivatives: u32,
    /// Book updates per second of each venue, all its instruments together; 0 leaves stepping to [`Running::step`].
    pub rate_hz: f64,
    /// The seed that every book follows from.
    pub seed: u64,
    /// The time between two WebSocket pings of a venue.
    pub ping_every: Duration,
    /// Levels that each side has at least ([`Instrument::levels_min`]); `None`: some 100 at the start, later some 300.
    pub levels: Option<u32>,
    /// What the names of base assets begin with: venues have symbols of many bytes, and in other scripts.
    pub base_prefix: &'static str,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports: [0; Venue::COUNT],
            instruments: 8,
            options: 0,
            stocks: 0,
            derivatives: 0,
            rate_hz: 200.0,
            seed: 1,
            ping_every: Duration::from_secs(20),
            levels: None,
            base_prefix: "",
        }
    }
}

/// A running simulator. Dropping it stops it.
pub struct Running {
    addresses: [SocketAddr; Venue::COUNT],
    venues: [Shared; Venue::COUNT],
    rate_mhz: Arc<AtomicU64>,
    levels: Option<u32>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the simulator on its own thread.
///
/// # Errors
/// A port is taken, or the thread cannot be started.
pub fn start(config: Config) -> io::Result<Running> {
    if config.instruments == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the simulator needs at least one instrument"));
    }
    let venues = Venue::ALL.map(|venue| Shared {
        exchange: Arc::new(Mutex::new(Exchange::of(
            venue,
            Instrument::list_after(venue, config.instruments, config.base_prefix)
                .into_iter()
                .chain(Instrument::options(if venue == Venue::Bybit { config.options } else { 0 }, config.base_prefix))
                .chain(Instrument::stocks(if venue == Venue::Kraken { config.stocks } else { 0 }))
                .chain(Instrument::derivatives(if venue == Venue::Kraken { config.derivatives } else { 0 }))
                .map(|instrument| match config.levels {
                    Some(levels) => instrument.with_levels(levels),
                    None => instrument,
                })
                .collect(),
            config.seed,
        ))),
        ping_every: config.ping_every,
    });
    let (rate_hz, levels) = (config.rate_hz, config.levels);
    let rate_mhz = Arc::new(AtomicU64::new(0));
    let (stop, stopped) = oneshot::channel();
    let (bound, addresses) = mpsc::channel();
    let (of_thread, rate) = (venues.clone(), Arc::clone(&rate_mhz));
    let thread = thread::Builder::new().name("sim".to_owned()).spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(bound.send(Err(error))),
        };
        runtime.block_on(serve(&config, &of_thread, &rate, &bound, stopped));
    })?;
    let addresses = addresses.recv().unwrap_or_else(|_| Err(io::Error::other("the simulator's thread ended")))?;
    let running = Running { addresses, venues, rate_mhz, levels, stop: Some(stop), thread: Some(thread) };
    running.set_rate(rate_hz);
    Ok(running)
}

async fn serve(
    config: &Config,
    venues: &[Shared; Venue::COUNT],
    rate_mhz: &Arc<AtomicU64>,
    bound: &mpsc::Sender<io::Result<[SocketAddr; Venue::COUNT]>>,
    stopped: oneshot::Receiver<()>,
) {
    let listeners = match bind(config).await {
        Ok(listeners) => listeners,
        Err(error) => return drop(bound.send(Err(error))),
    };
    let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>();
    let all = addresses.and_then(|found| {
        <[SocketAddr; Venue::COUNT]>::try_from(found).map_err(|_| io::Error::other("a venue has no address"))
    });
    let sent = bound.send(all);
    if sent.is_err() {
        return;
    }
    for ((listener, shared), venue) in listeners.into_iter().zip(venues).zip(Venue::ALL) {
        let router = server::router(venue, shared.clone());
        // A venue sends each update at once; without this, updates wait for the acknowledgement of the ones before.
        let listener = listener.tap_io(|stream| {
            // The stream may be closed already.
            let _ = stream.set_nodelay(true);
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        tokio::spawn(pace::run(shared.clone(), Arc::clone(rate_mhz)));
    }
    // Either a word to stop or the end of whoever could say it.
    let _ = stopped.await;
}

async fn bind(config: &Config) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(Venue::ALL.len());
    for port in config.ports {
        let address = SocketAddr::new(config.ip, port);
        let listener = TcpListener::bind(address).await;
        listeners.push(listener.map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?);
    }
    Ok(listeners)
}

impl Running {
    /// Returns [`Config::levels`].
    #[must_use]
    pub const fn levels(&self) -> Option<u32> {
        self.levels
    }

    /// Returns the address of `venue`.
    #[must_use]
    pub const fn address(&self, venue: Venue) -> SocketAddr {
        self.addresses[venue as usize]
    }

    /// The instruments of `venue`.
    #[must_use]
    pub fn instruments(&self, venue: Venue) -> Vec<Instrument> {
        self.of(venue).lock().markets.iter().map(|market| market.instrument.clone()).collect()
    }

    /// Sets the book updates per second of each venue. After 0, no venue makes a step by itself any more, not even
    /// one that was due.
    pub fn set_rate(&self, rate_hz: f64) {
        self.rate_mhz.store((rate_hz.max(0.0) * 1000.0) as u64, Relaxed);
        // A batch of steps that began before this is over when its venue's lock is free.
        for venue in &self.venues {
            drop(venue.lock());
        }
    }

    /// Makes `count` steps of one instrument at once and returns the update id of the last one.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn step(&self, venue: Venue, index: usize, count: u64) -> u64 {
        let mut exchange = self.of(venue).lock();
        for _ in 0..count {
            exchange.step(index, unix_us());
        }
        exchange.markets[index].script.update_id()
    }

    /// Returns the true book of an instrument and its update id.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn truth(&self, venue: Venue, index: usize) -> (u64, TrueBook) {
        let exchange = self.of(venue).lock();
        let script = &exchange.markets[index].script;
        (script.update_id(), script.book().clone())
    }

    /// Every resting order of an instrument, as a venue shows them that sends single orders.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn orders(&self, venue: Venue, index: usize) -> OrderWindow {
        self.of(venue).lock().markets[index].orders(usize::MAX)
    }

    /// The script of an instrument from its beginning: the truth at any update id, by [`Script::play_to`].
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn script(&self, venue: Venue, index: usize) -> Script {
        let exchange = self.of(venue).lock();
        Script::new(&exchange.markets[index].instrument, exchange.seed())
    }

    /// The update id of the step whose frames carry `unix_us`, of the last few thousand steps: how the truth of a
    /// book is found where the venue gives no update ids.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn update_id_at(&self, venue: Venue, index: usize, unix_us: u64) -> Option<u64> {
        self.of(venue).lock().markets[index].update_id_at(unix_us)
    }

    /// Goes on accepting subscriptions to the topics of these names, and sends nothing of them: `book`, `best-levels`,
    /// `trades`, `ticker`, `mark-price`, `candles`. Snapshots that answer a subscription are still sent.
    pub fn withhold(&self, venue: Venue, names: &[impl AsRef<str>]) {
        self.of(venue).lock().withheld = names.iter().map(|name| name.as_ref().to_owned()).collect();
    }

    /// Injects `fault` into the next book update of an instrument.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn fault(&self, venue: Venue, index: usize, fault: Fault) {
        self.of(venue).lock().markets[index].faults.push_back(fault);
    }

    /// Injects `fault` into the next snapshot of an instrument.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn snapshot_fault(&self, venue: Venue, index: usize, fault: SnapshotFault) {
        self.of(venue).lock().markets[index].snapshot_faults.push_back(fault);
    }

    /// Returns the script's update id of the venue's number `id` in the book of `depth`, of the last few thousand updates;
    /// `None` also if the venue numbers nothing (Binance's numbers are the script's).
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn update_id_of(&self, venue: Venue, index: usize, depth: u32, id: u64) -> Option<u64> {
        self.of(venue).lock().markets[index].chains.get(&depth)?.update_id(id)
    }

    /// Rejects the next `count` snapshot requests with 429 and `Retry-After: 1`.
    pub fn refuse_snapshots(&self, venue: Venue, count: u32) {
        self.of(venue).lock().refusals = count;
    }

    /// Silences the venue with its connections open (`true`), or lets it send again.
    pub fn mute(&self, venue: Venue, mute: bool) {
        self.of(venue).lock().mute = mute;
    }

    /// Announces the end of a venue's open connections, as Binance (`serverShutdown`) and OKX (notice 64008) do.
    pub fn announce_end(&self, venue: Venue) {
        self.of(venue).lock().announce_end();
    }

    /// Closes the connections whose end was announced.
    pub fn end_announced(&self, venue: Venue) {
        self.of(venue).lock().end_announced();
    }

    /// Lists a venue's instruments in pages of `len` entries, where the venue has pages (Bybit).
    pub fn page_instruments(&self, venue: Venue, len: usize) {
        self.of(venue).lock().page_len = len.max(1);
    }

    /// Changes whether a venue trades an instrument.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn set_standing(&self, venue: Venue, index: usize, standing: Standing) {
        self.of(venue).lock().set_standing(index, standing);
    }

    /// Locks the currency of an instrument of Deribit, or unlocks it.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn lock(&self, index: usize, is_locked: bool) {
        self.of(Venue::Deribit).lock().lock(index, is_locked);
    }

    /// Closes all connections of a venue.
    pub fn disconnect(&self, venue: Venue) {
        self.of(venue).lock().disconnect_all();
    }

    /// Returns the venue's counters.
    #[must_use]
    pub fn stats(&self, venue: Venue) -> Stats {
        self.of(venue).lock().stats
    }

    /// Stops the simulator and waits for its thread.
    pub fn stop(mut self) {
        self.end();
    }

    const fn of(&self, venue: Venue) -> &Shared {
        &self.venues[venue as usize]
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
