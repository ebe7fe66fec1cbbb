//! `truetick market`: order books, tickers and candles from a venue's feeds, each book with its proof.

pub(crate) mod admin;
mod launch;
mod options;
mod page;
mod reload;
mod table;

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use hyper::Uri;
use market_feed::{FeedConfig, Feeds, MarketConfig, Publishing};
use tt_os::shutdown::Shutdown;
use tt_os::stdout;
use tt_venue::Venue;

use crate::config::Config;

pub(crate) use launch::launch;
pub use options::SubscribeOptions;
#[cfg(all(feature = "risk", feature = "turn"))]
pub(crate) use reload::Followed;
pub(crate) use reload::follow_file;
pub(crate) use table::connecting;

use page::Page;
use table::Style;

/// Flags of `truetick market`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Venue
    #[arg(long, value_parser = venue)]
    venue: Option<Venue>,
    /// Symbols as the venue writes them, such as BTCUSDT,ETHUSDT or BTC/USD
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "venue")]
    symbols: Vec<String>,
    /// WebSocket address [default: the venue's]
    #[arg(long, value_name = "URL", requires = "venue")]
    url: Option<Uri>,
    /// REST address [default: the host of --url, or the venue's]
    #[arg(long, value_name = "URL", requires = "url")]
    rest_url: Option<Uri>,
    /// Levels per side, at venues that take a depth [default: the venue's usual depth]
    #[arg(long, value_name = "N", requires = "venue")]
    depth: Option<u32>,
    /// Further subscriptions.
    #[command(flatten)]
    options: SubscribeOptions,
    /// Pin the connection's thread to this CPU
    #[arg(long, value_name = "N", requires = "venue")]
    cpu: Option<usize>,
    /// Serve the page, metrics, JSON API and WebSocket streams at this address [default: none, or `listen` in `[http]`]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Print JSON lines instead of a table
    #[arg(long)]
    json: bool,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

/// Returns the venue of a name with hyphens or underscores, in any case, and suggests those that begin like it.
pub(crate) fn venue(name: &str) -> Result<Venue, String> {
    let name = name.to_ascii_lowercase();
    Venue::find(&name.replace('-', "_")).ok_or_else(|| {
        let known = Venue::ALL.map(|venue| venue.name().replace('_', "-"));
        let similar = known.iter().filter(|known| !name.is_empty() && known.starts_with(&name)).cloned();
        let similar = similar.collect::<Vec<_>>().join(" or ");
        let tip = if similar.is_empty() { similar } else { format!("did you mean {similar}? ") };
        format!("{tip}possible values: {}", known.join(", "))
    })
}

/// How feeds are followed and shown.
pub(crate) struct Following {
    /// Address of the page; `None`: that of the configuration, if there is one.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) as_json: bool,
    pub(crate) seconds: Option<f64>,
    /// Everything that shows the books says so.
    pub(crate) is_simulated: bool,
}

/// Runs until a signal or `--seconds` stops it.
///
/// # Errors
/// Invalid flags or configuration, or a missing system resource.
pub fn run(args: &Args, config: &Config) -> anyhow::Result<()> {
    let is_twice = args.venue.is_some() && !config.market.feeds.is_empty();
    anyhow::ensure!(!is_twice, "--venue and [[market.feeds]] of --config: leave one of them out");
    let following = Following { http: args.http, as_json: args.json, seconds: args.seconds, is_simulated: false };
    match args.venue {
        Some(venue) => follow_feeds(vec![feed_of(args, venue)?], false, &following, config),
        None => follow_feeds(config.market.feeds()?, true, &following, config),
    }
}

/// Follows the feeds `configs` until the end. With `is_of_file` they are those of the configuration,
/// and follow its file at SIGHUP.
///
/// # Errors
/// Invalid flags or configuration, or a missing system resource.
pub(crate) fn follow_feeds(
    configs: Vec<FeedConfig>,
    is_of_file: bool,
    following: &Following,
    config: &Config,
) -> anyhow::Result<()> {
    anyhow::ensure!(!configs.is_empty(), "no venue: use --venue and --symbols, or [[market.feeds]] in --config");
    let page = Page::new(following, &config.http)?;
    let most = following.seconds.map(Duration::try_from_secs_f64).transpose().context("--seconds")?;
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let publishing =
        page.as_ref().map(|_| Publishing { is_simulated: following.is_simulated, candles: config.market.candles() });
    let as_json = following.as_json;
    let market = MarketConfig { publishing, ..MarketConfig::default() };
    let (failed, failures) = mpsc::channel();
    let feeds = Feeds::new(market, move |venue| {
        if let Err(error) = stdout::print(&connecting(venue, as_json)) {
            // Once the command has ended, it matters to none.
            let _ = failed.send(error);
        }
    });
    let ids = configs.into_iter().map(|config| feeds.add(config)).collect::<anyhow::Result<Vec<u32>>>()?;
    let reload = if is_of_file { follow_file(feeds.clone(), config, ids)? } else { None };
    let page = page.map(|page| page.with_reload(reload));
    stdout::ignore_broken_pipe(follow(&feeds, page, &shutdown, (as_json, &failures), most))
}

/// Serves and prints the feeds until the end; the page answers before any venue has.
fn follow(
    feeds: &Feeds,
    page: Option<Page>,
    shutdown: &Shutdown,
    (as_json, failures): (bool, &mpsc::Receiver<io::Error>),
    most: Option<Duration>,
) -> anyhow::Result<()> {
    let control = page.map(|page| page.serve(feeds)).transpose()?;
    let served = control.as_ref().map(|control| table::served(control.listen(), as_json));
    stdout::print(served.as_deref().unwrap_or_default()).context("standard output")?;
    let style = Style::new(as_json, served.unwrap_or_default());
    let shown = table::show(feeds, shutdown, (&style, failures), most);
    let has_run = !feeds.readers().is_empty();
    if let Some(control) = control {
        control.stop();
    }
    feeds.stop();
    shown?;
    anyhow::ensure!(has_run || shutdown.is_requested(), "market: no venue was reached within --seconds");
    Ok(())
}

fn feed_of(args: &Args, venue: Venue) -> anyhow::Result<FeedConfig> {
    anyhow::ensure!(!args.symbols.is_empty(), "no symbols: use --symbols A,B");
    let mut feed = match &args.url {
        Some(url) => FeedConfig::at(venue, url.clone(), args.symbols.clone()),
        None => FeedConfig::public(venue, args.symbols.clone()),
    };
    args.options.apply_to(&mut feed, None)?;
    feed.rest = args.rest_url.clone().or(feed.rest);
    feed.ask_depth(args.depth)?;
    feed.cpu = args.cpu;
    Ok(feed)
}
