//! PostgreSQL.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Row};
use zeroize::Zeroizing;

use crate::read_error::{ErrorKind, ReadError};
use crate::reader::Reader;
use crate::realm_rows::RealmRows;
use crate::rows::{KEY_LEN_MAX, NAME_LEN_MAX, PeerList, Rows, SECRET_LEN_MAX, TEXT_LEN_MAX};

/// Time that a read may take, with the connection.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// A database of PostgreSQL.
pub(crate) struct Postgres {
    config: Config,
    connected: Option<Connected>,
}

struct Connected {
    /// Runs the connection while a read waits for it.
    runtime: Runtime,
    client: Client,
}

impl Postgres {
    /// Creates a reader of the database of `connection`, in libpq's words or as a URL.
    pub(crate) fn new(connection: &str, password: Option<&Zeroizing<String>>) -> Result<Self, ReadError> {
        let mut config: Config = connection.parse().map_err(|error| error_of(&error, ErrorKind::Invalid))?;
        if let Some(password) = password {
            config.password(password.as_bytes());
        }
        if config.get_ssl_mode() == SslMode::Require {
            let reason = "sslmode=require is not supported: connections have no TLS; use a Unix socket or a tunnel";
            return Err(ReadError::new(ErrorKind::Invalid, reason));
        }
        Ok(Self { config, connected: None })
    }
}

impl Reader for Postgres {
    fn read(&mut self, realms: &[String]) -> Result<Option<RealmRows>, ReadError> {
        let connected = match self.connected.take() {
            Some(connected) => connected,
            None => Connected::new(&self.config)?,
        };
        let read = connected.runtime.block_on(within(all(&connected.client, realms)));
        if read.is_ok() {
            self.connected = Some(connected);
        } else {
            // Its connection is of no use, whatever it still does.
            connected.runtime.shutdown_background();
        }
        read.map(Some)
    }
}

impl Connected {
    fn new(config: &Config) -> Result<Self, ReadError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ReadError::new(ErrorKind::Connect, error))?;
        let connect = async { config.connect(NoTls).await.map_err(|error| error_of(&error, ErrorKind::Connect)) };
        let (client, connection) = runtime.block_on(within(connect))?;
        // A connection that breaks fails the next query.
        runtime.spawn(async { drop(connection.await) });
        Ok(Self { runtime, client })
    }
}

async fn within<T>(read: impl Future<Output = Result<T, ReadError>>) -> Result<T, ReadError> {
    tokio::time::timeout(READ_TIMEOUT, read).await.unwrap_or_else(|_| {
        Err(ReadError::new(ErrorKind::Timeout, format_args!("no answer within {} s", READ_TIMEOUT.as_secs())))
    })
}

/// Reads every table of each realm in one transaction.
async fn all(client: &Client, realms: &[String]) -> Result<RealmRows, ReadError> {
    let run = async |sql| client.batch_execute(sql).await.map_err(|error| error_of(&error, ErrorKind::Query));
    run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let (mut every, mut each) = (Rows::default(), Vec::with_capacity(realms.len()));
    peers(client, "", &mut every).await?;
    for (place, realm) in realms.iter().enumerate() {
        each.push(rows(client, realm, place > 0).await?);
    }
    let mut others = Vec::new();
    for name in other_realms(client, realms).await? {
        let rows = rows(client, &name, true).await?;
        others.push((name, rows));
    }
    run("COMMIT").await?;
    RealmRows::new(every, each, others)
}

/// Reads every table of one realm. The default one needs no origins.
async fn rows(client: &Client, realm: &str, has_origins: bool) -> Result<Rows, ReadError> {
    let mut rows = Rows::default();
    let users = [("name", NAME_LEN_MAX), ("hmackey", KEY_LEN_MAX)];
    each(client, realm, "turnusers_lt", users, |[name, key]| rows.add_user(name, key)).await?;
    each(client, realm, "turn_secret", one("value", SECRET_LEN_MAX), |[value, _]| rows.add_secret(value)).await?;
    peers(client, realm, &mut rows).await?;
    let options = [("opt", TEXT_LEN_MAX), ("value", TEXT_LEN_MAX)];
    let add = |[name, value]: [Option<&[u8]>; 2]| {
        rows.add_option(name, value);
        Ok(())
    };
    each(client, realm, "turn_realm_option", options, add).await?;
    if has_origins {
        let origin = one("origin", TEXT_LEN_MAX);
        each(client, realm, "turn_origin_to_realm", origin, |[origin, _]| rows.add_origin(origin)).await?;
    }
    Ok(rows)
}

/// Returns the realms of origins that are not among `known`. Without the table there are none.
async fn other_realms(client: &Client, known: &[String]) -> Result<Vec<String>, ReadError> {
    let of_query = |error: tokio_postgres::Error| error_of(&error, ErrorKind::Query);
    let table =
        client.query_one("SELECT to_regclass('turn_origin_to_realm') IS NOT NULL", &[]).await.map_err(of_query)?;
    if !table.try_get::<_, bool>(0).map_err(of_query)? {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT DISTINCT left(realm::text, {TEXT_LEN_MAX}) FROM turn_origin_to_realm");
    let names = client.query(&sql, &[]).await.map_err(of_query)?;
    let names = names.iter().filter_map(|row| row.try_get::<_, Option<String>>(0).ok().flatten());
    RealmRows::other_names(names.map(String::into_bytes).collect(), known)
}

/// Adds the peers of one realm.
async fn peers(client: &Client, realm: &str, rows: &mut Rows) -> Result<(), ReadError> {
    for (list, table) in [(PeerList::Allowed, "allowed_peer_ip"), (PeerList::Denied, "denied_peer_ip")] {
        each(client, realm, table, one("ip_range", TEXT_LEN_MAX), |[range, _]| rows.add_peer(list, range)).await?;
    }
    Ok(())
}

/// Returns a column alone.
const fn one(column: &str, len: usize) -> [(&str, usize); 2] {
    [(column, len), ("''", 0)]
}

/// Passes the columns of each row of the realm to `add`, cut to one character more than is allowed.
async fn each(
    client: &Client,
    realm: &str,
    table: &str,
    columns: [(&str, usize); 2],
    mut add: impl FnMut([Option<&[u8]>; 2]) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let of_query = |error: tokio_postgres::Error| error_of(&error, ErrorKind::Query);
    let [first, second] = columns.map(|(column, len)| format!("left({column}::text, {})", len + 1));
    let sql = format!("SELECT {first}, {second} FROM {table} WHERE realm = $1");
    let found = client.query_raw(&sql, [realm]).await.map_err(of_query)?;
    let mut found = std::pin::pin!(found);
    while let Some(row) = found.try_next().await.map_err(of_query)? {
        let text = |row: &Row, column: usize| row.try_get::<_, Option<String>>(column).map_err(of_query);
        let values = [text(&row, 0)?, text(&row, 1)?];
        add(values.each_ref().map(|value| value.as_ref().map(String::as_bytes)))?;
    }
    Ok(())
}

fn error_of(error: &tokio_postgres::Error, otherwise: ErrorKind) -> ReadError {
    let kind = match error.code() {
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => ErrorKind::Schema,
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                || *code == SqlState::INVALID_CATALOG_NAME
                || *code == SqlState::INSUFFICIENT_PRIVILEGE =>
        {
            ErrorKind::Login
        }
        Some(_) => ErrorKind::Query,
        None if error.is_closed() => ErrorKind::Connect,
        None => otherwise,
    };
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    ReadError::new(kind, format_args!("{error}{cause}"))
}
