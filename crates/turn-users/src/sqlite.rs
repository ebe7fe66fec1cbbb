//! SQLite.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use crate::read_error::{ErrorKind, ReadError};
use crate::reader::Reader;
use crate::realm_rows::RealmRows;
use crate::rows::{KEY_LEN_MAX, NAME_LEN_MAX, PeerList, Rows, SECRET_LEN_MAX, TEXT_LEN_MAX};

/// Time that a read waits for another program's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that a query may compute.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Instructions of SQLite's machine between two looks at the clock.
const INSTRUCTIONS_PER_CHECK: i32 = 10_000;

/// A file of SQLite.
pub(crate) struct Sqlite {
    path: PathBuf,
    open: Option<Open>,
}

struct Open {
    connection: Connection,
    /// Device and inode: an administrator may put another file in its place.
    file: (u64, u64),
    /// What `PRAGMA data_version` returned before the last read, and the realms of that read. It changes with every
    /// change of other connections.
    last: Option<(i64, Vec<String>)>,
    deadline: Arc<Mutex<Instant>>,
}

impl Sqlite {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    fn open(&mut self) -> Result<&mut Open, ReadError> {
        let cannot_open =
            |error| ReadError::new(ErrorKind::Connect, format_args!("cannot open {}: {error}", self.path.display()));
        let metadata = fs::metadata(&self.path).map_err(cannot_open)?;
        let file = (metadata.dev(), metadata.ino());
        let open = match self.open.take() {
            Some(open) if open.file == file => open,
            Some(_) | None => Open::new(&self.path, file)?,
        };
        Ok(self.open.insert(open))
    }
}

impl Reader for Sqlite {
    fn read(&mut self, realms: &[String]) -> Result<Option<RealmRows>, ReadError> {
        let rows = self.open()?.read(realms);
        if rows.is_err() {
            // The next read opens the file again.
            self.open = None;
        }
        rows
    }
}

impl Open {
    fn new(path: &Path, file: (u64, u64)) -> Result<Self, ReadError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(|error| error_of(&error))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| error_of(&error))?;
        let deadline = Arc::new(Mutex::new(Instant::now()));
        let watched = Arc::clone(&deadline);
        let is_late = move || watched.lock().is_ok_and(|deadline| Instant::now() > *deadline);
        connection.progress_handler(INSTRUCTIONS_PER_CHECK, Some(is_late)).map_err(|error| error_of(&error))?;
        Ok(Self { connection, file, last: None, deadline })
    }

    fn read(&mut self, realms: &[String]) -> Result<Option<RealmRows>, ReadError> {
        if let Ok(mut deadline) = self.deadline.lock() {
            *deadline = Instant::now() + QUERY_TIMEOUT;
        }
        let version = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0));
        let version: i64 = version.map_err(|error| error_of(&error))?;
        if self.last.as_ref().is_some_and(|(last, of)| *last == version && of == realms) {
            return Ok(None);
        }
        // All tables in one transaction.
        let transaction = self.connection.transaction().map_err(|error| error_of(&error))?;
        let read = |(place, realm): (usize, &String)| rows(&transaction, realm, place > 0);
        let each = realms.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let mut every = Rows::default();
        peers(&transaction, "", &mut every)?;
        let others = others(&transaction, realms)?.into_iter();
        let others = others.map(|name| rows(&transaction, &name, true).map(|rows| (name, rows)));
        let rows = RealmRows::new(every, each, others.collect::<Result<_, _>>()?)?;
        drop(transaction);
        // A change during the read has another version, which the next read sees.
        self.last = Some((version, realms.to_vec()));
        Ok(Some(rows))
    }
}

/// Returns the realms of origins that are not among `known`. Without the table there are none.
fn others(connection: &Connection, known: &[String]) -> Result<Vec<String>, ReadError> {
    let table = "SELECT count(*) FROM sqlite_master WHERE name = 'turn_origin_to_realm'";
    let tables: i64 = connection.query_row(table, [], |row| row.get(0)).map_err(|error| error_of(&error))?;
    if tables == 0 {
        return Ok(Vec::new());
    }
    let query = format!("SELECT DISTINCT substr(realm, 1, {TEXT_LEN_MAX}) FROM turn_origin_to_realm");
    let mut query = connection.prepare(&query).map_err(|error| error_of(&error))?;
    let (mut found, mut names) = (query.query([]).map_err(|error| error_of(&error))?, Vec::new());
    while let Some(row) = found.next().map_err(|error| error_of(&error))? {
        names.extend(value(row, 0));
    }
    RealmRows::other_names(names, known)
}

