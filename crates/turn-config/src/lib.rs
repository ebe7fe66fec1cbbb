//! The configuration of a STUN/TURN server around the engine `tt_turn`.
//!
//! A [`TurnSection`] is the section `[turn]` of a configuration file. [`TurnConfig::new`] checks it, fills in the
//! defaults and reads the files with users, secrets and nonce keys. No datagram passes here.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod config;
mod credentials;
mod section;

pub use config::{
    ALLOCATIONS_MAX, CertificateFiles, PeerPolicies, Realm, RelayIp, TurnConfig, WORKERS_MAX, check_name,
};
pub use credentials::{
    AuthSecret, ExternalCredentials, ExternalLimits, ExternalPeers, ExternalRealm, ExternalUsers, KeyedUsers,
    NonceKeys, Password, User, Users,
};
pub use section::{
    AllocationCaps, Balancers, DatabaseLogins, DscpSet, IcmpIndications, KernelMode, KeySources, MemoryBound,
    MemorySize, PasswordAlgorithms, PeerRange, PortRange, QuotasSection, RealmSection, RecordOutput, RelaySockets,
    StreamLimits, StreamsSection, TlsCipher, TlsVersion, TurnSection, is_reloaded,
};
