//! Users, secrets and password algorithms of a section.

use anyhow::{Context as _, bail, ensure};
use tt_turn::config::GrantReports;
use tt_turn::credential::UserSecret;

use crate::credentials::{ExternalUsers, User, Users, auth_secrets_in, nonce_keys_in, read_users};
use crate::section::{PasswordAlgorithms, TurnSection};

use super::TurnConfig;

impl TurnConfig {
    /// Reads the files with users, secrets and nonce keys.
    pub(super) fn read_credentials(&mut self, section: &TurnSection) -> anyhow::Result<()> {
        let named = |key, index| section.key_sources.name(key, index);
        for (index, user) in section.user.iter().enumerate() {
            self.users.push(User::parse(user).with_context(|| named("user", index))?);
        }
        for (index, path) in section.user_file.iter().enumerate() {
            read_users(path, &mut self.users).with_context(|| named("user_file", index))?;
        }
        for (index, path) in section.auth_secret_file.iter().enumerate() {
            self.auth_secrets.extend(auth_secrets_in(path).with_context(|| named("auth_secret_file", index))?);
        }
        if let Some(path) = &section.nonce_key_file {
            self.nonce_keys = Some(nonce_keys_in(path).with_context(|| named("nonce_key_file", 0))?);
        }
        self.set_database(section)
    }

    fn set_database(&mut self, section: &TurnSection) -> anyhow::Result<()> {
        if section.database.is_some() {
            self.external_users = ExternalUsers::Provided;
        }
        for (key, is_set) in [
            ("database_logins", section.database_logins.is_some()),
            ("database_password_file", section.database_password_file.is_some()),
        ] {
            let name = section.key_sources.name(key, 0);
            ensure!(section.database.is_some() || !is_set, "{name} is for a database, and there is none");
        }
        if section.stats_database.is_some() {
            self.grant_reports = GrantReports::Kept;
        }
        let name = section.key_sources.name("stats_database_password_file", 0);
        let is_set = section.stats_database_password_file.is_some();
        ensure!(section.stats_database.is_some() || !is_set, "{name} is for stats_database, and there is none");
        Ok(())
    }

    /// Sets the password algorithms to those of `section`; to MD5 if a user has a key, or with a database.
    ///
    /// No key for SHA-256 follows from an MD5 key: the user could not log in if clients chose that. Call this after you
    /// have added such a user.
    ///
    /// # Errors
    /// `section` asks for SHA-256, and a user cannot use it.
    pub fn set_password_algorithms(&mut self, section: &TurnSection) -> anyhow::Result<()> {
        let named = |key| section.key_sources.name(key, 0);
        let has_keys = section.database.is_some() && section.database_logins.unwrap_or_default().has_users();
        let reason = match self.user_with_key() {
            _ if has_keys => Some(format!("{}: the keys of its users are MD5", named("database"))),
            Some(name) => Some(format!("user {name}: the key of this user is MD5")),
            None => None,
        };
        self.password_algorithms = match (section.password_algorithms, reason) {
            (None | Some(PasswordAlgorithms::Md5), Some(_)) => PasswordAlgorithms::Md5.into(),
            (Some(PasswordAlgorithms::Md5AndSha256 | PasswordAlgorithms::Sha256), Some(reason)) => {
                bail!("{} must be md5 with {reason}", named("password_algorithms"));
            }
            (Some(algorithms), None) => algorithms.into(),
            (None, None) => self.password_algorithms,
        };
        Ok(())
    }

    /// Returns the name of a user with a key, of any realm.
    fn user_with_key(&self) -> Option<String> {
        let all = std::iter::once(&self.users).chain(self.realms.iter().map(|realm| &realm.users));
        let name = all.flat_map(Users::iter).find(|(_, secret)| matches!(secret, UserSecret::Md5Key(_)))?.0;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tt_turn::config::PasswordAlgorithms as EngineAlgorithms;

    use super::*;
    use crate::section::RealmSection;

    const KEY_USER: &str = "bob:0x00112233445566778899aabbccddeeff";

    fn section() -> TurnSection {
        TurnSection { listen: vec!["127.0.0.1:0".parse().unwrap()], user: vec!["ann:one".into()], ..Default::default() }
    }

    /// Returns sections with the same user in `user`, in a file and in a realm.
    fn sections(file: &tempfile::NamedTempFile) -> [TurnSection; 3] {
        std::fs::write(file.path(), format!("cid:two\n{KEY_USER}\n")).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut sections = [section(), section(), section()];
        sections[0].user.push(KEY_USER.into());
        sections[1].user_file.push(file.path().into());
        let further = |name: &str, user: &str| {
            let (name, origins) = (name.to_owned(), vec![format!("https://{name}.example")]);
            RealmSection { name, origins, user: vec![user.to_owned()], ..Default::default() }
        };
        sections[2].realms = vec![further("one", "dan:three"), further("other", KEY_USER)];
        sections
    }

    #[test]
    fn sha256_is_not_offered_with_a_user_that_has_a_key() {
        assert_eq!(TurnConfig::new(&section()).unwrap().password_algorithms, EngineAlgorithms::Md5AndSha256);
        for mut section in sections(&tempfile::NamedTempFile::new().unwrap()) {
            for algorithms in [None, Some(PasswordAlgorithms::Md5)] {
                section.password_algorithms = algorithms;
                assert_eq!(TurnConfig::new(&section).unwrap().password_algorithms, EngineAlgorithms::Md5);
            }
            for algorithms in [PasswordAlgorithms::Md5AndSha256, PasswordAlgorithms::Sha256] {
                section.password_algorithms = Some(algorithms);
                let message = "turn.password_algorithms must be md5 with user bob: the key of this user is MD5";
                assert_eq!(TurnConfig::new(&section).unwrap_err().to_string(), message);
            }
        }
    }

    #[test]
    fn a_user_that_is_added_later_counts_for_the_algorithms() {
        let mut config = TurnConfig::new(&section()).unwrap();
        config.users.push(User::parse(KEY_USER).unwrap());
        config.set_password_algorithms(&section()).unwrap();
        assert_eq!(config.password_algorithms, EngineAlgorithms::Md5);
        let sha256 = TurnSection { password_algorithms: Some(PasswordAlgorithms::Sha256), ..section() };
        assert!(config.set_password_algorithms(&sha256).is_err());
    }

    #[test]
    fn an_error_of_a_realms_user_names_realm_and_user() {
        let [_, _, mut section] = sections(&tempfile::NamedTempFile::new().unwrap());
        section.realms[1].user[0].pop();
        let message = format!("{:#}", TurnConfig::new(&section).unwrap_err());
        assert!(
            message.starts_with("turn.realms \"other\": user: user bob: a password that begins with 0x"),
            "{message}"
        );
        assert!(!message.contains("0011"), "{message}");
    }
}