/// Reads every table of one realm. The default one needs no origins.
fn rows(connection: &Connection, realm: &str, has_origins: bool) -> Result<Rows, ReadError> {
    let mut rows = Rows::default();
    each(connection, realm, [("name", NAME_LEN_MAX), ("hmackey", KEY_LEN_MAX)], "turnusers_lt", &mut |row| {
        rows.add_user(value(row, 0).as_deref(), value(row, 1).as_deref())
    })?;
    let secret = one("value", SECRET_LEN_MAX);
    each(connection, realm, secret, "turn_secret", &mut |row| rows.add_secret(value(row, 0).as_deref()))?;
    peers(connection, realm, &mut rows)?;
    each(connection, realm, [("opt", TEXT_LEN_MAX), ("value", TEXT_LEN_MAX)], "turn_realm_option", &mut |row| {
        rows.add_option(value(row, 0).as_deref(), value(row, 1).as_deref());
        Ok(())
    })?;
    if has_origins {
        let origin = one("origin", TEXT_LEN_MAX);
        each(connection, realm, origin, "turn_origin_to_realm", &mut |row| rows.add_origin(value(row, 0).as_deref()))?;
    }
    Ok(rows)
}

/// Adds the peers of one realm.
fn peers(connection: &Connection, realm: &str, rows: &mut Rows) -> Result<(), ReadError> {
    for (list, table) in [(PeerList::Allowed, "allowed_peer_ip"), (PeerList::Denied, "denied_peer_ip")] {
        let range = one("ip_range", TEXT_LEN_MAX);
        each(connection, realm, range, table, &mut |row| rows.add_peer(list, value(row, 0).as_deref()))?;
    }
    Ok(())
}

/// Returns a column alone.
const fn one(column: &str, len: usize) -> [(&str, usize); 2] {
    [(column, len), ("realm", 0)]
}

