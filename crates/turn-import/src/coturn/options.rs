//! The options of coturn 4.17.1, and those of earlier versions that files still contain.
//!
//! Names, letters and kinds are those of its command line; the effects are described in its documentation
//! (docs/coturn-import.md).

use crate::import::Outcome::{self, Better, Differs, Ignored, Refused, Same};

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// It must have one.
    Value,
    /// It is on without one.
    Switch,
}

/// How truetick treats an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// The mapping decides.
    Mapped,
    /// A switch that is off by default, and its outcome when it is on.
    WhenOn(Outcome, &'static str),
    /// The same outcome for every value.
    Always(Outcome, &'static str),
}

/// An option of coturn.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) letter: Option<char>,
    pub(crate) argument: Argument,
    pub(crate) treatment: Treatment,
    /// Whether the value is a credential.
    pub(crate) is_secret: bool,
}

/// Returns the option of this name.
pub(crate) fn find(name: &str) -> Option<&'static Spec> {
    OPTIONS.iter().find(|spec| spec.name == name)
}

/// Returns the option of this letter.
pub(crate) fn find_letter(letter: char) -> Option<&'static Spec> {
    OPTIONS.iter().find(|spec| spec.letter == Some(letter))
}

const fn mapped(name: &'static str, letter: Option<char>, argument: Argument) -> Spec {
    Spec { name, letter, argument, treatment: Treatment::Mapped, is_secret: false }
}

const fn value(name: &'static str) -> Spec {
    mapped(name, None, Argument::Value)
}

const fn switch(name: &'static str) -> Spec {
    mapped(name, None, Argument::Switch)
}

/// An option whose value is a credential.
const fn secret(spec: Spec) -> Spec {
    Spec { is_secret: true, ..spec }
}

const fn when_on(name: &'static str, outcome: Outcome, reason: &'static str) -> Spec {
    Spec { treatment: Treatment::WhenOn(outcome, reason), ..switch(name) }
}

const fn always(spec: Spec, outcome: Outcome, reason: &'static str) -> Spec {
    Spec { treatment: Treatment::Always(outcome, reason), ..spec }
}

const NOT_YET_DATABASE: &str = "not yet: truetick does not read this database; its users could not log in";
const NOT_YET_REDIRECT: &str =
    "not yet: truetick serves the allocations itself, with no ALTERNATE-SERVER; list the servers in the clients";
const LOG: &str = "truetick logs to standard error, which journald keeps; see --log-level and --log-format";
const CLI: &str = "no telnet interface; see [http] and docs/turn-operators.md for the API";
const PAGE: &str = "the page is at `listen` of [http], read-only without a token";
pub(super) const TLS: &str = "rustls chooses the cipher suites and curves: TLS 1.2 and 1.3, forward secrecy only";
const PLAIN_HTTP: &str = "metrics are served over plain HTTP; put a reverse proxy in front of [http]";
const RECVMMSG: &str = "truetick always sends and receives in batches";
const GONE: &str = "coturn has removed it and ignores it too";

