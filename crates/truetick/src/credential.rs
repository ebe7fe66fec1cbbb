//! `truetick credential`: a time-limited credential of the TURN REST API, for a product.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::ValueEnum;
use serde::Serialize;
use tt_os::{secret_file, stdout};
use tt_turn::codec::HmacSha1;
use zeroize::Zeroizing;

/// Flags of `truetick credential`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File with the secret that the server has in --auth-secret-file, readable by its owner only; its first line counts
    #[arg(long, value_name = "F")]
    secret_file: PathBuf,
    /// Name that the server counts and logs
    #[arg(long, value_name = "NAME")]
    user: String,
    /// Time until the credential expires, as 30m, 1h or 7d; a call that has begun goes on
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// Print the configuration of this product instead
    #[arg(long = "for", value_name = "PRODUCT", value_enum)]
    product: Option<Product>,
    /// Host name of the server in that configuration
    #[arg(long, value_name = "HOST", default_value = "turn.example.org")]
    host: String,
    /// Print JSON, as the TURN REST API does
    #[arg(long, conflicts_with = "product")]
    json: bool,
}

/// A product that uses TURN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Product {
    /// JavaScript: RTCPeerConnection with this credential
    Js,
    /// Synapse: homeserver.yaml with the secret
    Synapse,
    /// Jitsi Meet: Prosody's external_services with the secret
    Jitsi,
    /// Nextcloud Talk: occ with the secret
    Nextcloud,
    /// LiveKit: turn_servers with this credential
    Livekit,
}

/// A credential, as the TURN REST API writes it.
#[derive(Serialize)]
struct Credential {
    username: String,
    password: String,
    ttl: u64,
    uris: Vec<String>,
}

/// Prints a credential, or what a product needs.
///
/// # Errors
/// The file cannot be read or is readable by others, the name cannot be one, or the time is too long.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let secret = secret_file::read_first_line(&args.secret_file).context("credential: --secret-file")?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    ensure!(!args.host.is_empty() && args.host.chars().all(is_host), "credential: --host is no host name");
    let (username, password) = make(&secret, &args.user, args.ttl)?;
    let (password, ttl) = (password.to_string(), args.ttl.as_secs());
    let credential = Credential { username, password, ttl, uris: uris(&args.host) };
    let text = match (args.product, args.json) {
        (Some(product), _) => product.configuration(&credential, args),
        (None, true) => serde_json::to_string_pretty(&credential)? + "\n",
        (None, false) => format!("username: {}\npassword: {}\n", credential.username, credential.password),
    };
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))
}

/// Returns a name that is valid for `ttl`, and its password.
///
/// # Errors
/// `user` has control characters or no characters; the time is too long.
pub(crate) fn make(secret: &str, user: &str, ttl: Duration) -> anyhow::Result<(String, Zeroizing<String>)> {
    let is_name = !user.is_empty() && !user.chars().any(char::is_control);
    ensure!(is_name, "--user must be a name without control characters");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
    let expiry = now.checked_add(ttl).context("--ttl is too long")?;
    let name = format!("{}:{user}", expiry.as_secs());
    let password = password(secret, &name);
    Ok((name, password))
}

/// Returns the password of a time-limited name: its HMAC-SHA1 in base64.
fn password(secret: &str, name: &str) -> Zeroizing<String> {
    Zeroizing::new(BASE64_STANDARD.encode(HmacSha1::new(secret.as_bytes()).mac(name.as_bytes())))
}

fn uris(host: &str) -> Vec<String> {
    vec![
        format!("turn:{host}:3478?transport=udp"),
        format!("turn:{host}:3478?transport=tcp"),
        format!("turns:{host}:5349?transport=tcp"),
    ]
}

impl Product {
    /// Returns the configuration of the product. Those that make credentials themselves get the secret's file named.
    fn configuration(self, credential: &Credential, args: &Args) -> String {
        let Credential { username, password, uris, .. } = credential;
        let (password, host) = (password.as_str(), &args.host);
        let json = |text: &str| serde_json::Value::from(text).to_string();
        let secret = json(&format!("the secret of {}", args.secret_file.display()));
        match self {
            Self::Js => {
                let urls = uris.iter().map(|uri| json(uri)).collect::<Vec<_>>().join(", ");
                let (username, password) = (json(username), json(password));
                format!(
                    "new RTCPeerConnection({{\n  iceServers: [\n    {{ urls: [{urls}],\n      username: {username}, credential: {password} }}\n  ]\n}});\n"
                )
            }
            Self::Synapse => {
                let uris: String = uris.iter().map(|uri| format!("  - {}\n", json(uri))).collect();
                let ttl = args.ttl.as_secs();
                format!(
                    "turn_uris:\n{uris}turn_shared_secret: {secret}\nturn_user_lifetime: {ttl}s\nturn_allow_guests: false\n"
                )
            }
            Self::Jitsi => {
                let ttl = args.ttl.as_secs();
                let line = |kind: &str, port: u16, transport: &str| {
                    format!(
                        "  {{ type = \"{kind}\", host = \"{host}\", port = {port}, transport = \"{transport}\",\n    secret = true, ttl = \
                         {ttl}, algorithm = \"turn\" }}"
                    )
                };
                format!(
                    "external_service_secret = {secret};\nexternal_services = {{\n  {{ type = \"stun\", host = \"{host}\", port = 3478 \
                     }},\n{},\n{}\n}};\n",
                    line("turn", 3_478, "udp"),
                    line("turns", 5_349, "tcp")
                )
            }
            Self::Nextcloud => format!(
                "occ talk:stun:add {host}:3478\nocc talk:turn:add --secret {secret} turn {host}:3478 udp,tcp\nocc talk:turn:add \
                 --secret {secret} turns {host}:5349 tcp\n"
            ),
            Self::Livekit => {
                let (username, password) = (json(username), json(password));
                let server = |port: u16, protocol: &str| {
                    format!(
                        "    - host: {host}\n      port: {port}\n      protocol: {protocol}\n      username: {username}\n      credential: \
                         {password}\n"
                    )
                };
                format!("rtc:\n  turn_servers:\n{}{}", server(3_478, "udp"), server(5_349, "tls"))
            }
        }
    }
}
