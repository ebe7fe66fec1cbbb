//! The feeds of the configuration file again, at SIGHUP or on request.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::Context as _;
use market_feed::Feeds;
use market_feed::config::FeedSection;
use tt_os::shutdown::{self, Signal};
use tt_status::reload::Reload;

use crate::config::Config;
use crate::reload::{self as events, Event, Requests};

/// A feed with the keys that it was added with.
type Configured = (FeedSection, u32);

/// Feeds that follow a file.
struct Followed {
    feeds: Feeds,
    path: PathBuf,
    /// The configuration at the start.
    started: Config,
    configured: Vec<Configured>,
}

/// Reads the file of `config` again at each SIGHUP, from here on, and when the result is asked to. `ids` are those of its
/// feeds. Without a file there is nothing to read.
///
/// # Errors
/// The signal cannot be caught.
pub(crate) fn follow_file(feeds: Feeds, config: &Config, ids: Vec<u32>) -> anyhow::Result<Option<Arc<dyn Reload>>> {
    let Some(path) = config.path() else { return Ok(None) };
    let (sender, received) = mpsc::channel();
    shutdown::send_hangups(sender.clone()).context("cannot catch SIGHUP")?;
    let configured = config.market.feeds.iter().cloned().zip(ids).collect();
    let mut followed = Followed { feeds, path, started: config.clone(), configured };
    let follow = move || {
        for event in received {
            let reply = match event {
                Event::Signal(Signal::Hangup) => None,
                // The end is for another thread.
                Event::Signal(_) => continue,
                Event::Request(reply) => Some(reply),
            };
            let result = followed.reload();
            events::log("market: ", &result);
            if let Some(reply) = reply {
                reply.send(&result);
            }
        }
    };
    thread::Builder::new().name("market-reload".to_owned()).spawn(follow).context("market: thread")?;
    Ok(Some(Arc::new(Requests(sender))))
}

impl Followed {
    /// Makes the feeds those of the file; returns the changed keys that need a restart.
    fn reload(&mut self) -> anyhow::Result<Vec<String>> {
        let config = Config::read(&self.path)?;
        let ignored = events::restart_keys(&self.started, &config, |key| key == "market.feeds")?;
        let (added, removed) = apply(config.market.feeds, &self.feeds, &mut self.configured)?;
        tracing::info!(added, removed, "market: feeds of the configuration");
        Ok(ignored)
    }
}

/// Makes the feeds the `wanted` ones; returns how many feeds were added and removed. Symbols that are configured as before
/// go on; new ones get a connection of their own, and one that is gone ends alone.
fn apply(
    mut wanted: Vec<FeedSection>,
    feeds: &Feeds,
    configured: &mut Vec<Configured>,
) -> anyhow::Result<(usize, usize)> {
    anyhow::ensure!(!wanted.is_empty(), "no [[market.feeds]]");
    // Nothing changes where one of them is wrong.
    wanted.iter().try_for_each(|section| section.feed().map(drop))?;
    let before = configured.len();
    configured.retain_mut(|(known, id)| {
        let same = |section: &&mut FeedSection| without_symbols(section) == without_symbols(known);
        let mut same: Vec<&mut FeedSection> = wanted.iter_mut().filter(same).collect();
        let is_wanted = |symbol: &String| same.iter().any(|section| section.symbols.contains(symbol));
        let (kept, gone): (Vec<String>, Vec<String>) = known.symbols.iter().cloned().partition(is_wanted);
        if kept.is_empty() {
            feeds.remove(*id);
            return false;
        }
        for symbol in &gone {
            feeds.unsubscribe(*id, symbol);
        }
        same.iter_mut().for_each(|section| section.symbols.retain(|symbol| !kept.contains(symbol)));
        known.symbols = kept;
        true
    });
    let removed = before - configured.len();
    wanted.retain(|section| !section.symbols.is_empty());
    let added = wanted.len();
    for section in wanted {
        let id = feeds.add(section.feed()?)?;
        configured.push((section, id));
    }
    Ok((added, removed))
}

fn without_symbols(section: &FeedSection) -> FeedSection {
    FeedSection { symbols: Vec::new(), ..section.clone() }
}
