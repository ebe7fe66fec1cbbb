//! Detection of the venue of a recording, from addresses and frames.

/// Bytes at the start of a frame that show its venue.
const START_LEN: usize = 400;

/// What shows that a recording is of a venue.
#[derive(Clone, Copy, Debug)]
pub struct Detection {
    /// Hosts of the venue, and of their subdomains; each may be followed by the start of a path.
    pub addresses: &'static [&'static str],
    /// Addresses of the venue that truetick does not read, with the name of what is there.
    pub unsupported: &'static [(&'static str, &'static str)],
    /// Returns whether no other venue sends a frame that starts so.
    pub sends: fn(&FrameStart) -> bool,
}

/// The start of a frame without white space.
#[derive(Clone, Copy, Debug)]
pub struct FrameStart {
    bytes: [u8; START_LEN],
    len: usize,
}

impl FrameStart {
    pub(crate) fn new(frame: &[u8]) -> Self {
        let mut start = Self { bytes: [0; START_LEN], len: 0 };
        for byte in frame.iter().take(START_LEN).filter(|byte| !byte.is_ascii_whitespace()) {
            start.bytes[start.len] = *byte;
            start.len += 1;
        }
        start
    }

    /// Returns whether `text` occurs in it.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.after(text).is_some()
    }

    /// Returns the text between `prefix` and the next quote.
    pub(crate) fn quoted_after(&self, prefix: &str) -> Option<&[u8]> {
        self.after(prefix)?.split(|byte| *byte == b'"').next()
    }

    fn after(&self, text: &str) -> Option<&[u8]> {
        let bytes = &self.bytes[..self.len];
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
        Some(&bytes[at + text.len()..])
    }
}

/// Returns whether `address` leads to `pattern`: a host, with the start of a path if there is one.
pub(crate) fn leads_to(address: &str, pattern: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let (pattern_host, pattern_path) = pattern.split_once('/').unwrap_or((pattern, ""));
    let is_host = host.strip_suffix(pattern_host).is_some_and(|domain| domain.is_empty() || domain.ends_with('.'));
    is_host && path.starts_with(pattern_path)
}
