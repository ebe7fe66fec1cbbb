//! A list of users in little memory.

use std::fmt;

use tt_turn::credential::UserSecret;
use zeroize::Zeroizing;

use super::User;

/// Kinds of secrets in the block of memory.
const PASSWORD: u8 = 0;
const MD5_KEY: u8 = 1;

/// Users with long-term credentials, in order. Their names, passwords and keys are one block of memory, which is wiped
/// when it is dropped. `Debug` shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users {
    /// Each name, followed by the kind of its secret and the secret.
    bytes: Zeroizing<Vec<u8>>,
    /// The end of each name and of its secret.
    ends: Vec<[usize; 2]>,
}

impl Users {
    /// Adds a user.
    pub fn push(&mut self, user: User) {
        let (kind, secret) = match user.password.as_secret() {
            UserSecret::Password(text) => (PASSWORD, text),
            UserSecret::Md5Key(key) => (MD5_KEY, &key[..]),
        };
        self.reserve(user.name.len() + 1 + secret.len());
        self.bytes.extend_from_slice(user.name.as_bytes());
        let name_end = self.bytes.len();
        self.bytes.push(kind);
        self.bytes.extend_from_slice(secret);
        self.ends.push([name_end, self.bytes.len()]);
    }

    /// Returns the number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no user.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the name and the secret of each user.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], UserSecret<'_>)> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|[_, end]| *end));
        starts.zip(&self.ends).map(|(start, [name_end, end])| {
            let secret = &self.bytes[name_end + 1..*end];
            let key = secret.first_chunk().filter(|_| self.bytes[*name_end] == MD5_KEY);
            (&self.bytes[start..*name_end], key.map_or(UserSecret::Password(secret), UserSecret::Md5Key))
        })
    }

    /// Makes room for `bytes` of names and secrets. Wipes the former block, which a `Vec` would not do.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if capacity - len < bytes {
            let mut larger = Zeroizing::new(Vec::with_capacity((len + bytes).max(2 * capacity)));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
    }
}

impl From<Vec<User>> for Users {
    fn from(users: Vec<User>) -> Self {
        let mut list = Self::default();
        users.into_iter().for_each(|user| list.push(user));
        list
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Password;
    use super::*;

    #[test]
    fn users_keep_their_order_names_passwords_and_keys() {
        let mut users = Users::default();
        assert!(users.is_empty() && users.iter().next().is_none());
        let keys = [[0x11; 16], *b"sixteen letters!"];
        let text = |text: &str| Password::Text(Zeroizing::new(text.into()));
        let [first_key, second_key] = keys.map(|key| Password::Md5Key(Zeroizing::new(key)));
        for (name, password) in [
            ("ann", text("one")),
            ("b\u{e9}r\u{e9}nice", first_key),
            ("ann", text("tw\u{f6}:words")),
            ("cid", second_key),
            ("dan", text("sixteen letters!")),
        ] {
            users.push(User { name: name.into(), password });
        }
        let all: Vec<_> = users.iter().map(|(name, secret)| (str::from_utf8(name).unwrap(), secret)).collect();
        let [
            ("ann", UserSecret::Password(b"one")),
            ("b\u{e9}r\u{e9}nice", UserSecret::Md5Key(one)),
            ("ann", UserSecret::Password(words)),
            ("cid", UserSecret::Md5Key(other)),
            ("dan", UserSecret::Password(b"sixteen letters!")),
        ] = all[..]
        else {
            panic!("{all:?}")
        };
        assert_eq!(([*one, *other], words), (keys, "tw\u{f6}:words".as_bytes()));
        assert_eq!((users.len(), users.is_empty()), (5, false));
        assert!(!format!("{users:?}").contains("ann"));
        let copy = users.clone();
        users.reserve(1_000);
        assert_eq!(users, copy);
    }
}
