//! Keys of `[turn]` that a reload applies.

/// Keys of `[turn]` that a reload applies; the others need a restart.
const KEYS: &[&str] = &[
    "realm",
    "user",
    "user_file",
    "auth_secret_file",
    "nonce_key_file",
    "allow_peer",
    "deny_peer",
    "allow_own_host",
    "nat64_prefix",
    "drain_timeout_s",
    "lifetime_s",
    "lifetime_max_s",
    "nonce_lifetime_s",
    "strict_expiry",
    "strict_permissions",
    "kick_removed_users",
    "password_algorithms",
    "rfc5766_channel_numbers",
    "hairpin",
    "icmp_indications",
    "software",
    "fingerprint_always",
    "realms",
    "relay_ip",
    "external_ip",
    "relay_ports",
    "relay_low_ports",
    "proxy_protocol_from",
    "allocations_max",
    "dscp_allow",
    "busy_poll_us",
    "workers",
    "memory_max",
    "listen",
    "listen_tcp",
    "listen_tls",
    "no_tcp",
    "cert",
    "key",
    "tls_version_min",
    "tls_ciphers",
];

/// Returns whether a reload applies a change of a key of `[turn]`, such as `realms` or `quotas.allocations_max`.
#[must_use]
pub fn is_reloaded(key: &str) -> bool {
    match key {
        key if key.starts_with("quotas.") => true,
        // A connection in its handshake belongs to one of the threads.
        key if key.starts_with("streams.") => key != "streams.handshake_threads",
        key => KEYS.contains(&key),
    }
}
