//! A socket's turn to be read.

/// Initial `recvmmsg` batch of one socket.
const READ_FIRST: usize = 4;

/// A socket that has something to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) key: u64,
    /// Datagrams to request in one call.
    pub(crate) want: usize,
}

impl Ready {
    /// Returns the first turn of the socket with `key`.
    pub(crate) const fn first(key: u64) -> Self {
        Self { key, want: READ_FIRST }
    }
}
