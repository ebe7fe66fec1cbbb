//! `truetick doctor` against the simulator: healthy, and with each trouble planted that a step is there to name.

mod hyperliquid;
mod patient;
mod tls;

use std::net::TcpListener;
use std::process::Command;

use patient::{Patient, STEPS, VENUES, address, simulator};
use serde_json::Value;
use sim::{Fault, Venue};

#[test]
fn a_healthy_venue_passes_every_step() {
    let sim = simulator(2);
    for (name, venue, path, symbol) in VENUES {
        let url = address(&sim, venue, path);
        let (steps, verdict, status) = Patient::visit(&["--venue", name, "--url", &url, "--symbols", symbol]).finish();
        assert_eq!((status, verdict["verdict"].as_str()), (0, Some("ok")), "{name}: {steps:?}");
        let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
        assert_eq!(names, STEPS, "{name}: each step once, in order");
        for step in &steps {
            let skips = matches!(step["step"].as_str(), Some("resolve" | "tls" | "login"));
            assert_eq!(step["outcome"], if skips { "skipped" } else { "ok" }, "{name}: {step}");
            assert!(step["took_ms"].as_f64().unwrap() < 30_000.0 && !step["text"].as_str().unwrap().is_empty());
        }
        let facts = |step: &str| &steps.iter().find(|known| known["step"] == step).unwrap()["facts"];
        assert_eq!(facts("instruments")["listed"], if name == "binance_spot" { 1 } else { 2 }, "{name}");
        let topics = facts("topics")["topics"].as_array().unwrap();
        // Trades and what the venue says of itself may come at any time.
        let may_wait = |topic: &Value| topic["topic"] == "trades" || topic["topic"] == "status";
        let has_come = |topic: &&Value| may_wait(topic) || topic["frames"].as_u64() > Some(0);
        assert!(topics.len() >= 3 && topics.iter().all(|topic| has_come(&topic)), "{name}: {topics:?}");
        let proof = facts("proof");
        let matched = if name == "kraken" { "crc_matches" } else { "sequence_matches" };
        assert!(proof[matched].as_u64().unwrap() >= 19, "{name}: {proof}");
        assert_eq!(proof["oracle_matches"].as_u64().unwrap() > 0, name.starts_with("binance"), "{name}: {proof}");
        let frames = facts("frames");
        let odd = ["unread", "general", "unknown_keys"].map(|fact| frames[fact].clone());
        assert_eq!(odd, [0.into(), 0.into(), serde_json::json!([])], "{name}: {frames}");
        assert!(facts("lag")["p50_ns"].as_i64().unwrap() < 1_000_000_000 && facts("clock")["ahead_most_ns"].is_i64());
        // Not the venue itself, so there is nothing to contribute.
        assert_eq!(verdict["advice"], Value::Null);
    }
    sim.stop();
}

