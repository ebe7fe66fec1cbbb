//! Users, secrets and the realm.

use zeroize::Zeroizing;

use super::Reader;
use super::connection::Connection;
use crate::import::{Outcome, REALM, is_realm};

/// Databases that truetick reads.
const DATABASES: [&str; 5] = ["userdb", "db", "psql-userdb", "sql-userdb", "redis-userdb"];
/// The digits of a key; coturn ignores further ones.
const KEY_DIGITS: usize = 32;
const NO_KEY: &str = "no key: 0x begins one, and 32 hexadecimal digits must follow; no client can log in as this user in \
                      coturn, either";
const KEY_REALM: &str = "a key belongs to one realm, which is the domain name of the host in coturn: set `realm`";
const STATS: &str = "the same keys and messages; they count relayed payloads, without STUN messages and headers, and a \
                     status key ends with the lifetime";
const STUN_ONLY: &str = "stun-only is set: no user can log in";

impl Reader<'_> {
    /// Maps what decides who can log in.
    pub(super) fn credentials(&mut self) {
        self.realm();
        self.stats_database();
        let is_stun_only = self.is_on("stun-only");
        let reason = if is_stun_only { "no user and no secret: STUN Binding only" } else { "off, as by default" };
        self.rows_of("stun-only", Outcome::Same, "", reason);
        let has_secrets = self.is_on("use-auth-secret") || self.has("static-auth-secret");
        let has_users = self.has("user");
        let asks_for_users = self.is_on("lt-cred-mech") || has_users;
        self.no_auth(is_stun_only, has_secrets || self.is_on("lt-cred-mech"));
        if is_stun_only {
            for name in ["lt-cred-mech", "use-auth-secret", "rest-api-separator"].into_iter().chain(DATABASES) {
                self.rows_of(name, Outcome::Ignored, "", STUN_ONLY);
            }
            for name in ["user", "static-auth-secret"] {
                self.all_rows(name, Outcome::Ignored, "", STUN_ONLY);
            }
            return;
        }
        if has_secrets {
            self.secrets();
        } else {
            self.users(asks_for_users);
        }
        self.separator(has_secrets);
    }

    fn realm(&mut self) {
        match self.last("realm").map(|setting| setting.text().to_owned()) {
            Some(realm) if is_realm(&realm) => {
                self.document.turn("realm", realm);
                self.rows_of("realm", Outcome::Same, "realm", "");
            }
            Some(_) => self.rows_of("realm", Outcome::Refused, "realm", REALM),
            None => {
                let reason =
                    "coturn takes the domain name of the host, truetick `truetick`; clients learn it from the server";
                self.default_row("realm", Outcome::Same, "realm", reason.to_owned());
            }
        }
    }

    fn no_auth(&mut self, is_stun_only: bool, has_mechanism: bool) {
        if !self.is_on("no-auth") {
            self.rows_of("no-auth", Outcome::Same, "", "off");
            if !is_stun_only && !has_mechanism && !self.has("user") && !self.has_database() {
                let reason = "without users and secrets coturn relays for anybody; truetick answers STUN Binding only: add users or a \
                     secret";
                self.default_row("no-auth", Outcome::Differs, "user_file, auth_secret_file", reason.to_owned());
            }
            return;
        }
        let reason = match has_mechanism {
            true => "it contradicts lt-cred-mech and use-auth-secret; coturn does not start, either",
            false => "truetick does not relay without a credential: add users or a secret",
        };
        let outcome = if is_stun_only { Outcome::Same } else { Outcome::Refused };
        self.rows_of("no-auth", outcome, "", if is_stun_only { STUN_ONLY } else { reason });
    }

    /// Returns whether a database is named. Those that truetick does not read are refused by name.
    fn has_database(&self) -> bool {
        ["userdb", "db", "psql-userdb", "sql-userdb", "mysql-userdb", "mongo-userdb", "redis-userdb"]
            .into_iter()
            .any(|name| self.has(name))
    }

    fn secrets(&mut self) {
        for index in self.indices("static-auth-secret") {
            let secret = self.settings[index].value.clone().unwrap_or_default();
            if secret.is_empty() || secret.chars().any(char::is_control) {
                self.row(index, Outcome::Refused, "", "an empty secret, or one with control characters");
            } else {
                self.import.secrets.push(secret);
                self.row(index, Outcome::Same, "auth_secret_file", "");
            }
        }
        let (outcome, reason) = match self.import.secrets.is_empty() && !self.has_database() {
            false => (Outcome::Same, ""),
            true => (
                Outcome::Refused,
                "without static-auth-secret the secrets are in coturn's own SQLite database; name it with `userdb`",
            ),
        };
        self.rows_of("use-auth-secret", outcome, "auth_secret_file, database", reason);
        self.rows_of("lt-cred-mech", Outcome::Same, "", "use-auth-secret counts before it, as in coturn");
        self.all_rows("user", Outcome::Ignored, "", "coturn knows no user next to use-auth-secret, either");
        self.database("secrets");
    }

    fn users(&mut self, asks_for_users: bool) {
        for index in self.indices("user") {
            let user = self.settings[index].value.clone().unwrap_or_default();
            match user.split_once(':') {
                Some((name, password)) if !name.is_empty() && !password.trim_start().is_empty() => {
                    self.user(index, name, password.trim_start());
                }
                Some(_) | None => self.row(index, Outcome::Ignored, "", "not NAME:PASSWORD; coturn ignores it, too"),
            }
        }
        self.database("users");
        let has_users = !self.import.users.is_empty();
        let (outcome, reason) = match asks_for_users && !has_users && !self.has_database() {
            true => (
                Outcome::Refused,
                "without `user` the users are in coturn's own SQLite database; name it with `userdb`",
            ),
            false => (Outcome::Same, ""),
        };
        self.rows_of("lt-cred-mech", outcome, "user_file, database", reason);
        self.rows_of("use-auth-secret", Outcome::Same, "", "off, as by default");
    }

    fn user(&mut self, index: usize, name: &str, password: &str) {
        let Some(digits) = password.strip_prefix("0x") else {
            self.import.users.push(Zeroizing::new(format!("{name}:{password}")));
            return self.row(index, Outcome::Same, "user_file", "");
        };
        let key = digits.get(..KEY_DIGITS).filter(|key| key.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(key) = key else { return self.row(index, Outcome::Ignored, "", NO_KEY) };
        self.import.users.push(Zeroizing::new(format!("{name}:0x{key}")));
        self.document.turn("password_algorithms", "md5");
        self.row(index, Outcome::Same, "user_file, password_algorithms", "MD5 only, as in coturn: the key is MD5");
        for row in self.defaults.iter_mut().filter(|row| row.option == "realm") {
            (row.outcome, row.reason) = (Outcome::Refused, KEY_REALM.to_owned());
        }
    }

    /// Maps the database. coturn logs in users or secrets, never both.
    fn database(&mut self, logins: &str) {
        let present: Vec<&str> = DATABASES.into_iter().filter(|name| self.has(name)).collect();
        for name in &present {
            let text = self.last(name).map(|setting| setting.text().trim().to_owned()).unwrap_or_default();
            if present.len() > 1 {
                self.rows_of(
                    name,
                    Outcome::Refused,
                    "database",
                    "one database: which of them counts depends on their order",
                );
            } else if text.is_empty() {
                self.rows_of(name, Outcome::Refused, "database", "the name of the database is missing");
            } else {
                let connection = match *name {
                    "userdb" | "db" => Some(Connection { text: format!("sqlite:{text}"), password: None }),
                    "redis-userdb" => Connection::read(&text).map(|read| read.with_kind("redis")),
                    _ => Connection::read(&text).map(|read| read.with_kind("postgres")),
                };
                let Some(Connection { text, password }) = connection else {
                    self.rows_of(name, Outcome::Refused, "database", "a word that is not NAME=VALUE");
                    continue;
                };
                self.document.turn("database", text);
                self.document.turn("database_logins", logins);
                self.import.database_password = password;
                self.rows_of(name, Outcome::Same, "database, database_logins, database_password_file", "");
            }
        }
    }

    /// Maps the Redis that gets messages.
    fn stats_database(&mut self) {
        let Some(text) = self.last("redis-statsdb").map(|setting| setting.text().trim().to_owned()) else { return };
        let keys = "stats_database, stats_database_password_file";
        let Some(Connection { text, password }) = Connection::read(&text).map(|read| read.with_kind("redis")) else {
            return self.rows_of("redis-statsdb", Outcome::Differs, "", "a word that is not NAME=VALUE: no messages");
        };
        self.document.turn("stats_database", text);
        self.import.stats_database_password = password;
        self.rows_of("redis-statsdb", Outcome::Differs, keys, STATS);
    }

    fn separator(&mut self, has_secrets: bool) {
        let text = self.last("rest-api-separator").map(|setting| setting.text().to_owned()).unwrap_or_default();
        let (outcome, reason) = match (has_secrets, text.as_str()) {
            (false, _) => (Outcome::Ignored, "it counts with use-auth-secret only"),
            (true, ":") => (Outcome::Same, "as by default"),
            (true, _) => {
                let reason =
                    "the names of credentials are EXPIRY:NAME; other separators would not log in: change the issuer";
                (Outcome::Refused, reason)
            }
        };
        self.rows_of("rest-api-separator", outcome, "", reason);
    }

    /// Sets the rows of every setting of an option that may repeat.
    pub(super) fn all_rows(&mut self, name: &str, outcome: Outcome, keys: &str, reason: &str) {
        for index in self.indices(name) {
            self.row(index, outcome, keys, reason);
        }
    }
}
