//! The engine from the outside: messages written and read by code of the tests' own, in virtual time.

#[path = "engine/allocate.rs"]
mod allocate;
#[path = "engine/auth.rs"]
mod auth;
#[path = "engine/capacity.rs"]
mod capacity;
#[path = "engine/closing.rs"]
mod closing;
#[path = "engine/codec.rs"]
mod codec;
#[path = "engine/dual.rs"]
mod dual;
#[path = "engine/events.rs"]
mod events;
#[path = "engine/hairpin.rs"]
mod hairpin;
#[path = "engine/icmp.rs"]
mod icmp;
#[path = "engine/identities.rs"]
mod identities;
#[path = "engine/kept_keys.rs"]
mod kept_keys;
#[path = "engine/operators.rs"]
mod operators;
#[path = "engine/paths.rs"]
mod paths;
#[path = "engine/peers.rs"]
mod peers;
#[path = "engine/pools.rs"]
mod pools;
#[path = "engine/realm_peers.rs"]
mod realm_peers;
#[path = "engine/realms.rs"]
mod realms;
#[path = "engine/rejections.rs"]
mod rejections;
#[path = "engine/relaying.rs"]
mod relaying;
#[path = "engine/reload.rs"]
mod reload;
#[path = "engine/reservations.rs"]
mod reservations;
#[path = "engine/sha256.rs"]
mod sha256;
#[path = "engine/strangers.rs"]
mod strangers;
#[path = "engine/streams.rs"]
mod streams;
#[path = "engine/time_limited.rs"]
mod time_limited;
#[path = "engine/timing.rs"]
mod timing;
#[path = "engine/traffic.rs"]
mod traffic;
#[path = "engine/vectors.rs"]
mod vectors;
#[path = "engine/wire.rs"]
mod wire;
#[path = "engine/workers.rs"]
mod workers;
#[path = "engine/world.rs"]
mod world;
