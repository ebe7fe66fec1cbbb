//! SIGHUP: the feeds of the configuration file again.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use market_feed::Feeds;
use market_feed::config::FeedSection;
use tt_os::shutdown;

use crate::config::Config;

/// A feed with the keys that it was added with.
type Configured = (FeedSection, u32);

/// Reads the file at `path` again at each SIGHUP, from here on.
///
/// # Errors
/// The signal cannot be caught.
pub(crate) fn on_hangup(feeds: Feeds, path: PathBuf, mut configured: Vec<Configured>) -> anyhow::Result<()> {
    let hangups = shutdown::hangups().context("cannot catch SIGHUP")?;
    let follow = move || {
        for () in hangups {
            match reload(&feeds, &path, &mut configured) {
                Ok((added, removed)) => tracing::info!(added, removed, "market: configuration reloaded"),
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::error!(error, "market: configuration not reloaded");
                }
            }
        }
    };
    thread::Builder::new().name("market-reload".to_owned()).spawn(follow).context("market: thread")?;
    Ok(())
}

/// Makes the feeds those of the file; returns how many feeds were added and removed. Symbols that are configured as before
/// go on; new ones get a connection of their own, and one that is gone ends alone.
fn reload(feeds: &Feeds, path: &Path, configured: &mut Vec<Configured>) -> anyhow::Result<(usize, usize)> {
    let mut wanted = Config::read(path)?.market.feeds;
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
