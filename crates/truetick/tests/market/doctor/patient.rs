//! A doctor's visit, followed step by step.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use sim::Venue;

/// Every step, in order.
pub(crate) const STEPS: [&str; 15] = [
    "resolve",
    "connect",
    "tls",
    "instruments",
    "upgrade",
    "subscribe",
    "snapshot",
    "updates",
    "proof",
    "topics",
    "keep_alive",
    "clock",
    "lag",
    "frames",
    "login",
];

/// The simulated venues: the engine's name, the simulator's, the path of the streams, and the first symbol.
pub(crate) const VENUES: [(&str, Venue, &str, &str); 6] = [
    ("binance_spot", Venue::BinanceSpot, "/stream", "BTCUSDT"),
    ("binance_usdm", Venue::BinanceUsdm, "/public/stream", "BTCUSDT"),
    ("kraken", Venue::Kraken, "/v2", "BTC/USD"),
    ("okx", Venue::Okx, "/ws/v5/public", "BTC-USDT"),
    ("bybit_linear", Venue::Bybit, "/v5/public/linear", "BTCUSDT"),
    ("deribit", Venue::Deribit, "/ws/api/v2", "BTC-PERPETUAL"),
];

pub(crate) fn simulator(instruments: u32) -> sim::Running {
    sim::start(sim::Config { instruments, rate_hz: 200.0, seed: 5, ..sim::Config::default() }).unwrap()
}

pub(crate) fn address(sim: &sim::Running, venue: Venue, path: &str) -> String {
    format!("ws://{}{path}", sim.address(venue))
}

/// `truetick doctor --json`; it does not outlive the test.
pub(crate) struct Patient {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
    steps: Vec<Value>,
}

impl Patient {
    pub(crate) fn visit(arguments: &[&str]) -> Self {
        Self::trusting(None, arguments)
    }

    /// As [`visit`](Self::visit), with an additional trusted authority.
    pub(crate) fn trusting(authority: Option<&Path>, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        command.args(["--log-level", "off", "doctor", "--json"]).args(arguments).stdout(Stdio::piped());
        match authority {
            Some(path) => command.env("SSL_CERT_FILE", path),
            None => command.env_remove("SSL_CERT_FILE"),
        };
        let mut child = command.spawn().unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, printed, steps: Vec::new() }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.printed.next().expect("it ends with a verdict").unwrap()).unwrap()
    }

    /// Goes on until `step` has ended.
    pub(crate) fn until(&mut self, step: &str) {
        while self.steps.last().is_none_or(|last| last["step"] != step) {
            let line = self.next();
            assert!(line["verdict"].is_null(), "{step} was not come to: {:?}", self.steps);
            self.steps.push(line);
        }
        assert_ne!(self.steps.last().unwrap()["outcome"], "failed", "{:?}", self.steps);
    }

    /// The steps, the verdict and the status.
    pub(crate) fn finish(mut self) -> (Vec<Value>, Value, i32) {
        let verdict = loop {
            let line = self.next();
            if !line["verdict"].is_null() {
                break line;
            }
            self.steps.push(line);
        };
        assert!(self.printed.next().is_none(), "nothing comes after the verdict");
        let status = self.child.wait().unwrap().code().unwrap();
        (std::mem::take(&mut self.steps), verdict, status)
    }

    /// The first step that failed, which is `step`.
    pub(crate) fn failure(self, step: &str) -> Value {
        let (steps, verdict, status) = self.finish();
        assert_eq!((status, verdict["verdict"].as_str()), (1, Some("failed")), "{steps:?}");
        let failed = steps.iter().find(|known| known["outcome"] == "failed").expect("a step failed").clone();
        assert_eq!(failed["step"], step, "{steps:?}");
        failed
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
