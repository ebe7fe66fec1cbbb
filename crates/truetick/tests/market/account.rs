//! Accounts: a login that the simulator checks, the account's own messages, and refusals that cost the books nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use market_feed::{self as market, Credentials, FeedConfig, MarketConfig};
use serde_json::Value;
use sim::Venue as SimVenue;
use tempfile::TempDir;
use tt_venue::Venue;

/// Everything that is waited for happens within this time, also on a busy machine.
const SOON: Duration = Duration::from_secs(30);

const VENUES: [(Venue, SimVenue, &str); 6] = [
    (Venue::BinanceSpot, SimVenue::BinanceSpot, "/stream"),
    (Venue::BinanceUsdm, SimVenue::BinanceUsdm, "/public/stream"),
    (Venue::Kraken, SimVenue::Kraken, "/v2"),
    (Venue::Okx, SimVenue::Okx, "/ws/v5/public"),
    (Venue::BybitLinear, SimVenue::Bybit, "/v5/public/linear"),
    (Venue::Deribit, SimVenue::Deribit, "/ws/api/v2"),
];

fn simulator() -> sim::Running {
    sim::start(sim::Config { instruments: 1, rate_hz: 1000.0, seed: 9, ..sim::Config::default() }).unwrap()
}

/// A file of credentials that only its owner may read.
fn account_file(folder: &TempDir, key: &str, secret: &str) -> PathBuf {
    let path = folder.path().join("account.toml");
    let text = format!("key = \"{key}\"\nsecret = \"{secret}\"\npassphrase = \"{}\"\n", sim::PASSPHRASE);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn feed(sim: &sim::Running, (venue, of_sim, path): (Venue, SimVenue, &str), account: &Path) -> FeedConfig {
    let symbols = sim.instruments(of_sim).into_iter().map(|listed| listed.symbol).collect();
    let streams = format!("ws://{}{path}", sim.address(of_sim)).parse().unwrap();
    let mut feed = FeedConfig::at(venue, streams, symbols);
    feed.account = Some(Credentials::read(account).unwrap());
    feed
}

#[test]
fn own_orders_come_after_a_login_at_every_simulated_venue() {
    let sim = simulator();
    let folder = tempfile::tempdir().unwrap();
    let account = account_file(&folder, sim::API_KEY, sim::API_SECRET);
    let feeds = VENUES.map(|venue| feed(&sim, venue, &account)).to_vec();
    let running = market::start(MarketConfig { feeds, sample_one_in: 8, ..MarketConfig::default() }).unwrap();
    let reader = running.reader();
    for (index, (venue, ..)) in VENUES.into_iter().enumerate() {
        let received = || reader.counters(index).order_updates >= 10;
        assert!(reader.wait(SOON, received), "{}: {:?}", venue.name(), reader.status(index));
        assert_eq!(reader.status(index).refusals, [], "{}", venue.name());
    }
    assert!(reader.wait(SOON, || reader.all_verified()), "books are verified meanwhile");
    running.stop();
    for (index, (venue, ..)) in VENUES.into_iter().enumerate() {
        let counters = reader.counters(index);
        assert!(
            counters.closes() && counters.executions > 0 || venue == Venue::BybitLinear,
            "{}: {counters:?}",
            venue.name()
        );
        let malformed = tt_market::DropReason::ALL.into_iter().filter(|fault| fault.is_malformed());
        assert_eq!(malformed.map(|fault| counters.dropped(fault)).sum::<u64>(), 0, "{}: {counters:?}", venue.name());
    }
    sim.stop();
}

/// The feed of Binance spot with an Ed25519 key in a file next to the account's.
fn feed_with_key_pair(sim: &sim::Running, folder: &TempDir, key: &str, pem: &str) -> FeedConfig {
    for (name, text) in [("key.pem", pem), ("account.toml", &format!("key = \"{key}\"\nsecret_file = \"key.pem\"\n"))] {
        fs::write(folder.path().join(name), text).unwrap();
        fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    feed(sim, VENUES[0], &folder.path().join("account.toml"))
}

#[test]
fn own_orders_come_after_a_session_logon_with_an_ed25519_key() {
    let sim = simulator();
    let folder = tempfile::tempdir().unwrap();
    let config = |key: &str, pem: &str| {
        let feeds = vec![feed_with_key_pair(&sim, &folder, key, pem)];
        MarketConfig { feeds, sample_one_in: 8, ..MarketConfig::default() }
    };
    let running = market::start(config(sim::API_KEY_ED25519, sim::API_PRIVATE_KEY)).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.counters(0).order_updates >= 10), "{:?}", reader.status(0));
    assert_eq!(reader.status(0).refusals, []);
    running.stop();
    // By `openssl genpkey -algorithm ED25519`.
    let another = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEi0ZTBu4pkQAPHBaCyaSriN/YG7nOuX8JS5Forvcx3k\n-----END PRIVATE KEY-----\n";
    for (key, pem, words) in [
        (sim::API_KEY_ED25519, another, "Signature for this request is not valid"),
        ("stranger", sim::API_PRIVATE_KEY, "Invalid API-key"),
        (sim::API_KEY, sim::API_PRIVATE_KEY, "HMAC_SHA256 API key is not supported"),
        (
            sim::API_KEY_ED25519,
            "-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n",
            "no Ed25519 key in PEM",
        ),
    ] {
        let running = market::start(config(key, pem)).unwrap();
        let reader = running.reader();
        assert!(reader.wait(SOON, || !reader.status(0).refusals.is_empty()), "{words}: {:?}", reader.status(0));
        let status = reader.status(0);
        assert!(status.refusals[0].reason.contains(words), "{status:?}");
        assert!(!format!("{status:?}").contains("MC4C"), "a secret is printed");
        assert!(reader.wait(SOON, || reader.all_verified()), "books are verified meanwhile");
        running.stop();
    }
    sim.stop();
}

