//! TCP and TLS for a server: accepting, where a message ends, bounded queues.

mod connection;
mod framing;
mod listener;
mod proxy;
mod queue;
mod tls;

pub use connection::{
    Connection, HandshakeProgress, Progress, Resumption, Scratch, Security, StreamEnd, StreamRules, Taken, TlsNames,
};
pub use framing::{Framed, FramingFault, StreamFramer, Turn, frame};
pub use listener::StreamListener;
pub use proxy::{HeaderProgress, PROXY_HEADER_LEN_MAX, Proxied, ProxyFault, ProxyHeader};
pub use tls::{TlsCertificate, TlsFault, TlsIdentity, TlsRules, TlsSuite, TlsVersion};
