//! The databases: of users, with its first read and what becomes of its rows, and of statistics.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use tt_os::secret_file;
use tt_status::allocation_messages::MessageOutput;
use turn_import::coturn::peer_rules;
use turn_server::{
    AuthSecret, CredentialSink, DatabaseLogins, ExternalCredentials, ExternalLimits, ExternalPeers, ExternalRealm,
    KeyedUsers, TurnConfig, TurnSection,
};
use turn_users::{Database, Follower, RealmOptions, RealmRows, Rows, Source};
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

impl Opened {
    /// Returns what the first read has found.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) fn summary(&self) -> anyhow::Result<String> {
        let rows = self.database.rows().map_err(Clone::clone).with_context(|| self.name.clone())?;
        let (users, secrets) = rows.map_or((0, 0), counts);
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
fn counts(rows: &RealmRows) -> (usize, usize) {
    (rows.all().map(|rows| rows.users.len()).sum(), rows.all().map(|rows| rows.secrets.len()).sum())
}

/// Returns what the default realm has, and what each further one has.
fn credentials(realms: &[String], rows: &RealmRows, logins: DatabaseLogins) -> ExternalCredentials {
    let peers_of_others = peers(&Rows::default(), &rows.every);
    let others = rows.others.iter().map(|(name, own)| (name, own));
    let mut all = realms.iter().zip(&rows.each).chain(others).map(|(name, own)| {
        let mut users = KeyedUsers::default();
        own.users.iter().filter(|_| logins.has_users()).for_each(|user| users.push(&user.name, &user.key));
        let secrets = own.secrets.iter().filter(|_| logins.has_secrets());
        let auth_secrets = secrets.map(|secret| AuthSecret(secret.0.clone())).collect();
        let RealmOptions { max_bps, user_quota, total_quota } = own.options;
        let limits = ExternalLimits::of_coturn(max_bps, user_quota, total_quota);
        let has_peers = own.peers().iter().any(|list| !list.is_empty());
        let peers = if has_peers { peers(&rows.every, own) } else { Arc::clone(&peers_of_others) };
        ExternalRealm { name: name.clone(), users, auth_secrets, origins: own.origins.clone(), limits, peers }
    });
    let ExternalRealm { users, auth_secrets, limits, peers, .. } = all.next().unwrap_or_default();
    let realms = all.collect();
    ExternalCredentials { users, auth_secrets, limits, peers, realms, peers_of_others }
}

/// Returns the peers of a realm: those of rows without a realm and its own.
fn peers(every: &Rows, own: &Rows) -> Arc<ExternalPeers> {
    let peers = peer_rules(every.peers(), own.peers());
    if peers.invalid > 0 {
        tracing::warn!(rows = peers.invalid, "rows of the database are no addresses or ranges ADDR-ADDR of peers");
    }
    Arc::new(ExternalPeers::read([&peers.allow, &peers.allow_own_host, &peers.deny]))
}