#[test]
fn a_rejected_login_reports_the_venues_error_and_books_continue() {
    let sim = simulator();
    let folder = tempfile::tempdir().unwrap();
    for venue in VENUES {
        // A listen key is given for the key alone. The wrong secret is right in its form.
        let (key, secret) = if venue.0 == Venue::BinanceUsdm {
            ("stranger", sim::API_SECRET)
        } else {
            (sim::API_KEY, "bm90IHRoZSBzZWNyZXQ=")
        };
        let account = account_file(&folder, key, secret);
        let config =
            MarketConfig { feeds: vec![feed(&sim, venue, &account)], sample_one_in: 8, ..MarketConfig::default() };
        let running = market::start(config).unwrap();
        let reader = running.reader();
        assert!(reader.wait(SOON, || reader.all_verified()), "{}: {:?}", venue.0.name(), reader.status(0));
        let received = || !reader.status(0).refusals.is_empty();
        assert!(reader.wait(SOON, received), "{}: {:?}", venue.0.name(), reader.status(0));
        let status = reader.status(0);
        let words = match venue.1 {
            SimVenue::BinanceSpot => "Signature for this request is not valid",
            SimVenue::BinanceUsdm => "Invalid API-key",
            SimVenue::Kraken => "EAPI:Invalid signature",
            SimVenue::Okx => "Invalid sign",
            SimVenue::Bybit => "Params Error",
            SimVenue::Deribit => "invalid_credentials",
        };
        assert_eq!((status.refusals.len(), status.refusals[0].subject.as_str()), (1, "account"), "{status:?}");
        assert!(status.refusals[0].reason.contains(words), "{}: {status:?}", venue.0.name());
        let names_regions = status.refusals[0].reason.contains("region is one of us, au, eea, demo");
        assert_eq!(names_regions, venue.1 == SimVenue::Okx, "{status:?}");
        assert!(!format!("{status:?}").contains(secret), "a secret is printed");
        // Neither the books nor the login are tried again and again.
        assert!(reader.wait(SOON, || reader.counters(0).deltas > 500));
        assert_eq!((reader.status(0).connections, reader.counters(0).order_updates), (1, 0), "{}", venue.0.name());
        assert!(sim.stats(venue.1).opened <= 3, "{}: {:?}", venue.0.name(), sim.stats(venue.1));
        running.stop();
    }
    sim.stop();
}

#[test]
fn the_doctor_logs_in() {
    let sim = simulator();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("ws://{}/ws/v5/public", sim.address(SimVenue::Okx));
    for (secret, outcome, status) in [(sim::API_SECRET, "ok", 0), ("wrong", "failed", 1)] {
        let account = account_file(&folder, sim::API_KEY, secret);
        let output = Command::new(env!("CARGO_BIN_EXE_truetick"))
            .args(["doctor", "--json", "--venue", "okx", "--url", &url, "--updates", "3", "--account-file"])
            .arg(&account)
            .output()
            .unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{shown}");
        let steps = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let login = steps.into_iter().find(|step| step["step"] == "login").unwrap();
        assert_eq!(login["outcome"], outcome, "{login}");
        assert!(!shown.contains(secret) || secret == "wrong", "a secret is printed");
    }
    fs::set_permissions(folder.path().join("account.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    let path = folder.path().join("account.toml");
    let refused = Command::new(env!("CARGO_BIN_EXE_truetick"))
        .args(["doctor", "--venue", "okx", "--url", &url, "--account-file"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("chmod 600"));
    sim.stop();
}
