//! Numbers of listeners.

/// The number of a listener, which no other one gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenerId(u32);

impl ListenerId {
    /// Returns this number; from now on it is the next one.
    pub(crate) const fn take(&mut self) -> Self {
        let id = *self;
        self.0 += 1;
        id
    }
}
