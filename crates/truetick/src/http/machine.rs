//! `/healthz`, `/readyz` and `/api/v1/machine`.

use std::fs;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::answer::json_of;
use super::snapshot::Machine;
use super::{App, Shared};

/// 200 as long as the control plane answers.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// 200 when every engine that runs here does its work: the TURN server listens, no worker is down and it does not drain,
/// every feed is connected and every
/// book is proven; else 503. The body says which part is not ready.
pub(super) async fn readyz(app: App) -> Response {
    let word = |ready: Option<bool>| match ready {
        Some(true) => "ready",
        Some(false) => "not ready",
        None => "absent",
    };
    let turn = app.state.turn.as_ref().map(|turn| {
        let turn = turn();
        !turn.listens.is_empty() && !turn.draining && turn.workers_down == 0
    });
    let market = app.state.market.as_ref().map(|market| market().is_ready());
    let risk = app.state.risk.as_ref().map(|_| true);
    let ready = [turn, market, risk].iter().all(|part| part.unwrap_or(true));
    let body = json!({ "ready": ready, "turn": word(turn), "market": word(market), "risk": word(risk) });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(body)).into_response()
}

pub(super) async fn machine(app: App) -> Response {
    json_of(&snapshot(&app))
}

/// The machine and this process on it.
pub(super) fn snapshot(shared: &Shared) -> Machine {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let host = &shared.host;
    Machine {
        version: env!("CARGO_PKG_VERSION"),
        build: if cfg!(debug_assertions) { "debug" } else { "release" },
        arch: std::env::consts::ARCH,
        cpu: host.cpu_model.clone().unwrap_or_else(|| "unknown".into()),
        cores: host.cpus_available,
        kernel: host.kernel.clone().unwrap_or_default(),
        governor: host.governor.clone(),
        uptime_ms: u64::try_from(shared.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        rss_bytes: kibibytes(&status, "VmRSS").saturating_mul(1024),
        cpu_ms: cpu_ms(),
        threads: field(&status, "Threads").and_then(|count| count.parse().ok()).unwrap_or(0),
    }
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

fn kibibytes(status: &str, name: &str) -> u64 {
    field(status, name).and_then(|value| value.strip_suffix(" kB")).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Processor time of this process, user and system, milliseconds. Linux counts it in hundredths of a second here on
/// every machine (`USER_HZ`), so that the division by 10 is exact.
fn cpu_ms() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses and may hold spaces; utime and stime are 14 and 15.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    rest.split(' ').skip(11).take(2).filter_map(|count| count.parse::<u64>().ok()).sum::<u64>() * 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "VmRSSx:\t1 kB\nVmRSS:\t  5120 kB\nName:\tA: B\n";
        assert_eq!(kibibytes(text, "VmRSS"), 5120);
        assert_eq!(field(text, "Name"), Some("A: B"));
        assert_eq!(field(text, "absent"), None);
    }
}
