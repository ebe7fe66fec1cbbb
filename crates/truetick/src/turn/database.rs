//! The databases: of users, with its first read and what becomes of its rows, and of statistics.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use tt_os::secret_file;
use tt_status::allocation_messages::MessageOutput;
use turn_import::coturn::peer_rules;
use turn_server::{
    AuthSecret, CredentialSink, DatabaseLogins, ExternalCredentials, ExternalLimits, ExternalRealm, KeyedUsers,
    PeerRange, TurnConfig, TurnSection,
};
use turn_users::{Database, Follower, RealmOptions, Rows, Source};
use zeroize::Zeroizing;

/// The database that a section names, after its first read.
#[derive(Debug)]
pub(super) struct Opened {
    database: Database,
    logins: DatabaseLogins,
    name: String,
}

/// Reads the database of `section` for the first time, with the password of its file or `password`.
///
/// # Errors
/// The name is invalid, or this program has no such database. That it is away is none.
pub(super) fn open(
    section: &TurnSection,
    turn: &TurnConfig,
    password: Option<&Zeroizing<String>>,
) -> anyhow::Result<Option<Opened>> {
    let Some(text) = &section.database else { return Ok(None) };
    let key = || section.key_sources.name("database", 0);
    let file = (section.database_password_file.as_deref(), "database_password_file");
    let source = source(section, (text, "database"), file, password)?;
    let database = Database::open(&source, turn.realm_names()).with_context(key)?;
    Ok(Some(Opened { database, logins: section.database_logins.unwrap_or_default(), name: key() }))
}

/// Returns the output for messages about allocations, with the password of its file or `password`. It connects later.
///
/// # Errors
/// The name is invalid, or this program has no Redis.
pub(super) fn message_output(
    section: &TurnSection,
    password: Option<&Zeroizing<String>>,
) -> anyhow::Result<Option<Box<dyn MessageOutput>>> {
    let Some(text) = &section.stats_database else { return Ok(None) };
    let file = (section.stats_database_password_file.as_deref(), "stats_database_password_file");
    let source = source(section, (text, "stats_database"), file, password)?;
    source.message_output().map(Some).with_context(|| section.key_sources.name("stats_database", 0))
}

/// Returns the source that a key names, with the password of its file or `password`.
fn source(
    section: &TurnSection,
    (text, key): (&str, &str),
    (file, file_key): (Option<&Path>, &str),
    password: Option<&Zeroizing<String>>,
) -> anyhow::Result<Source> {
    let named = |key| move || section.key_sources.name(key, 0);
    let mut source: Source = text.parse().map_err(anyhow::Error::msg).with_context(named(key))?;
    let of_file = |path: &Path| secret_file::read_first_line(path).with_context(named(file_key));
    let of_file = file.map(of_file).transpose()?;
    if let Some(password) = of_file.as_ref().or(password) {
        source.set_password(password.clone()).map_err(anyhow::Error::msg).with_context(named(key))?;
    }
    Ok(source)
}

/// Returns the limits of a realm. Like coturn's `max-bps`, that of the database is for each direction.
fn limits(options: RealmOptions) -> ExternalLimits {
    let RealmOptions { max_bps, user_quota, total_quota } = options;
    let set = |option: Option<u64>| option.filter(|limit| *limit > 0);
    let count = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    ExternalLimits {
        allocations_per_user: set(user_quota).map(count),
        allocations_total: set(total_quota).map(count),
        bytes_per_second_per_allocation: set(max_bps).map(|limit| limit.saturating_mul(2)),
    }
}

impl Opened {
    /// Returns what the first read has found.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) fn summary(&self) -> anyhow::Result<String> {
        let rows = self.database.rows().map_err(Clone::clone).with_context(|| self.name.clone())?;
        let (users, secrets) = counts(rows);
        Ok(format!("database: {}, {}", super::counted(users, "user"), super::counted(secrets, "secret")))
    }

    /// Gives the rows of the first read to `sink`, and those that change later.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn follow(self, sink: CredentialSink) -> io::Result<Follower> {
        let Self { database, logins, .. } = self;
        database.follow(move |realms, rows| match sink.replace(credentials(realms, &rows, logins)) {
            Ok(true) => {
                let (users, secrets) = counts(&rows);
                tracing::info!(users, secrets, "users, secrets, peers and limits of the database replaced");
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "users and secrets of the database not replaced");
                false
            }
        })
    }
}

/// Returns the numbers of users and secrets of all realms.
fn counts(rows: &[Rows]) -> (usize, usize) {
    (rows.iter().map(|rows| rows.users.len()).sum(), rows.iter().map(|rows| rows.secrets.len()).sum())
}

/// Returns what the default realm has, with its peers, and what each further one has.
fn credentials(realms: &[String], rows: &[Rows], logins: DatabaseLogins) -> ExternalCredentials {
    let mut all = realms.iter().zip(rows).map(|(name, rows)| {
        let mut users = KeyedUsers::default();
        rows.users.iter().filter(|_| logins.has_users()).for_each(|user| users.push(&user.name, &user.key));
        let secrets = rows.secrets.iter().filter(|_| logins.has_secrets());
        let auth_secrets = secrets.map(|secret| AuthSecret(secret.0.clone())).collect();
        let (origins, limits) = (rows.origins.clone(), limits(rows.options));
        ExternalRealm { name: name.clone(), users, auth_secrets, origins, limits }
    });
    let (ExternalRealm { users, auth_secrets, limits, .. }, realms) = (all.next().unwrap_or_default(), all.collect());
    let peers = rows.first().map(|rows| peer_rules(&rows.allowed_peers, &rows.denied_peers)).unwrap_or_default();
    if peers.invalid > 0 {
        tracing::warn!(rows = peers.invalid, "rows of the database are no addresses or ranges ADDR-ADDR of peers");
    }
    let ranges = |texts: Vec<String>| texts.iter().filter_map(|text| text.parse().ok()).collect::<Vec<PeerRange>>();
    let (allow_peers, allow_own_hosts) = (ranges(peers.allow), ranges(peers.allow_own_host));
    let deny_peers = ranges(peers.deny);
    ExternalCredentials { users, auth_secrets, allow_peers, allow_own_hosts, deny_peers, limits, realms }
}
