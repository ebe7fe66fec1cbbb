//! The steps, in the order in which they are taken.

macro_rules! steps {
    ($($(#[doc = $doc:literal])+ $name:ident => $text:literal,)+) => {
        /// One thing that a live venue has to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Step {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Step {
            /// All steps in order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$name),+];

            /// The step's name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

steps! {
    /// The host's name has addresses.
    Resolve => "resolve",
    /// One of them takes a TCP connection.
    Connect => "connect",
    /// It proves by a certificate that it is the host.
    Tls => "tls",
    /// The list of instruments has the symbols, with their steps of price and quantity.
    Instruments => "instruments",
    /// The connection becomes a WebSocket.
    Upgrade => "upgrade",
    /// Each request for a topic is acknowledged.
    Subscribe => "subscribe",
    /// Each book has its first levels.
    Snapshot => "snapshot",
    /// Each book is updated so often.
    Updates => "updates",
    /// Each book is proved as the venue allows it.
    Proof => "proof",
    /// Each topic that the venue accepted is sent.
    Topics => "topics",
    /// A ping is answered.
    KeepAlive => "keep_alive",
    /// The two clocks agree.
    Clock => "clock",
    /// What arrives is not old.
    Lag => "lag",
    /// Every frame could be read, in the form that is expected.
    Frames => "frames",
    /// The account's own stream takes the login, and acknowledges its topics.
    Login => "login",
}
