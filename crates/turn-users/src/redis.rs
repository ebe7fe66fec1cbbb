//! Redis.

use std::str::FromStr;
use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionAddr, ErrorKind as RedisErrorKind, IntoConnectionInfo as _, RedisError};

use crate::read_error::{ErrorKind, ReadError};
use crate::reader::Reader;
use crate::realm_rows::RealmRows;
use crate::rows::{NAME_LEN_MAX, PeerList, Rows, TEXT_LEN_MAX};

/// Time that a read may take, with the connection.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The port without `port=`.
const PORT_DEFAULT: u16 = 6_379;
/// Keys that the server looks at between two replies.
const KEYS_PER_SCAN: u32 = 1_000;
/// Before an origin in the key of its realm.
const ORIGIN: &str = "turn/origin/";
/// The options of a realm.
const OPTIONS: [&str; 3] = ["max-bps", "user-quota", "total-quota"];

/// An origin, unless its key makes no sense, and the name of its realm.
type Origin = (Option<Vec<u8>>, Vec<u8>);

/// A database of Redis.
pub(crate) struct Redis {
    client: Client,
    connection: Option<Connection>,
}

impl Redis {
    /// Creates a client of the database that the words of coturn name.
    pub(crate) fn new(text: &str, password: Option<&str>) -> Result<Self, ReadError> {
        let Words { host, port, number, user } = text.parse()?;
        let invalid = |error| ReadError::new(ErrorKind::Invalid, error);
        let info = ConnectionAddr::Tcp(host, port).into_connection_info().map_err(invalid)?;
        let mut settings = info.redis_settings().clone().set_db(number).set_skip_set_lib_name();
        if let Some(user) = &user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let client = Client::open(info.set_redis_settings(settings)).map_err(invalid)?;
        Ok(Self { client, connection: None })
    }

    /// Returns the connection of before, or a new one.
    pub(crate) fn take_connection(&mut self) -> Result<Connection, ReadError> {
        self.connection.take().map_or_else(|| self.connect(), Ok)
    }

    /// Keeps a connection that works for the next time.
    pub(crate) fn keep_connection(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }

    fn connect(&self) -> Result<Connection, ReadError> {
        let connection = self.client.get_connection_with_timeout(READ_TIMEOUT).map_err(|error| error_of(&error))?;
        for set in [Connection::set_read_timeout, Connection::set_write_timeout] {
            set(&connection, Some(READ_TIMEOUT)).map_err(|error| error_of(&error))?;
        }
        Ok(connection)
    }
}

impl Reader for Redis {
    fn read(&mut self, realms: &[String]) -> Result<Option<RealmRows>, ReadError> {
        let mut connection = self.take_connection()?;
        let mut reading = Reading { connection: &mut connection, deadline: Instant::now() + READ_TIMEOUT };
        let mut each = realms.iter().map(|realm| reading.rows(realm)).collect::<Result<Vec<_>, _>>()?;
        let mut every = Rows::default();
        reading.peers("", &mut every)?;
        let origins = reading.origins()?;
        let names = origins.iter().map(|(_, realm)| realm.clone()).collect();
        let others = RealmRows::other_names(names, realms)?.into_iter();
        let others = others.map(|name| reading.rows(&name).map(|rows| (name, rows)));
        let mut others = others.collect::<Result<Vec<_>, _>>()?;
        // The default realm needs no origins.
        let named = realms.iter().zip(&mut each).skip(1);
        let mut all: Vec<_> = named.chain(others.iter_mut().map(|(name, rows)| (&*name, rows))).collect();
        for (origin, realm) in origins {
            if let Some((_, rows)) = all.iter_mut().find(|(name, _)| name.as_bytes() == realm) {
                rows.add_origin(origin.as_deref())?;
            }
        }
        let rows = RealmRows::new(every, each, others)?;
        // After an error, the next read connects again.
        self.keep_connection(connection);
        Ok(Some(rows))
    }
}

struct Reading<'a> {
    connection: &'a mut Connection,
    deadline: Instant,
}

