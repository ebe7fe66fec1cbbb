//! The engines of `serve` for `truetick demo`: on free ports, on simulated venues, without faults of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use market_feed::{Feeds, Publishing};
use sim::Fault;
use tt_os::clock::unix_now;
use tt_os::shutdown::Shutdown;
use tt_status::market::MarketStatus;
use tt_status::risk::RiskStatus;
use turn_check::Login;
use turn_server::TurnConfig;

use super::credential::Credential;
use super::strategy::{Flags, Starter};
use super::{SAMPLED_ONE_IN, follow, summary, venues};

/// Instruments of each venue, book updates per second over all of them, intents per second, and the seed of both.
const INSTRUMENTS: u32 = 3;
const UPDATES_PER_S: f64 = 200.0;
const INTENTS_PER_S: u32 = 50;
const SEED: u64 = 1;

/// The running engines.
pub(crate) struct Demonstrated {
    turn: turn_server::Running,
    credential: Credential,
    venues: Arc<sim::Running>,
    feeds: Feeds,
    starter: Starter,
}

impl Demonstrated {
    /// Starts them, and waits for the strategy.
    ///
    /// # Errors
    /// A missing system resource.
    pub(crate) fn start(shutdown: &Shutdown) -> Result<Self> {
        let credential = Credential::fresh()?;
        let mut config = TurnConfig::on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        config.sample_one_in = SAMPLED_ONE_IN;
        config.users.push(credential.user());
        let turn = turn_server::start(&config)?;
        let venues = Arc::new(venues::start(INSTRUMENTS, UPDATES_PER_S, SEED)?);
        let (feeds, _) = follow(venues::feeds(&venues)?, Publishing { is_simulated: true, ..Publishing::default() })?;
        let flags = Flags {
            limits: None,
            intents_per_s: INTENTS_PER_S,
            open_max: Duration::from_secs(1),
            silent_after: None,
            seed: SEED,
        };
        let starter = Starter::start(feeds.clone(), flags).context("demo")?;
        starter.wait(|| shutdown.is_requested());
        Ok(Self { turn, credential, venues, feeds, starter })
    }

    /// Address of the TURN server, and who may use it.
    pub(crate) fn turn(&self) -> (SocketAddr, Login) {
        (self.turn.listen()[0], self.credential.0.clone())
    }

    /// Injects a fault into the next update of a venue's symbol.
    ///
    /// # Errors
    /// There is no such venue or symbol.
    pub(crate) fn inject(&self, venue: &str, symbol: &str, fault: Fault) -> Result<()> {
        let venue = sim::Venue::ALL.into_iter().find(|of| of.name() == venue).context("no such venue")?;
        let index = self.venues.instruments(venue).iter().position(|listed| listed.symbol == symbol);
        self.venues.fault(venue, index.context("no such symbol")?, fault);
        Ok(())
    }

    pub(crate) fn market(&self) -> MarketStatus {
        self.feeds.snapshot(unix_now(), SAMPLED_ONE_IN)
    }

    pub(crate) fn risk(&self) -> RiskStatus {
        (self.starter.strategy().reading())()
    }

    /// Stops everything, sources before sinks, and returns the final accounting.
    pub(crate) fn stop(self) -> String {
        let risk = self.starter.stop();
        let market = self.feeds.stop();
        drop(self.venues);
        summary::farewell(&[self.turn.stop().accounting(), market.ledger, risk.ledger])
    }
}