/// Every option of coturn.
pub(crate) const OPTIONS: &[Spec] = &[
    // Addresses.
    always(
        mapped("listening-device", Some('d'), Argument::Value),
        Differs,
        "listeners are not bound to a device: set `listen` to its addresses",
    ),
    mapped("listening-port", Some('p'), Argument::Value),
    value("tls-listening-port"),
    always(value("alt-listening-port"), Ignored, "it counts with rfc5780 only"),
    always(value("alt-tls-listening-port"), Ignored, "it counts with rfc5780 only"),
    always(
        value("tcp-proxy-port"),
        Differs,
        "set `proxy_protocol_from` to the addresses of the balancers, and let them connect to a port of `listen` or \
         `listen_tcp`: coturn accepts the header from every address there",
    ),
    mapped("listening-ip", Some('L'), Argument::Value),
    always(
        mapped("relay-device", Some('i'), Argument::Value),
        Differs,
        "relay sockets are not bound to a device: set `relay_ip` to its addresses",
    ),
    mapped("relay-ip", Some('E'), Argument::Value),
    mapped("external-ip", Some('X'), Argument::Value),
    value("aux-server"),
    value("min-port"),
    value("max-port"),
    // Processes.
    mapped("relay-threads", Some('m'), Argument::Value),
    always(value("cpus"), Ignored, "one worker for each CPU; see `workers`"),
    always(value("sock-buf-size"), Ignored, "listeners have buffers of 4 MiB if the system allows it"),
    always(value("pidfile"), Ignored, "no PID file; service managers know the process"),
    always(
        value("proc-user"),
        Differs,
        "truetick does not change its user: set User= in the unit, or start it as that user",
    ),
    always(value("proc-group"), Differs, "truetick does not change its group: set Group= in the unit"),
    Spec {
        letter: Some('o'),
        ..when_on("daemon", Ignored, "truetick stays in the foreground, as service managers expect; the start says so")
    },
    always(
        value("drain-min-allocations"),
        Ignored,
        "SIGTERM drains until no allocation is left or `drain_timeout_s` has passed",
    ),
    // Credentials.
    mapped("lt-cred-mech", Some('a'), Argument::Switch),
    mapped("no-auth", Some('z'), Argument::Switch),
    secret(mapped("user", Some('u'), Argument::Value)),
    mapped("userdb", Some('b'), Argument::Value),
    value("db"),
    secret(mapped("psql-userdb", Some('e'), Argument::Value)),
    secret(value("sql-userdb")),
    secret(always(mapped("mysql-userdb", Some('M'), Argument::Value), Refused, NOT_YET_DATABASE)),
    secret(always(mapped("mongo-userdb", Some('J'), Argument::Value), Refused, NOT_YET_DATABASE)),
    secret(mapped("redis-userdb", Some('N'), Argument::Value)),
    secret(mapped("redis-statsdb", Some('O'), Argument::Value)),
    always(value("secret-key-file"), Ignored, "it decrypts the password of a MySQL database"),
    switch("use-auth-secret"),
    secret(value("static-auth-secret")),
    mapped("rest-api-separator", Some('C'), Argument::Value),
    when_on("no-auth-pings", Ignored, "there is no database to ping"),
    when_on("no-dynamic-ip-list", Same, "peer rules come from the configuration only"),
    when_on("no-dynamic-realms", Same, "there is one realm"),
    mapped("realm", Some('r'), Argument::Value),
    always(value("server-name"), Ignored, "it counts with oauth only"),
    when_on("oauth", Refused, "not yet: RFC 7635; clients with tokens could not log in"),
    when_on(
        "check-origin-consistency",
        Differs,
        "ORIGIN is not compared with that of the first request; one realm serves every origin",
    ),
    // Quotas.
    mapped("user-quota", Some('q'), Argument::Value),
    mapped("total-quota", Some('Q'), Argument::Value),
    mapped("max-bps", Some('s'), Argument::Value),
    mapped("bps-capacity", Some('B'), Argument::Value),
    when_on("unauthorized-ratelimit", Better, "error replies over UDP have budgets for all sources and for each"),
    always(switch("unauthorized-ratelimit-rps"), Better, "see error_excess_bytes_per_second in [turn.quotas]"),
    // Protocol.
    mapped("fingerprint", Some('f'), Argument::Switch),
    mapped("verbose", Some('v'), Argument::Switch),
    mapped("Verbose", Some('V'), Argument::Switch),
    when_on("no-software-attribute", Same, "no SOFTWARE attribute by default"),
    switch("software-attribute"),
    switch("no-udp"),
    switch("no-tcp"),
    switch("no-tls"),
    when_on("dtls", Differs, "not yet: RFC 7350; clients over DTLS need another transport"),
    when_on("no-dtls", Same, "no DTLS"),
    when_on("no-udp-relay", Refused, "truetick relays UDP: clients would reach peers that coturn denies"),
    switch("no-tcp-relay"),
    switch("stale-nonce"),
    switch("max-allocate-lifetime"),
    switch("channel-lifetime"),
    switch("permission-lifetime"),
    always(
        value("max-allocate-timeout"),
        Ignored,
        "a client without an allocation costs no memory over UDP; see [turn.streams] for connections",
    ),
    mapped("stun-only", Some('S'), Argument::Switch),
    when_on("no-stun", Differs, "Binding requests are answered"),
    when_on("secure-stun", Differs, "Binding requests are answered without credentials"),
    when_on("stateless-nonce", Same, "nonces are always stateless"),
    secret(always(
        value("stateless-nonce-secret"),
        Differs,
        "nonces of other servers are stale here, and clients repeat the request: share `nonce_key_file` instead",
    )),
    when_on("mobility", Differs, "not yet: RFC 8016; a client with a new address allocates again"),
    mapped("keep-address-family", Some('K'), Argument::Switch),
    mapped("allocation-default-address-family", Some('A'), Argument::Value),
    when_on("include-reason-string", Same, "error responses have a reason phrase"),
    when_on("no-rfc5780", Same, "no RFC 5780"),
    when_on("rfc5780", Differs, "not yet: RFC 5780; clients cannot find out how their NAT behaves"),
    when_on("stun-backward-compatibility", Differs, "Binding requests of RFC 3489 without a magic cookie are dropped"),
    when_on("rfc3489-compatibility", Differs, "Binding requests of RFC 3489 without a magic cookie are dropped"),
    when_on("no-stun-backward-compatibility", Same, "no RFC 3489"),
    when_on("response-origin-only-with-rfc5780", Same, "no RESPONSE-ORIGIN"),
    switch("rfc5766-channel-numbers"),
    when_on("respond-http-unsupported", Ignored, "HTTP on the TURN port is dropped and counted"),
    when_on("drop-invalid-packets", Same, "what is no STUN or TURN message is dropped and counted"),
    when_on("drop-invalid-packets-log", Ignored, LOG),
    always(value("acme-redirect"), Differs, "no HTTP redirect on the TURN port: answer the ACME challenge at port 80"),
    when_on(
        "multiplex-peer",
        Differs,
        "every allocation has its own port: open the ports of `relay_ports` in the firewall",
    ),
    always(value("multiplex-peer-port"), Ignored, "it counts with multiplex-peer only"),
    always(value("multiplex-peer-max-peers"), Ignored, "it counts with multiplex-peer only"),
    // Peers.
    switch("no-multicast-peers"),
    switch("allow-loopback-peers"),
    when_on("no-loopback-peers", Same, "loopback peers are denied"),
    value("allowed-peer-ip"),
    value("denied-peer-ip"),
    when_on(
        "server-relay",
        Differs,
        "peers need a permission (RFC 8656 section 9), so that servers on relayed addresses are not reached",
    ),
    // TLS.
    value("cert"),
    value("pkey"),
    secret(value("pkey-pwd")),
    value("cipher-list"),
    always(value("ec-curve-name"), Better, TLS),
    always(value("dh-file"), Better, TLS),
    when_on("dh566", Better, TLS),
    when_on("dh1066", Better, TLS),
    always(
        value("CA-file"),
        Refused,
        "certificates of clients are not checked: remove the option if it names the server's own authority",
    ),
    when_on("tlsv1", Differs, "TLS 1.0 and 1.1 are not offered: RFC 8996"),
    when_on("tlsv1_1", Differs, "TLS 1.0 and 1.1 are not offered: RFC 8996"),
    when_on("no-tlsv1", Same, "no TLS 1.0"),
    when_on("no-tlsv1_1", Same, "no TLS 1.1"),
    switch("no-tlsv1_2"),
    when_on("no-sslv2", Same, "no SSL"),
    when_on("no-sslv3", Same, "no SSL"),
    when_on("raw-public-keys", Differs, "no raw public keys (RFC 7250): clients need the certificate"),
    // Several servers.
    always(value("alternate-server"), Differs, NOT_YET_REDIRECT),
    always(value("tls-alternate-server"), Differs, NOT_YET_REDIRECT),
    always(value("tcp-alternate-server"), Differs, NOT_YET_REDIRECT),
    always(value("udp-alternate-server"), Differs, NOT_YET_REDIRECT),
    when_on("udp-self-balance", Ignored, "the kernel spreads clients over the workers"),
    // Administration.
    when_on("no-cli", Same, "no telnet interface"),
    when_on("cli", Ignored, CLI),
    always(value("cli-ip"), Ignored, CLI),
    always(value("cli-port"), Ignored, CLI),
    secret(always(value("cli-password"), Ignored, CLI)),
    always(value("cli-max-output-sessions"), Ignored, CLI),
    when_on("web-admin", Ignored, PAGE),
    always(value("web-admin-ip"), Ignored, PAGE),
    always(value("web-admin-port"), Ignored, PAGE),
    when_on("web-admin-listen-on-workers", Ignored, PAGE),
    switch("prometheus"),
    value("prometheus-port"),
    value("prometheus-address"),
    always(value("prometheus-path"), Differs, "metrics are at /metrics: change the scrape configuration"),
    when_on("prometheus-username-labels", Differs, "no metric contains user names; see /api/v1/turn/allocations"),
    when_on("prometheus-tls", Differs, PLAIN_HTTP),
    always(value("prometheus-cert"), Ignored, PLAIN_HTTP),
    always(value("prometheus-key"), Ignored, PLAIN_HTTP),
    // Logs.
    always(mapped("log-file", Some('l'), Argument::Value), Ignored, LOG),
    when_on("no-stdout-log", Ignored, LOG),
    when_on("syslog", Ignored, LOG),
    always(value("syslog-facility"), Ignored, LOG),
    when_on("simple-log", Ignored, LOG),
    always(value("log-min-level"), Ignored, LOG),
    when_on("log-binding", Ignored, LOG),
    when_on("new-log-timestamp", Ignored, LOG),
    always(value("new-log-timestamp-format"), Ignored, LOG),
    // Batches.
    when_on("udp-recvmmsg", Same, RECVMMSG),
    when_on("udp-recvmmsg-log", Ignored, LOG),
    when_on("udp-sendmmsg-log", Ignored, LOG),
    when_on("udp-gso", Same, RECVMMSG),
    // Others.
    when_on("version", Ignored, "it prints the version"),
    when_on("prod", Ignored, GONE),
    always(value("ne"), Ignored, GONE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_letters_are_unique() {
        for (index, spec) in OPTIONS.iter().enumerate() {
            let others = || OPTIONS[index + 1..].iter();
            assert!(others().all(|other| other.name != spec.name), "{}", spec.name);
            assert!(others().all(|other| other.letter != spec.letter || spec.letter.is_none()), "{}", spec.name);
        }
    }

    /// The letters of coturn 4.17.1 without those that are no options of the file: -c, -n and -h.
    #[test]
    fn every_letter_of_coturn_is_known() {
        let with_value = "dpLEXimlrubBeMJNOqQsCA";
        let without_value = "vVofzaS";
        for (letters, argument) in [(with_value, Argument::Value), (without_value, Argument::Switch)] {
            for letter in letters.chars() {
                assert_eq!(find_letter(letter).map(|spec| spec.argument), Some(argument), "-{letter}");
            }
        }
        assert_eq!(find_letter('K').map(|spec| spec.name), Some("keep-address-family"));
    }
}
