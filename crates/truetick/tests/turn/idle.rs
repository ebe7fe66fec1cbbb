//! What a server takes that serves nobody yet.

use crate::server::Server;

/// Memory of its own, without the pages of the program's file and of libraries, which a debug build has more of: those
/// of a release build are 8 MiB.
const ANONYMOUS_MAX: u64 = (25 - 8) << 20;

#[test]
fn an_idle_server_takes_little_memory() {
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let bytes = testkit::memory_bytes(server.id(), "RssAnon");
    println!("{} KiB", bytes >> 10);
    assert!(bytes <= ANONYMOUS_MAX, "{} KiB", bytes >> 10);
}
