//! What attackers, faults and odd clients bring, against the built binary with four workers; after each a client still
//! gets its Binding and its relay. The list is `cases.toml`, and `rfc.toml` for what the RFCs ask.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

#[path = "cases/allocate.rs"]
mod allocate;
#[path = "cases/authentication.rs"]
mod authentication;
#[path = "cases/codec.rs"]
mod codec;
#[path = "cases/dual.rs"]
mod dual;
#[path = "cases/faults.rs"]
mod faults;
#[path = "cases/lessons.rs"]
mod lessons;
#[path = "cases/memory.rs"]
mod memory;
#[path = "cases/over_tcp.rs"]
mod over_tcp;
#[path = "cases/peers.rs"]
mod peers;
#[path = "cases/relaying.rs"]
mod relaying;
#[allow(dead_code, reason = "each test target uses its part of it")]
#[path = "clients/server.rs"]
mod server;
#[path = "cases/sha256.rs"]
mod sha256;
#[path = "cases/stage.rs"]
mod stage;
#[path = "cases/way.rs"]
mod way;
#[allow(dead_code, reason = "each test target uses its part of it")]
#[path = "../../tt-turn/tests/engine/wire.rs"]
mod wire;
