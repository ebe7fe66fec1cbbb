//! Control of a running gate over its HTTP interface.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use http_body_util::{BodyExt as _, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use risk_gate::LimitsFile;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tt_os::{secret_file, stdout};

use super::{Gate, Scope};

/// Time within which a gate answers.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Maximum size of an answer: a limits file and what is said of it.
const BODY_BYTES_MAX: usize = 8 << 20;

/// Interval between two questions for open orders.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Exit status if a part of the gate did not acknowledge a mode, or orders are open.
const SILENT: u8 = 2;

/// Puts a scope into a mode, and prints who has seen it.
pub(super) fn set_mode(mode: &str, Scope { scope, gate }: &Scope) -> Result<ExitCode> {
    let body = json!({ "scope": scope, "mode": mode }).to_string();
    let change = post(gate, "/api/v1/risk/modes", "application/json", body)?;
    let text = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
    let silent: Vec<_> = change["silent"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let head = format!("{} is {} (before: {})", text("scope"), text("mode"), text("before"));
    if change["acknowledged"] == true {
        let waited = &change["waited_us"];
        stdout::write(&format!("{head}: acknowledged by the gate and every sender after {waited} us\n"));
        return Ok(ExitCode::SUCCESS);
    }
    stdout::write(&format!("{head}: in force, but silent: {}; a silent sender is closed\n", silent.join(", ")));
    Ok(ExitCode::from(SILENT))
}

/// Cancels the open orders of a scope until none is open, for `wait_s` at most; prints those that are.
pub(super) fn cancel(Scope { scope, gate }: &Scope, wait_s: u32) -> Result<ExitCode> {
    let (started, mut requested) = (Instant::now(), 0);
    loop {
        let body = json!({ "scope": scope }).to_string();
        let found = post(gate, "/api/v1/risk/cancels", "application/json", body)?;
        requested += found["requested"].as_u64().unwrap_or(0);
        let open = found["open"].as_array().map_or(&[][..], Vec::as_slice);
        if open.is_empty() {
            stdout::write(&format!("{scope}: {requested} cancels, no order is open\n"));
            return Ok(ExitCode::SUCCESS);
        }
        if started.elapsed() >= Duration::from_secs(wait_s.into()) {
            stdout::write(&format!("{scope}: {requested} cancels, open after {wait_s} s: {}\n", open.len()));
            for order in open {
                stdout::write(&format!("account {}, client id {}\n", order["account"], order["client_id"]));
            }
            return Ok(ExitCode::from(SILENT));
        }
        thread::sleep(ASK_EVERY);
    }
}

/// Replaces the limits by those of the file at `path`.
pub(super) fn load(path: &Path, gate: &Gate) -> Result<ExitCode> {
    // What this version refuses is not sent.
    LimitsFile::read(path)?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let loaded = post(gate, "/api/v1/risk/limits-file", "application/toml", text)?;
    let sha256 = loaded["sha256"].as_str().unwrap_or_default();
    stdout::write(&format!("{}: version {} is in force, sha256 {sha256}\n", path.display(), loaded["version"]));
    Ok(ExitCode::SUCCESS)
}

/// Posts a body to a path of the gate; returns the JSON of the answer.
fn post(gate: &Gate, path: &str, kind: &str, body: String) -> Result<Value> {
    let token = secret_file::read_first_line(&gate.token_file)?;
    let base: Uri = gate.url.parse().with_context(|| format!("--url: {} is no address", gate.url))?;
    ensure!(base.scheme_str() == Some("http"), "--url: {} does not begin with http://", gate.url);
    let authority = base.authority().with_context(|| format!("--url: {} has no host", gate.url))?.clone();
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, authority.as_str())
        .header(CONTENT_TYPE, kind)
        .body(body)
        .context("the request")?;
    let mut bearer: hyper::header::HeaderValue = format!("Bearer {}", &*token).parse().context("the token")?;
    bearer.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, bearer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("runtime")?;
    let address = (authority.host().trim_matches(['[', ']']).to_owned(), authority.port_u16().unwrap_or(80));
    let answered = runtime.block_on(async { tokio::time::timeout(ANSWER_MAX, exchange(address, request)).await });
    let (status, text) =
        answered.with_context(|| format!("{}: no answer", gate.url))?.with_context(|| gate.url.clone())?;
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if status != StatusCode::OK {
        match (value["error"].as_str(), value["absent"].as_str()) {
            (Some(error), _) => bail!("{}: {error}", gate.url),
            (None, Some(_)) => bail!("{}: no gate runs there", gate.url),
            (None, None) => bail!("{}: {status}", gate.url),
        }
    }
    Ok(value)
}

async fn exchange(address: (String, u16), request: Request<String>) -> Result<(StatusCode, String)> {
    let stream = TcpStream::connect((address.0.as_str(), address.1)).await.context("cannot connect")?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
    drop(sender);
    connection.abort();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
