//! A list of users in little memory.

use std::fmt;

use zeroize::Zeroizing;

use super::User;

/// Users with long-term credentials, in order. Their names and passwords are one block of memory, which is wiped when
/// it is dropped. `Debug` shows neither.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users {
    /// Each name followed by its password.
    text: Zeroizing<String>,
    /// The end of each name and of its password.
    ends: Vec<[usize; 2]>,
}

impl Users {
    /// Adds a user.
    pub fn push(&mut self, user: User) {
        self.reserve(user.name.len() + user.password.len());
        self.text.push_str(&user.name);
        let name_end = self.text.len();
        self.text.push_str(&user.password);
        self.ends.push([name_end, self.text.len()]);
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

    /// Returns the name and the password of each user.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|[_, end]| *end));
        starts
            .zip(&self.ends)
            .map(|(start, [name_end, end])| (&self.text[start..*name_end], &self.text[*name_end..*end]))
    }

    /// Makes room for `bytes` of names and passwords. Wipes the former block, which a `String` would not do.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.text.capacity() - self.text.len() < bytes {
            let mut larger =
                Zeroizing::new(String::with_capacity((self.text.len() + bytes).max(2 * self.text.capacity())));
            larger.push_str(&self.text);
            self.text = larger;
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
    use super::*;

    #[test]
    fn users_keep_their_order_names_and_passwords() {
        let mut users = Users::default();
        assert!(users.is_empty() && users.iter().next().is_none());
        let pairs = [("ann", "one"), ("b\u{e9}r\u{e9}nice", "tw\u{f6}:words"), ("ann", "three")];
        for (name, password) in pairs {
            users.push(User { name: name.into(), password: Zeroizing::new(password.into()) });
        }
        assert_eq!(users.iter().collect::<Vec<_>>(), pairs);
        assert_eq!((users.len(), users.is_empty()), (3, false));
        assert!(!format!("{users:?}").contains("ann"));
        let copy = users.clone();
        users.reserve(1_000);
        assert_eq!(users, copy);
    }
}
