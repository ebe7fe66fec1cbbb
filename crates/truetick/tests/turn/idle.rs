//! Memory of an idle server.

use crate::server::Server;

/// Anonymous memory. A release build maps 8 MiB of files besides; a debug build maps more.
const ANONYMOUS_MAX: u64 = (25 - 8) << 20;

#[test]
fn an_idle_server_takes_little_memory() {
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let bytes = testkit::memory_bytes(server.id(), "RssAnon");
    println!("{} KiB", bytes >> 10);
    assert!(bytes <= ANONYMOUS_MAX, "{} KiB", bytes >> 10);
}