impl Reading<'_> {
    fn ask<T: redis::FromRedisValue>(&mut self, command: &redis::Cmd) -> Result<T, ReadError> {
        // Each reply has a time-out, and all of them together.
        if Instant::now() > self.deadline {
            return Err(ReadError::new(ErrorKind::Timeout, "the replies take too long"));
        }
        command.query(self.connection).map_err(|error| error_of(&error))
    }

    fn rows(&mut self, realm: &str) -> Result<Rows, ReadError> {
        let mut rows = Rows::default();
        self.users(realm, &mut rows)?;
        for secret in self.set(&format!("turn/realm/{realm}/secret"))? {
            rows.add_secret(Some(&secret))?;
        }
        self.peers(realm, &mut rows)?;
        for option in OPTIONS {
            let value: Option<Vec<u8>> = self.ask(redis::cmd("GET").arg(format!("turn/realm/{realm}/{option}")))?;
            if value.is_some() {
                rows.add_option(Some(option.as_bytes()), value.as_deref());
            }
        }
        Ok(rows)
    }

    /// Adds the peers of one realm.
    fn peers(&mut self, realm: &str, rows: &mut Rows) -> Result<(), ReadError> {
        for (list, name) in [(PeerList::Allowed, "allowed"), (PeerList::Denied, "denied")] {
            for range in self.set(&format!("turn/realm/{realm}/{name}-peer-ip"))? {
                rows.add_peer(list, Some(&range))?;
            }
        }
        Ok(())
    }

    /// Adds the users, whose names are in the keys.
    fn users(&mut self, realm: &str, rows: &mut Rows) -> Result<(), ReadError> {
        let (before, behind) = (format!("turn/realm/{realm}/user/"), "/key");
        let len_max = before.len() + NAME_LEN_MAX + behind.len();
        self.each_value((&format!("{}*{behind}", escaped(&before)), len_max), |key, value| {
            let name = key.strip_prefix(before.as_bytes()).and_then(|rest| rest.strip_suffix(behind.as_bytes()));
            name.map_or(Ok(()), |name| rows.add_user(Some(name), value))
        })
    }

    /// Returns each origin with the name of its realm: a key, and its value.
    fn origins(&mut self) -> Result<Vec<Origin>, ReadError> {
        let mut origins = Vec::new();
        self.each_value((&format!("{ORIGIN}*"), ORIGIN.len() + TEXT_LEN_MAX), |key, value| {
            let origin = key.strip_prefix(ORIGIN.as_bytes()).map(<[u8]>::to_vec);
            origins.extend(value.map(|realm| (origin, realm.to_vec())));
            Ok(())
        })?;
        Ok(origins)
    }

    /// Passes each key of a pattern and its value to `add`. One of another type, or with a key longer than `len_max`, is as
    /// if it had no value.
    fn each_value(
        &mut self,
        (pattern, len_max): (&str, usize),
        mut add: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let (mut cursor, mut seen) = (0_u64, std::collections::HashSet::new());
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(KEYS_PER_SCAN);
            let (next, keys): (u64, Vec<Vec<u8>>) = self.ask(&scan)?;
            let (wanted, long): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| key.len() <= len_max);
            long.iter().try_for_each(|key| add(key, None))?;
            // A scan may return a key twice.
            let wanted: Vec<_> = wanted.into_iter().filter(|key| seen.insert(key.clone())).collect();
            if !wanted.is_empty() {
                let values: Vec<Option<Vec<u8>>> = self.ask(redis::cmd("MGET").arg(&wanted))?;
                wanted.iter().zip(values).try_for_each(|(key, value)| add(key, value.as_deref()))?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    fn set(&mut self, key: &str) -> Result<Vec<Vec<u8>>, ReadError> {
        self.ask(redis::cmd("SMEMBERS").arg(key))
    }
}

/// Returns `text` as a pattern that matches nothing else.
fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| ['\\', c].into_iter().skip(usize::from(!matches!(c, '*' | '?' | '[' | ']' | '\\' | '^'))))
        .collect()
}

pub(crate) fn error_of(error: &RedisError) -> ReadError {
    let is_login = error.kind() == RedisErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
    let kind = if is_login {
        ErrorKind::Login
    } else if error.is_timeout() {
        ErrorKind::Timeout
    } else if error.code() == Some("WRONGTYPE") {
        ErrorKind::Schema
    } else if error.kind() == RedisErrorKind::Io {
        ErrorKind::Connect
    } else {
        ErrorKind::Query
    };
    ReadError::new(kind, error)
}

/// A connection in the words of coturn.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    host: String,
    port: u16,
    number: i64,
    user: Option<String>,
}

impl FromStr for Words {
    type Err = ReadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = Self { host: "127.0.0.1".to_owned(), port: PORT_DEFAULT, number: 0, user: None };
        for word in text.split_whitespace() {
            let invalid = |what: &str| ReadError::new(ErrorKind::Invalid, format_args!("`{word}` {what}"));
            let (name, value) = word.split_once('=').ok_or_else(|| invalid("is not NAME=VALUE"))?;
            match name {
                "host" | "ip" | "addr" | "ipaddr" | "hostaddr" => value.clone_into(&mut words.host),
                "port" | "p" => words.port = value.parse().map_err(|_| invalid("is no port"))?,
                "dbname" | "db" | "database" => words.number = value.parse().map_err(|_| invalid("is no number"))?,
                "user" | "uname" | "name" | "username" => words.user = Some(value.to_owned()),
                // A read has a fixed time-out.
                "connect_timeout" | "timeout" => {}
                "tls" | "ssl" if ["0", "no", "off", "false"].contains(&value) => {}
                "tls" | "ssl" => return Err(invalid("is not supported: connections have no TLS; use a tunnel")),
                _ => return Err(invalid("is not supported")),
            }
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_is_no_pattern() {
        assert_eq!(escaped("turn/realm/a*b?[c]\\"), "turn/realm/a\\*b\\?\\[c\\]\\\\");
    }

    #[test]
    fn a_connection_has_the_words_of_coturn() {
        let words: Words = "ip=10.0.0.1 dbname=3 port=6380 connect_timeout=30 user=turn tls=off".parse().unwrap();
        let expected = Words { host: "10.0.0.1".into(), port: 6_380, number: 3, user: Some("turn".into()) };
        assert_eq!(words, expected);
        let default = Words { host: "127.0.0.1".into(), port: 6_379, number: 0, user: None };
        assert_eq!("".parse::<Words>().unwrap(), default);
        for text in ["host", "port=x", "port=65536", "dbname=one", "tls=1", "colour=red"] {
            assert_eq!(text.parse::<Words>().unwrap_err().kind, ErrorKind::Invalid, "{text}");
        }
    }
}
