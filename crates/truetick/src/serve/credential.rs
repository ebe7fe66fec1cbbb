//! A random credential for one run.

use anyhow::{Context as _, Result};
use zeroize::Zeroizing;

use tt_status::turn::{IceServer, IceServers};
use turn_check::Login;
use turn_server::{Password, User};

/// 32 characters that are hard to confuse, 5 bits each.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// 16 characters: 80 bits.
const PASSWORD_CHARACTERS: usize = 16;

const NAME_CHARACTERS: usize = 4;

/// A user's name and password.
pub(super) struct Credential(pub(super) Login);

impl Credential {
    /// Generates a credential.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(super) fn fresh() -> Result<Self> {
        let name = format!("trial-{}", text(NAME_CHARACTERS)?.as_str());
        Ok(Self(Login { name, password: text(PASSWORD_CHARACTERS)? }))
    }

    pub(super) fn user(&self) -> User {
        User { name: self.0.name.clone(), password: Password::Text(self.0.password.clone()) }
    }

    /// Returns the `iceServers` of a browser for the server at `urls`.
    pub(super) fn ice_servers(&self, urls: &[String]) -> IceServers {
        let server =
            IceServer { urls: urls.to_vec(), username: self.0.name.clone(), credential: self.0.password.to_string() };
        IceServers { ice_servers: vec![server] }
    }
}

fn text(characters: usize) -> Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(vec![0; characters]);
    getrandom::fill(&mut bytes).context("the system provides no random bytes")?;
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
    Ok(Zeroizing::new(bytes.iter().map(letter).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_distinct_plain_text() {
        let (one, other) = (Credential::fresh().unwrap(), Credential::fresh().unwrap());
        assert_ne!(*one.0.password, *other.0.password);
        assert_eq!(one.0.password.len(), PASSWORD_CHARACTERS);
        assert!(one.0.password.bytes().all(|byte| ALPHABET.contains(&byte)));
        let servers = one.ice_servers(&["turn:[::1]:3478".to_owned()]).ice_servers;
        assert_eq!((&servers[0].urls, &servers[0].username), (&vec!["turn:[::1]:3478".to_owned()], &one.0.name));
    }
}
