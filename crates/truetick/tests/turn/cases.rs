//! What attackers, faults and odd clients bring, against the built binary with four workers; after each a client still
//! gets its Binding and its relay. The list is `cases.toml`, and `rfc.toml` for what the RFCs ask.

mod allocate;
mod authentication;
mod codec;
mod dual;
mod faults;
mod lessons;
mod memory;
mod over_tcp;
mod peers;
mod relaying;
mod sha256;
mod stage;
mod way;
