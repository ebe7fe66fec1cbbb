//! The rows of the table: what each sender may take, and what others still get.

/// A resource that senders share.
pub(super) struct Row {
    /// Its name in the table, and in what its tests print.
    pub(super) name: &'static str,
    pub(super) stranger: &'static str,
    pub(super) source: &'static str,
    pub(super) user: &'static str,
    pub(super) bound: &'static str,
    /// Filters of the tests in crates/truetick/tests/turn that measure it.
    pub(super) tests: &'static [&'static str],
    /// The same of crates/tt-turn/tests/engine.
    pub(super) engine_tests: &'static [&'static str],
}

const NONE: &str = "–";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "error replies",
        stranger: "three times the bytes of its requests; beyond that a budget of its prefix, and only while the total is \
                   above its rate",
        source: "all",
        user: "all",
        bound: "with 500 junk requests per second from the client's own address, a UDP client is challenged within two \
                transmissions and TCP and TLS clients at once; 1,000 clients of one address that start together are all \
                challenged within 2 s",
        tests: &["strangers::"],
        engine_tests: &[],
    },
    Row {
        name: "IPv6 prefix",
        stranger: "all addresses of a prefix of `ipv6_prefix_bits` are one stranger",
        source: "all",
        user: "all",
        bound: "clients of other prefixes are challenged at their first request",
        tests: &["strangers::prefixes::"],
        engine_tests: &[],
    },
    Row {
        name: "stale nonces",
        stranger: "all 438 to requests with our realm and a nonce: none has three times the bytes of its request",
        source: "all",
        user: "all",
        bound: "a live allocation gets its 438 during the junk",
        tests: &["strangers::junk"],
        engine_tests: &[],
    },
    Row {
        name: "forged sources",
        stranger: "CPU time; replies of at most three times its bytes",
        source: NONE,
        user: NONE,
        bound: "while the CPU suffices, 99 % of first tries are challenged; beyond that strangers get a share; a client with \
                an allocation loses at most one packet in a thousand; memory does not grow",
        tests: &["floods::"],
        engine_tests: &[],
    },
    Row {
        name: "relay sockets",
        stranger: "CPU time to receive a datagram without a permission",
        source: NONE,
        user: NONE,
        bound: "while all relay ports are sprayed: median wait for Binding with 6,000 relay sockets at most 1.5 times that \
                with 50, user CPU time of a datagram at most 1.2 times",
        tests: &["spray::"],
        engine_tests: &[],
    },
    Row {
        name: "TLS handshakes",
        stranger: NONE,
        source: "its turn among all sources, on one thread of low priority",
        user: NONE,
        bound: "while four sources shake hands in a loop: median wait for Binding at most 1.5 times",
        tests: &["handshake_loops::"],
        engine_tests: &[],
    },
    Row {
        name: "one request",
        stranger: "a request of more than 16 KB is dropped after its header",
        source: "the same",
        user: "256 peers in a CreatePermission, or `permissions_per_allocation` if that is more",
        bound: "the longest request takes at most 50 µs",
        tests: &[],
        engine_tests: &["case_a09_no_request"],
    },
    Row {
        name: "connections",
        stranger: NONE,
        source: "4,096; its oldest without a message makes room",
        user: NONE,
        bound: "1,000 TCP and 1,000 TLS clients behind one address connect at once; a new client has its allocation within \
                2 s while ten thousand sources keep the table full",
        tests: &["streams::handshakes::an_office", "streams::bounds::a_flood"],
        engine_tests: &[],
    },
    Row {
        name: "ports and allocations",
        stranger: NONE,
        source: NONE,
        user: "three quarters of what others leave, and 50 allocations per second after a burst of 200; resting sockets are the user's",
        bound: "another user's first ten allocations and reservations succeed",
        tests: &["pools::one_user", "pools::a_small_server"],
        engine_tests: &[],
    },
    Row {
        name: "permissions and channels",
        stranger: NONE,
        source: NONE,
        user: "three quarters of what others leave; each allocation keeps 16 permissions and 8 channels",
        bound: "another user's first ten of each succeed",
        tests: &["pools::permissions"],
        engine_tests: &[],
    },
    Row {
        name: "bandwidth",
        stranger: NONE,
        source: NONE,
        user: "its quotas of bytes on the wire and of packets; without limit by default",
        bound: "a user with 1,000 B/s relays at most that on the wire, also in empty datagrams",
        tests: &["case_a76_empty_datagrams"],
        engine_tests: &[],
    },
    Row {
        name: "log lines",
        stranger: "one in ten seconds for each source and error code, and a count of the others",
        source: "the same",
        user: NONE,
        bound: "lines about other sources are written",
        tests: &["operators::logs::each_source"],
        engine_tests: &[],
    },
    Row {
        name: "HTTP",
        stranger: NONE,
        source: "a place of 256 until another connection needs it; 10 s for a request's head",
        user: NONE,
        bound: "`/healthz` answers while 1,000 half-sent requests are open",
        tests: &["operators::half_sent::"],
        engine_tests: &[],
    },
    Row {
        name: "reload",
        stranger: NONE,
        source: NONE,
        user: NONE,
        bound: "of 100,000 users: no worker pauses longer than 5 ms in the best of three reloads, memory at most 1.2 times",
        tests: &["user_files::a_reload"],
        engine_tests: &[],
    },
    Row {
        name: "files that hang",
        stranger: NONE,
        source: NONE,
        user: NONE,
        bound: "a user file on a file system that does not respond: the reload names it, clients are served meanwhile, and \
                the server ends when asked",
        tests: &["user_files::hanging::"],
        engine_tests: &[],
    },
];
