//! The feeds of the configuration file again, at SIGHUP or on request.

use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use market_feed::Feeds;
use market_feed::config::FeedSection;
use tt_os::shutdown;
use tt_status::reload::Reload;

use crate::config::Config;
use crate::logs;
use crate::reload::{self as events, Requests};

/// A feed with the keys that it was added with.
type Configured = (FeedSection, u32);

/// Feeds that follow a file.
pub(crate) struct Followed {
    feeds: Feeds,
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
    let (started, mut followed) = (config.clone(), Followed::new(feeds, config, ids));
    let reload = move || {
        let next = Config::read(&path)?;
        events::refuse_restart_keys(&started, &next, |key| key == "market.feeds")?;
        followed.apply(next.market.feeds)?;
        logs::follow(&next.log);
        Ok(())
    };
    events::spawn("market: ", received, reload).context("market: thread")?;
    Ok(Some(Arc::new(Requests(sender))))
}

impl Followed {
    /// `ids` are those of the feeds of `config`.
    pub(crate) fn new(feeds: Feeds, config: &Config, ids: Vec<u32>) -> Self {
        Self { feeds, configured: config.market.feeds.iter().cloned().zip(ids).collect() }
    }

    /// Makes the feeds those of `wanted`, all or nothing.
    ///
    /// # Errors
    /// There is none, or one of them cannot be followed.
    pub(crate) fn apply(&mut self, wanted: Vec<FeedSection>) -> anyhow::Result<()> {
        let (added, removed) = apply(wanted, &self.feeds, &mut self.configured)?;
        tracing::info!(added, removed, "market: feeds of the configuration");
        Ok(())
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
    let all = wanted.iter().map(FeedSection::feed).collect::<anyhow::Result<Vec<_>>>()?;
    feeds.check(&configured.iter().map(|(_, id)| *id).collect::<Vec<_>>(), &all)?;
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