/// Passes each row of the realm to `add`, its columns cut to one byte more than is allowed, which shows that a value is
/// too long.
fn each(
    connection: &Connection,
    realm: &str,
    columns: [(&str, usize); 2],
    table: &str,
    add: &mut dyn FnMut(&Row<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let [first, second] = columns.map(|(column, len)| format!("substr({column}, 1, {})", len + 1));
    let mut query = connection
        .prepare(&format!("SELECT {first}, {second} FROM {table} WHERE realm = ?1"))
        .map_err(|error| error_of(&error))?;
    let mut found = query.query([realm]).map_err(|error| error_of(&error))?;
    while let Some(row) = found.next().map_err(|error| error_of(&error))? {
        add(row)?;
    }
    Ok(())
}

/// Returns a column of any type as text; `None` is NULL.
fn value(row: &Row<'_>, column: usize) -> Option<Vec<u8>> {
    match row.get_ref(column).unwrap_or(ValueRef::Null) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
        ValueRef::Real(number) => Some(number.to_string().into_bytes()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
    }
}

fn error_of(error: &rusqlite::Error) -> ReadError {
    let text = error.to_string();
    let is_schema = ["no such table", "no such column"].iter().any(|words| text.contains(words));
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::Busy,
        Some(ErrorCode::OperationInterrupted) => ErrorKind::Timeout,
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => ErrorKind::Connect,
        Some(_) | None if is_schema => ErrorKind::Schema,
        Some(_) | None => ErrorKind::Query,
    };
    ReadError::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{KeyedUser, SkipReason};

    /// The tables as coturn makes them.
    const SCHEMA: &str = "
        CREATE TABLE turnusers_lt ( realm varchar(127) default '', name varchar(512), hmackey char(128), PRIMARY KEY (realm,name));
        CREATE TABLE turn_secret (realm varchar(127) default '', value varchar(127), primary key (realm,value));
        CREATE TABLE allowed_peer_ip (realm varchar(127) default '', ip_range varchar(256), primary key (realm,ip_range));
        CREATE TABLE denied_peer_ip (realm varchar(127) default '', ip_range varchar(256), primary key (realm,ip_range));
        CREATE TABLE turn_origin_to_realm (origin varchar(127),realm varchar(127),primary key (origin));
        CREATE TABLE turn_realm_option (realm varchar(127) default '', opt varchar(32), value varchar(128), primary key (realm,opt));";

    fn read(reader: &mut Sqlite, realm: &str) -> Result<Option<Rows>, ReadError> {
        Ok(reader.read(&[realm.to_owned()])?.map(|mut rows| rows.each.remove(0)))
    }

    fn database(sql: &str) -> (tempfile::TempDir, Connection, Sqlite) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turndb");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(&format!("{SCHEMA}{sql}")).unwrap();
        (folder, connection, Sqlite::new(path))
    }

    #[test]
    fn reads_what_belongs_to_the_realm_and_only_after_a_change() {
        let (_folder, connection, mut reader) = database(
            "INSERT INTO turnusers_lt VALUES ('north.gov', 'gorst', '7da2270ccfa49786e0115366d3a3d14d'),
                ('north.gov', 7, '0x7da2270ccfa49786e0115366d3a3d14e'), ('other', 'ann', '7da2270ccfa49786e0115366d3a3d14d');
             INSERT INTO turn_secret VALUES ('north.gov', 'hero1'), ('north.gov', 'hero2'), ('other', 'x');
             INSERT INTO allowed_peer_ip VALUES ('north.gov', '10.0.0.1'), ('other', 'x');
             INSERT INTO denied_peer_ip VALUES ('north.gov', '10.0.0.0-10.0.0.9'), ('other', 'x');
             INSERT INTO turn_realm_option VALUES ('north.gov', 'max-bps', 5), ('other', 'user-quota', '6');",
        );
        let rows = read(&mut reader, "north.gov").unwrap().unwrap();
        let names: Vec<_> = rows.users.iter().map(|KeyedUser { name, key }| (name.as_str(), key[15])).collect();
        assert_eq!(names, [("7", 0x4e), ("gorst", 0x4d)]);
        let secrets: Vec<_> = rows.secrets.iter().map(|secret| secret.0.as_str()).collect();
        assert_eq!(secrets, ["hero1", "hero2"]);
        assert_eq!(
            (rows.allowed_peers, rows.denied_peers),
            (vec!["10.0.0.1".into()], vec!["10.0.0.0-10.0.0.9".into()])
        );
        assert_eq!((rows.options.max_bps, rows.options.user_quota), (Some(5), None));
        assert_eq!(read(&mut reader, "north.gov").unwrap(), None);
        connection.execute("DELETE FROM turn_secret WHERE value = 'hero1'", []).unwrap();
        assert_eq!(read(&mut reader, "north.gov").unwrap().unwrap().secrets.len(), 1);
        assert_eq!(read(&mut reader, "north.gov").unwrap(), None);
    }

    /// RFC 8489 has names of up to 508 bytes; coturn's schema does not say NOT NULL.
    #[test]
    fn rows_with_nonsense_are_counted_and_others_are_used() {
        let (_folder, _connection, mut reader) = database(
            "INSERT INTO turnusers_lt VALUES ('r', NULL, NULL), ('r', 'nokey', NULL), ('r', 'hex', 'zz'),
                ('r', hex(zeroblob(5000000)), 'a'), ('r', 'long', hex(zeroblob(5000000))), ('r', x'FF00', 'a'),
                ('r', 'real', 1.5), ('r', 'good\u{2665}', '7da2270ccfa49786e0115366d3a3d14d');
             INSERT INTO turn_secret VALUES ('r', NULL), ('r', ''), ('r', hex(zeroblob(5000000))), ('r', x'00'), ('r', 'good');
             INSERT INTO turn_realm_option VALUES ('r', NULL, NULL), ('r', 'max-bps', NULL), ('r', 'total-quota', 'many');",
        );
        let rows = read(&mut reader, "r").unwrap().unwrap();
        assert_eq!(rows.users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>(), ["good\u{2665}"]);
        assert_eq!(rows.secrets.len(), 1);
        let count = |reason| rows.skipped.count(reason);
        assert_eq!((count(SkipReason::NameMissing), count(SkipReason::KeyMissing)), (1, 1));
        assert_eq!((count(SkipReason::NameTooLong), count(SkipReason::NameInvalid)), (1, 1));
        assert_eq!((count(SkipReason::KeyNotHex), count(SkipReason::SecretInvalid)), (3, 4));
        assert_eq!((count(SkipReason::OptionInvalid), count(SkipReason::PeerInvalid)), (2, 0));
    }

    #[test]
    fn a_realm_is_a_value_and_no_sql() {
        let (_folder, _connection, mut reader) =
            database("INSERT INTO turn_secret VALUES ('a'' OR ''1''=''1', 'one'), ('b', 'two')");
        assert_eq!(read(&mut reader, "a' OR '1'='1").unwrap().unwrap().secrets.len(), 1);
        assert_eq!(read(&mut reader, "b").unwrap().unwrap().secrets[0].0.as_str(), "two");
        assert_eq!(read(&mut reader, "b").unwrap(), None, "file and realm are as they were");
    }

    #[test]
    fn each_realm_has_its_rows_and_its_origins() {
        let (_folder, connection, mut reader) = database(
            "INSERT INTO turn_secret VALUES ('a', 'one'), ('b', 'two'), ('c', 'three');
             INSERT INTO turn_origin_to_realm VALUES ('https://a.example', 'a'), ('https://b.example', 'b'), (NULL, 'b');",
        );
        let realms = ["c", "b", "none", "a"].map(str::to_owned);
        let rows = reader.read(&realms).unwrap().unwrap().each;
        let secrets: Vec<Vec<_>> =
            rows.iter().map(|rows| rows.secrets.iter().map(|secret| secret.0.as_str()).collect()).collect();
        assert_eq!(secrets, [vec!["three"], vec!["two"], vec![], vec!["one"]]);
        assert_eq!(rows[1].origins, ["https://b.example"]);
        assert_eq!(
            (rows[1].skipped.count(SkipReason::OriginInvalid), &rows[3].origins[..]),
            (1, &["https://a.example".into()][..])
        );
        assert_eq!(reader.read(&realms).unwrap(), None);
        assert_eq!(reader.read(&realms[..1]).unwrap().unwrap().each.len(), 1, "other realms");
        connection.execute("UPDATE turn_origin_to_realm SET realm = 'b'", []).unwrap();
        assert_eq!(reader.read(&realms).unwrap().unwrap().each[1].origins.len(), 2);
    }

    #[test]
    fn peers_without_a_realm_are_apart_from_those_of_a_realm() {
        let (_folder, connection, mut reader) = database(
            "INSERT INTO denied_peer_ip VALUES ('', '1.0.0.1'), ('a', '1.0.0.2'), ('b', '1.0.0.3'), ('c', '1.0.0.4');
             INSERT INTO denied_peer_ip (ip_range) VALUES ('1.0.0.5');
             INSERT INTO allowed_peer_ip VALUES ('', '10.0.0.1'), ('b', '10.0.0.2'), ('', NULL);
             INSERT INTO turn_secret VALUES ('', 'of no realm');",
        );
        let realms = ["a", "b"].map(str::to_owned);
        let rows = reader.read(&realms).unwrap().unwrap();
        let peers = |rows: &Rows| [rows.allowed_peers.join(" "), rows.denied_peers.join(" ")];
        assert_eq!(peers(&rows.every), ["10.0.0.1", "1.0.0.1 1.0.0.5"]);
        assert_eq!(rows.each.iter().map(peers).collect::<Vec<_>>(), [["", "1.0.0.2"], ["10.0.0.2", "1.0.0.3"]]);
        assert_eq!((rows.every.secrets.len(), rows.every.skipped.count(SkipReason::PeerInvalid)), (0, 1));
        assert_eq!(reader.read(&realms).unwrap(), None);
        connection.execute("DELETE FROM denied_peer_ip WHERE realm = ''", []).unwrap();
        assert_eq!(peers(&reader.read(&realms).unwrap().unwrap().every), ["10.0.0.1", ""]);
    }

    #[test]
    fn realms_that_only_origins_name_have_their_rows() {
        let (_folder, connection, mut reader) = database(
            "INSERT INTO turn_secret VALUES ('a', 'one'), ('b', 'two'), ('c', 'three'), ('d', 'four');
             INSERT INTO turn_origin_to_realm VALUES ('https://a', 'a'), ('https://c', 'c'), ('https://c.example', 'c'),
                ('https://none', NULL), ('https://empty', '');",
        );
        let rows = reader.read(&["a", "b"].map(str::to_owned)).unwrap().unwrap();
        let [(name, others)] = &rows.others[..] else { panic!("{rows:?}") };
        assert_eq!((name.as_str(), others.secrets[0].0.as_str(), others.origins.len()), ("c", "three", 2));
        assert_eq!(reader.read(&["c".to_owned()]).unwrap().unwrap().others[0].0, "a");
        connection.execute_batch("DROP TABLE turn_origin_to_realm").unwrap();
        assert_eq!(reader.read(&["b".to_owned()]).unwrap().unwrap().others, []);
    }

    #[test]
    fn a_missing_table_and_too_many_rows_are_named() {
        let (_folder, connection, mut reader) = database(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 65)
             INSERT INTO turn_secret SELECT 'r', i FROM n;",
        );
        assert_eq!(read(&mut reader, "r").unwrap_err().kind, ErrorKind::TooManyRows);
        connection.execute_batch("DELETE FROM turn_secret WHERE value = '1'").unwrap();
        assert_eq!(read(&mut reader, "r").unwrap().unwrap().secrets.len(), 64);
        connection.execute_batch("DROP TABLE denied_peer_ip").unwrap();
        let error = read(&mut reader, "r").unwrap_err();
        assert!(error.kind == ErrorKind::Schema && error.cause.contains("denied_peer_ip"), "{error}");
    }
}
