//! Users, secrets and password algorithms of a section.

use anyhow::{Context as _, bail, ensure};

use crate::credentials::{ExternalUsers, User, auth_secrets_in, nonce_keys_in, read_users};
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
        self.set_algorithms(section)
    }

    /// Users of a database have MD5 keys, from which no key for SHA-256 follows: they could not log in if clients chose
    /// that.
    fn set_algorithms(&mut self, section: &TurnSection) -> anyhow::Result<()> {
        let named = |key| section.key_sources.name(key, 0);
        if section.database.is_some() {
            self.external_users = ExternalUsers::Provided;
        }
        for (key, is_set) in [
            ("database_logins", section.database_logins.is_some()),
            ("database_password_file", section.database_password_file.is_some()),
        ] {
            ensure!(section.database.is_some() || !is_set, "{} is for a database, and there is none", named(key));
        }
        let has_keys = section.database.is_some() && section.database_logins.unwrap_or_default().has_users();
        self.password_algorithms = match section.password_algorithms {
            None | Some(PasswordAlgorithms::Md5) if has_keys => PasswordAlgorithms::Md5.into(),
            Some(PasswordAlgorithms::Md5AndSha256 | PasswordAlgorithms::Sha256) if has_keys => {
                bail!(
                    "{} must be md5 with {}: the keys of its users are MD5",
                    named("password_algorithms"),
                    named("database")
                );
            }
            Some(algorithms) => algorithms.into(),
            None => self.password_algorithms,
        };
        Ok(())
    }
}
