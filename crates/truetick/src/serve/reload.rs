//! The configuration file again, at SIGHUP or on request.

use std::sync::{Arc, mpsc};

use anyhow::{Context as _, Result, bail};
use tt_os::shutdown;
use tt_status::reload::Reload;
use turn_server::Reloader;

use super::{Args, Credential, turn_config};
use crate::config::Config;
use crate::logs;
use crate::market::Followed;
use crate::reload::{self, Requests};
use crate::turn::reloaded;

/// What follows the file.
pub(super) struct Parts {
    pub(super) args: Arc<Args>,
    /// The configuration of the start.
    pub(super) started: Config,
    pub(super) credential: Arc<Credential>,
    pub(super) turn: Reloader,
    /// None on simulated venues.
    pub(super) feeds: Option<Followed>,
}

/// Reads the file again at each SIGHUP, from here on, and when the result is asked to. Without a file a SIGHUP changes
/// nothing, and the API has no reload.
///
/// # Errors
/// The signal cannot be caught.
pub(super) fn follow(mut parts: Parts) -> Result<Option<Arc<dyn Reload>>> {
    let (sender, events) = mpsc::channel();
    shutdown::send_hangups(sender.clone()).context("serve: cannot catch SIGHUP")?;
    let is_file = parts.started.path().is_some();
    reload::spawn("", events, move || parts.reload()).context("serve: cannot start a thread")?;
    Ok(is_file.then(|| Arc::new(Requests(sender)) as Arc<dyn Reload>))
}

impl Parts {
    /// Applies all of the file or nothing.
    fn reload(&mut self) -> Result<()> {
        let Some(path) = self.started.path() else { bail!("there is no configuration file (--config)") };
        let next = Config::read(&path)?;
        let turn = turn_config(&self.args, &next, &self.credential)?;
        let follows = self.feeds.is_some();
        reloaded::check(&self.started, &next, |key| follows && key == "market.feeds")?;
        let feeds = &mut self.feeds;
        self.turn.reload(turn, || feeds.as_mut().map_or(Ok(()), |feeds| feeds.apply(next.market.feeds)))?;
        logs::follow(&next.log);
        Ok(())
    }
}
