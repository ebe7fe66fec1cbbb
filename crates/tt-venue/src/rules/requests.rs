//! How topics are requested, and how a venue responds.

/// How topics are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRule {
    /// The message, with `{method}`, `{topics}` and `{id}`.
    pub text: &'static str,
    /// The verb that subscribes.
    pub subscribe: &'static str,
    /// The verb that unsubscribes.
    pub unsubscribe: &'static str,
    /// What one request may contain.
    pub grouping: Grouping,
}

/// What one request may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Any topics of any symbols.
    Topics,
    /// One topic of several symbols.
    Symbols,
    /// One topic of one symbol.
    One,
}

/// How a venue responds to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseRule {
    /// How a frame with a response starts.
    pub starts: &'static [&'static str],
    /// Where the request's number is (JSON pointer, RFC 6901); `None` if responses come in the order of requests.
    pub id: Option<&'static str>,
    /// Where a response without a number repeats a topic of the request.
    pub argument: Option<&'static str>,
    /// Whether each topic or symbol of a request has its own response.
    pub is_per_topic: bool,
    /// Where the accepted topics are listed; one that is not listed was rejected.
    pub accepted: Option<&'static str>,
    /// A place and its text in a rejection; an empty text matches anything but null.
    pub rejected: &'static [(&'static str, &'static str)],
    /// Where the reason of a rejection may be.
    pub reason: &'static [&'static str],
    /// Where the symbol of a response may be.
    pub subject: &'static [&'static str],
    /// A word of a reason, in lower case, and what its readers should know then.
    pub hints: &'static [(&'static str, &'static str)],
}