#[test]
fn the_built_in_simulator_is_examined_and_shown() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_truetick"))
            .args(["--log-level", "off", "doctor"])
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = run(&["--simulated", "--venue", "deribit", "--updates", "3"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    for step in STEPS {
        let line = shown.lines().find(|line| line.split_whitespace().nth(1) == Some(step)).expect(step);
        assert!(line.starts_with("ok ") || line.starts_with("skipped "), "{line}");
    }
    assert!(
        shown.lines().last().unwrap().starts_with("deribit (out of date: captured 2021-07, changed 2026-01): ok; "),
        "{shown}"
    );
    for arguments in [
        &["--simulated", "--venue", "hyperliquid"][..],
        &["--venue", "mtgox"],
        &["--venue", "kraken", "--url", "ftp://127.0.0.1/"],
        &["--venue", "kraken", "--seconds", "0"],
    ] {
        let output = run(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        let is_line = message.lines().count() == 1 || message.starts_with("error: invalid value");
        assert!(is_line && output.stdout.is_empty(), "{arguments:?}: {message}");
    }
}

#[test]
fn the_documents_name_the_evidence_of_every_venue() {
    let document = include_str!("../../../../docs/market-feeds.md");
    for venue in tt_venue::Venue::ALL {
        let rules = venue.rules();
        // The heading of the table names this month.
        let checked = Some(rules.evidence.checked).filter(|month| *month != "2026-11");
        let checked = checked.map_or(String::new(), |month| format!(" ({month})"));
        let row = format!("| `{}` | {} | {}{checked} |", rules.name, rules.evidence, rules.evidence.source);
        assert!(document.lines().any(|line| line == row), "docs/market-feeds.md has no row {row}");
        let months = [rules.evidence.captured, rules.evidence.changed, Some(rules.evidence.checked)];
        let is_month = |month: &&str| month.len() == 7 && month.starts_with("20") && month.as_bytes()[4] == b'-';
        assert!(months.iter().flatten().all(is_month), "{months:?}");
    }
}

#[test]
fn every_venue_is_examined_at_once() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        let output = command.args(["--log-level", "off", "doctor", "--all", "--simulated"]).args(arguments).output();
        let output = output.unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    };
    let (table, status) = run(&[]);
    assert_eq!(status, Some(0), "{table}");
    for (name, ..) in VENUES {
        let line = table.lines().find(|line| line.starts_with(&format!("{name} "))).expect(name);
        assert!(line.contains(" ok ") && (line.contains("captured 20") || line.contains("not tried live")), "{line}");
    }
    assert!(table.ends_with("6 of 6 venues passed every step\n"), "{table}");
    let (report, status) = run(&["--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((status, &report["simulated"]), (Some(0), &true.into()), "{report}");
    for venue in report["venues"].as_array().unwrap() {
        let names: Vec<&str> =
            venue["steps"].as_array().unwrap().iter().filter_map(|step| step["step"].as_str()).collect();
        assert_eq!(names, STEPS, "{venue}");
        assert!(venue["rules"]["checked"].as_str().unwrap().starts_with("20"), "{venue}");
    }
    // Too little time for any of them: each says at which step.
    let (table, status) = run(&["--seconds", "0.001"]);
    assert!(status == Some(1) && table.ends_with("0 of 6 venues passed every step\n"), "{table}");
}

#[test]
fn a_topic_that_is_accepted_and_never_sent_is_named() {
    let sim = simulator(1);
    for (name, path, withheld) in
        [("binance_usdm", "/public/stream", "mark-price"), ("binance_spot", "/stream", "best-levels")]
    {
        let (_, venue, _, symbol) = VENUES.into_iter().find(|known| known.0 == name).unwrap();
        sim.withhold(venue, &[withheld]);
        let url = address(&sim, venue, path);
        let failed = Patient::visit(&["--venue", name, "--url", &url, "--symbols", symbol]).failure("topics");
        let text = failed["text"].as_str().unwrap();
        assert!(text.contains(&format!("accepted_but_silent: {withheld} {symbol};")), "{text}");
        let topics = failed["facts"]["topics"].as_array().unwrap();
        let frames = |topic: &str| topics.iter().find(|known| known["topic"] == topic).unwrap()["frames"].as_u64();
        assert_eq!((frames(withheld), frames("book") > Some(0)), (Some(0), true), "{topics:?}");
    }
    sim.stop();
}

#[test]
fn distinguishes_a_refused_port_from_an_unknown_name() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = format!("ws://{free}/stream");
    let unknown = "ws://venue.invalid/stream".to_owned();
    for (url, step, advice) in [(refused, "connect", "nothing listens"), (unknown, "resolve", "name right")] {
        let visit = Patient::visit(&["--venue", "binance-spot", "--url", &url, "--seconds", "20"]);
        let (steps, verdict, status) = visit.finish();
        assert_eq!((status, &verdict["failed"]), (1, &serde_json::json!([step])), "{steps:?}");
        let failed = steps.iter().find(|known| known["outcome"] == "failed").unwrap();
        assert!(failed["step"] == step && failed["advice"].as_str().unwrap().contains(advice), "{failed}");
        let after = steps.iter().skip_while(|known| known["outcome"] != "failed").skip(1);
        assert!(after.into_iter().all(|known| known["outcome"] == "skipped"), "{steps:?}");
        for name in STEPS {
            assert_eq!(steps.iter().filter(|known| known["step"] == name).count(), 1, "{name}");
        }
    }
}

#[test]
fn a_symbol_that_is_not_listed_and_a_depth_that_is_refused_are_named() {
    let sim = simulator(2);
    let url = address(&sim, Venue::Kraken, "/v2");
    let failed = Patient::visit(&["--venue", "kraken", "--url", &url, "--symbols", "BTCUSD"]).failure("instruments");
    assert!(failed["text"].as_str().unwrap().contains("BTCUSD"), "{failed}");
    assert!(failed["advice"].as_str().unwrap().contains("BTC/USD"), "the advice names it: {failed}");
    let failed = Patient::visit(&["--venue", "kraken", "--url", &url, "--depth", "27"]).failure("subscribe");
    assert!(failed["text"].as_str().unwrap().contains("Subscription depth not supported"), "{failed}");
    assert!(failed["advice"].as_str().unwrap().contains("[10, 25, 100, 500, 1000]"), "{failed}");
    let nowhere = address(&sim, Venue::Deribit, "/ws/api/v3");
    let failed = Patient::visit(&["--venue", "deribit", "--url", &nowhere]).failure("upgrade");
    assert!(failed["text"].as_str().unwrap().contains("404"), "{failed}");
    sim.stop();
}

#[test]
fn silence_is_named_where_it_begins() {
    let sim = simulator(1);
    sim.mute(Venue::BinanceSpot, true);
    let url = address(&sim, Venue::BinanceSpot, "/stream");
    let failed = Patient::visit(&["--venue", "binance-spot", "--url", &url, "--seconds", "4"]).failure("subscribe");
    assert!(failed["text"].as_str().unwrap().contains("no answer to the request for btcusdt@depth"), "{failed}");
    for (name, venue, path, symbol) in VENUES {
        if name == "binance_spot" {
            continue;
        }
        let url = address(&sim, venue, path);
        let arguments = ["--venue", name, "--url", &url, "--symbols", symbol, "--updates", "1000000", "--seconds", "6"];
        let mut visit = Patient::visit(&arguments);
        visit.until("snapshot");
        sim.mute(venue, true);
        let failed = visit.failure("updates");
        assert!(failed["text"].as_str().unwrap().contains("nothing was heard for"), "{name}: {failed}");
        assert!(failed["advice"].as_str().unwrap().contains("fell silent"), "{name}: {failed}");
        assert_eq!(failed["facts"]["out_of_time"], true, "{name}: {failed}");
    }
    sim.stop();
}

#[test]
fn gaps_and_wrong_checksums_are_found_by_the_proof() {
    let sim = simulator(1);
    let visits = VENUES.map(|(name, venue, path, symbol)| {
        let (fault, fact) = match venue {
            Venue::Kraken => (Fault::Checksum, "crc_mismatches"),
            Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Okx | Venue::Bybit | Venue::Deribit => {
                (Fault::Drop, "gaps")
            }
        };
        let url = address(&sim, venue, path);
        // More updates than come until the fault is there: it ends the step.
        let mut visit = Patient::visit(&["--venue", name, "--url", &url, "--symbols", symbol, "--updates", "1000"]);
        visit.until("snapshot");
        sim.fault(venue, 0, fault);
        (name, symbol, fact, visit)
    });
    for (name, symbol, fact, visit) in visits {
        let failed = visit.failure("proof");
        assert_eq!(failed["facts"][fact], 1, "{name}: {failed}");
        assert!(
            failed["excerpts"][0].as_str().unwrap().contains(symbol.split('/').next().unwrap())
                || name.starts_with("binance")
        );
        assert!(!failed["excerpts"][0].as_str().unwrap().is_empty(), "{name}: {failed}");
    }
    sim.stop();
}

#[test]
fn a_frame_that_cannot_be_read_is_shown() {
    let sim = simulator(1);
    let url = address(&sim, Venue::Okx, "/ws/v5/public");
    let mut visit = Patient::visit(&["--venue", "okx", "--url", &url, "--updates", "100"]);
    visit.until("snapshot");
    sim.fault(Venue::Okx, 0, Fault::Truncate);
    let (steps, verdict, status) = visit.finish();
    assert_eq!(status, 1);
    assert!(verdict["failed"].as_array().unwrap().contains(&"frames".into()), "{verdict}");
    let frames = steps.iter().find(|step| step["step"] == "frames").unwrap();
    assert_eq!(frames["facts"]["unread"], 1, "{frames}");
    assert!(frames["excerpts"][0].as_str().unwrap().starts_with("1 x syntax: {\"arg\""), "{frames}");
    sim.stop();
}

#[test]
fn a_region_is_of_the_venue_and_never_of_the_simulator() {
    let unknown = "market: okx has no region moon: us, au, eea, demo";
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.ttj");
    let record =
        ["record", "--out", out.to_str().unwrap(), "--venue", "okx", "--symbols", "BTC-USDT", "--seconds", "0.1"];
    for (arguments, error) in [
        (vec!["doctor", "--venue", "okx", "--region", "moon"], unknown),
        ([&record[..], &["--live", "--region", "moon"]].concat(), unknown),
        ([&record[..], &["--region", "us"]].concat(), "it needs --live"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_truetick")).args(&arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(error), "{arguments:?}: {text}");
    }
}
