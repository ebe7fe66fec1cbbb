//! Configurations of coturn with the options that products set. The text is ours, the options are those of the source.

/// A configuration, and what answers otherwise than with Debian's coturn.
pub(super) struct Golden {
    /// The lines. `{folder}` is the folder of the certificate.
    pub(super) lines: &'static str,
    /// The port for UDP and TCP.
    pub(super) port: u16,
    /// Question, coturn's answer, truetick's answer, reason.
    pub(super) differences: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// The secret of every file.
pub(super) const SECRET: &str = "a secret for tests";

const OWN_HOST: &str = "addresses of this host are no peers but relayed ones (allow_own_host)";
const PRIVATE: &str = "private and special addresses are denied by default (allow_peer)";
const CHANNELS: &str =
    "RFC 8656 section 12: channel numbers end at 0x4FFF; coturn 4.17 agrees (rfc5766_channel_numbers)";
const SOFTWARE: &str = "no SOFTWARE by default; coturn 4.17 agrees (software)";
const RFC3489: &str = "RFC 8489 section 14.1: MAPPED-ADDRESS is for clients of RFC 3489";
const RFC5780: &str = "not yet: RFC 5780; off by default in coturn 4.17";
const TRANSPORT: &str = "RFC 8656 section 7.2: 442 for a transport that is not offered";

/// `docs/setup/turn/coturn.md` of element-hq/synapse.
pub(super) const SYNAPSE: Golden = Golden {
    lines: "use-auth-secret\n\
        static-auth-secret=a secret for tests\n\
        realm=turn.example.org\n\
        syslog\n\
        no-tcp-relay\n\
        denied-peer-ip=10.0.0.0-10.255.255.255\n\
        denied-peer-ip=192.168.0.0-192.168.255.255\n\
        denied-peer-ip=172.16.0.0-172.31.255.255\n\
        no-multicast-peers\n\
        denied-peer-ip=0.0.0.0-0.255.255.255\n\
        denied-peer-ip=100.64.0.0-100.127.255.255\n\
        denied-peer-ip=127.0.0.0-127.255.255.255\n\
        denied-peer-ip=169.254.0.0-169.254.255.255\n\
        denied-peer-ip=192.0.0.0-192.0.0.255\n\
        denied-peer-ip=240.0.0.0-255.255.255.255\n\
        denied-peer-ip=::1\n\
        denied-peer-ip=64:ff9b::-64:ff9b::ffff:ffff\n\
        denied-peer-ip=::ffff:0.0.0.0-::ffff:255.255.255.255\n\
        denied-peer-ip=fc00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n\
        denied-peer-ip=fe80::-febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n\
        allowed-peer-ip=10.0.0.1\n\
        user-quota=12 # streams\n\
        total-quota=1200\n\
        cert={folder}/cert.pem\n\
        pkey={folder}/key.pem\n\
        external-ip=11.0.0.10\n\
        listening-ip=10.0.0.1\n",
    port: 3478,
    differences: &[
        ("binding: SOFTWARE", "true", "false", SOFTWARE),
        ("binding: MAPPED-ADDRESS", "true", "false", RFC3489),
        ("binding: RESPONSE-ORIGIN", "true", "false", RFC5780),
        ("channel 0x5000", "0", "400", CHANNELS),
    ],
};

/// `doc/debian/jitsi-meet-turn/turnserver.conf` of jitsi/jitsi-meet.
pub(super) const JITSI: Golden = Golden {
    lines: "lt-cred-mech\n\
        use-auth-secret\n\
        keep-address-family\n\
        static-auth-secret=a secret for tests\n\
        realm=meet.example.org\n\
        cert={folder}/cert.pem\n\
        pkey={folder}/key.pem\n\
        no-tcp\n\
        listening-port=443\n\
        tls-listening-port=4445\n\
        external-ip=11.0.0.10\n",
    port: 443,
    differences: &[
        ("binding: SOFTWARE", "true", "false", SOFTWARE),
        ("binding: MAPPED-ADDRESS", "true", "false", RFC3489),
        ("binding: RESPONSE-ORIGIN", "true", "false", RFC5780),
        ("allocate TCP over UDP", "400", "442", TRANSPORT),
        ("permission: this host", "0", "403", OWN_HOST),
        ("permission: private 192.168", "0", "403", PRIVATE),
        ("permission: private 172.16", "0", "403", PRIVATE),
        ("permission: metadata", "0", "403", PRIVATE),
        ("permission: carrier-grade NAT", "0", "403", PRIVATE),
        ("permission: multicast", "0", "403", PRIVATE),
        ("channel 0x5000", "0", "400", CHANNELS),
    ],
};

/// `bbb-install.sh` of bigbluebutton/bbb-install.
pub(super) const BIGBLUEBUTTON: Golden = Golden {
    lines: "listening-port=3478\n\
        listening-ip=10.0.0.1\n\
        relay-ip=10.0.0.1\n\
        min-port=32769\n\
        max-port=65535\n\
        verbose\n\
        fingerprint\n\
        lt-cred-mech\n\
        use-auth-secret\n\
        static-auth-secret=a secret for tests\n\
        realm=bbb.example.org\n\
        keep-address-family\n\
        no-cli\n\
        no-tlsv1\n\
        no-tlsv1_1\n\
        no-loopback-peers\n\
        no-multicast-peers\n\
        denied-peer-ip=0.0.0.0-255.255.255.255\n\
        denied-peer-ip=::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n\
        allowed-peer-ip=10.0.0.1\n",
    port: 3478,
    differences: &[
        ("binding: SOFTWARE", "true", "false", SOFTWARE),
        ("binding: MAPPED-ADDRESS", "true", "false", RFC3489),
        ("binding: RESPONSE-ORIGIN", "true", "false", RFC5780),
        ("allocate TCP over UDP", "400", "442", TRANSPORT),
        ("channel 0x5000", "403", "400", CHANNELS),
    ],
};

/// `docs/TURN.md` of nextcloud/spreed.
pub(super) const NEXTCLOUD: Golden = Golden {
    lines: "listening-port=3479\n\
        fingerprint\n\
        use-auth-secret\n\
        static-auth-secret=a secret for tests\n\
        realm=cloud.example.org\n\
        total-quota=0\n\
        bps-capacity=0\n\
        stale-nonce\n\
        no-loopback-peers\n\
        no-multicast-peers\n",
    port: 3479,
    differences: &[
        ("binding: SOFTWARE", "true", "false", SOFTWARE),
        ("binding: MAPPED-ADDRESS", "true", "false", RFC3489),
        ("binding: OTHER-ADDRESS", "true", "false", RFC5780),
        ("binding: RESPONSE-ORIGIN", "true", "false", RFC5780),
        ("allocate TCP over UDP", "400", "442", TRANSPORT),
        ("permission: this host", "0", "403", OWN_HOST),
        ("permission: private 192.168", "0", "403", PRIVATE),
        ("permission: private 172.16", "0", "403", PRIVATE),
        ("permission: metadata", "0", "403", PRIVATE),
        ("permission: carrier-grade NAT", "0", "403", PRIVATE),
        ("channel 0x5000", "0", "400", CHANNELS),
    ],
};

/// `roles/custom/matrix-coturn/templates/turnserver.conf.j2` of spantaleev/matrix-docker-ansible-deploy.
pub(super) const MATRIX_DOCKER_ANSIBLE: Golden = Golden {
    lines: "use-auth-secret\n\
        static-auth-secret=a secret for tests\n\
        realm=turn.matrix.example.org\n\
        min-port=49152\n\
        max-port=49172\n\
        external-ip=11.0.0.10\n\
        log-file=stdout\n\
        pidfile={folder}/turnserver.pid\n\
        userdb={folder}/turnserver.db\n\
        no-cli\n\
        no-tls\n\
        no-dtls\n\
        prod\n\
        no-tcp-relay\n\
        user-quota=12\n\
        total-quota=1200\n\
        no-multicast-peers\n\
        denied-peer-ip=0.0.0.0-0.255.255.255\n\
        denied-peer-ip=10.0.0.0-10.255.255.255\n\
        denied-peer-ip=100.64.0.0-100.127.255.255\n\
        denied-peer-ip=127.0.0.0-127.255.255.255\n\
        denied-peer-ip=169.254.0.0-169.254.255.255\n\
        denied-peer-ip=172.16.0.0-172.31.255.255\n\
        denied-peer-ip=192.168.0.0-192.168.255.255\n",
    port: 3478,
    differences: &[
        ("binding: MAPPED-ADDRESS", "true", "false", RFC3489),
        ("binding: RESPONSE-ORIGIN", "true", "false", RFC5780),
        ("channel 0x5000", "0", "400", CHANNELS),
    ],
};
