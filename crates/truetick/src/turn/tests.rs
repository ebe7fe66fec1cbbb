use std::net::IpAddr;

use tt_turn::config::{ChannelNumbers, PasswordAlgorithms as EngineAlgorithms};
use tt_turn::shared::Quotas;
use turn_server::PortRange;

use super::*;

fn args(words: &[&str]) -> Args {
    use clap::{Args as _, FromArgMatches as _};
    let command = Args::augment_args(clap::Command::new("turn").no_binary_name(true));
    Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn config(words: &[&str], file: &str) -> anyhow::Result<TurnConfig> {
    TurnConfig::new(&args(words).over(&Config::parse(file).unwrap().turn))
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let file = "[turn]\nlisten = [\"127.0.0.1:1\"]\nrealm = \"file\"\nworkers = 3\nuser = [\"a:1\", \"b:2\"]\n\
                rfc5766_channel_numbers = true\nrelay_ports = \"50000-50009\"\n";
    let config = config(&["--realm", "flag", "--listen", "[::1]:2", "--listen", "127.0.0.2:3"], file).unwrap();
    assert_eq!(config.listen, ["[::1]:2".parse().unwrap(), "127.0.0.2:3".parse().unwrap()]);
    assert_eq!((config.realm.as_str(), config.workers, config.users.len()), ("flag", 3, 2));
    assert_eq!(config.channel_numbers, ChannelNumbers::Rfc5766);
    assert_eq!(config.relay_ports, PortRange { low: 50_000, high: 50_009 });
    let bound: Vec<_> = config.relay_ips.iter().map(|relay| relay.bound).collect();
    assert_eq!(bound, ["::1".parse::<IpAddr>().unwrap(), "127.0.0.2".parse().unwrap()]);
    assert_eq!(config.deny_peers, []);
}

#[test]
fn password_algorithms_are_named_alike_in_flags_and_file() {
    for (word, algorithms) in [
        ("md5-and-sha256", EngineAlgorithms::Md5AndSha256),
        ("md5", EngineAlgorithms::Md5),
        ("sha256", EngineAlgorithms::Sha256),
    ] {
        let flag = config(&["--listen", "127.0.0.1:0", "--password-algorithms", word], "").unwrap();
        let file = format!("[turn]\nlisten = [\"127.0.0.1:0\"]\npassword_algorithms = \"{word}\"\n");
        assert_eq!([flag.password_algorithms, config(&[], &file).unwrap().password_algorithms], [algorithms; 2]);
    }
    assert_eq!(config(&["--listen", "127.0.0.1:0"], "").unwrap().password_algorithms, EngineAlgorithms::Md5AndSha256);
}

#[test]
fn external_addresses_stand_for_relay_addresses_in_order() {
    let flags = "--listen 127.0.0.1:0 --relay-ip 127.0.0.1 --relay-ip ::1 --external-ip 192.0.2.9";
    let config = config(&flags.split(' ').collect::<Vec<_>>(), "").unwrap();
    assert_eq!(config.relay_ips[0].external, "192.0.2.9".parse::<IpAddr>().unwrap());
    assert_eq!(config.relay_ips[1].external, config.relay_ips[1].bound);
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    for (flags, message) in [
        ("--relay-ip 0.0.0.0", "--relay-ip 0.0.0.0 is not an address of this machine"),
        (
            "--relay-ip ::1 --external-ip 192.0.2.1",
            "--external-ip 192.0.2.1 and relay address ::1 have different address families",
        ),
        ("--external-ip 192.0.2.1 --external-ip 192.0.2.2", "--external-ip is given more often than --relay-ip"),
        (
            "--relay-ports 600-1000",
            "--relay-ports: ports below 1024 are those of system services; --relay-low-ports accepts them",
        ),
        (
            "--tls-version-min 1.3 --tls-ciphers ECDHE-RSA-AES128-GCM-SHA256",
            "--tls-ciphers has suites of TLS 1.2, which --tls-version-min 1.3 turns off: leave one of them out",
        ),
        ("--workers 0", "--workers must be from 1 to 256"),
        ("--user-share-percent 0", "--user-share-percent must be from 1 to 100"),
        ("--user-share-percent 101", "--user-share-percent must be from 1 to 100"),
        ("--allocations-max 0", "--allocations-max must be from 1 to 1048576"),
        ("--user ann", "--user: a user must be NAME:PASSWORD"),
        (
            "--database sqlite:x --password-algorithms sha256",
            "--password-algorithms must be md5 with --database: the keys of its users are MD5",
        ),
        (
            "--user bob:0x00112233445566778899aabbccddeeff --password-algorithms md5-and-sha256",
            "--password-algorithms must be md5 with user bob: the key of this user is MD5",
        ),
        (
            "--user bob:0x00112233445566778899aabbccddee",
            "--user: user bob: a password that begins with 0x is a key and must have 32 hexadecimal digits",
        ),
        ("--database-logins users", "--database-logins is for a database, and there is none"),
        ("--stats-database-password-file x", "--stats-database-password-file is for stats_database, and there is none"),
        ("--user-file /nowhere", "--user-file: cannot read /nowhere: No such file or directory (os error 2)"),
        ("--lifetime-s 59", "--lifetime-s 59 is not from 60 to 86400"),
        ("--lifetime-max-s 86401", "--lifetime-max-s 86401 is not from 60 to 86400"),
        ("--lifetime-s 300 --lifetime-max-s 299", "--lifetime-max-s 299 is below --lifetime-s 300"),
        ("--nonce-lifetime-s 3601", "--nonce-lifetime-s 3601 is not from 1 to 3600"),
        ("--software=", "--software must have from 1 to 127 characters"),
        ("--realm \u{7}", "--realm must not contain control characters, quotes, backslashes or decomposed characters"),
        (
            "--realm e\u{301}",
            "--realm must not contain control characters, quotes, backslashes or decomposed characters",
        ),
    ] {
        let words: Vec<_> = "--listen 127.0.0.1:0".split(' ').chain(flags.split(' ')).collect();
        assert_eq!(format!("{:#}", config(&words, "").unwrap_err()), message);
    }
}

#[test]
fn quotas_of_the_file_are_in_force_and_printed_again() {
    let file = "[turn]\nlisten = [\"127.0.0.1:0\"]\n[turn.quotas]\nuser_allocations = 3\nuser_bytes_per_second = 5000\n\
                user_packets_per_second = 100\nallocation_bytes_per_second = 4000\nbytes_per_second = 6000\n\
                permissions_per_allocation = 7\nchannels_per_allocation = 2\nerror_excess_bytes_per_source = 0\n\
                binding_replies_per_second = 9\nuser_share_percent = 40\nuser_allocations_per_second = 6\n";
    let config = config(&[], file).unwrap();
    assert_eq!((config.quotas.allocations_per_user, config.quotas.bytes_per_second_per_user), (3, 5_000));
    let Quotas { packets_per_second_per_user, bytes_per_second_per_allocation, bytes_per_second_total, .. } =
        config.quotas;
    let rates = (packets_per_second_per_user, bytes_per_second_per_allocation, bytes_per_second_total);
    assert_eq!(rates, (100, 4_000, 6_000));
    assert_eq!((config.caps.permissions, config.caps.channels), (7, 2));
    assert_eq!(config.quotas.error_excess, Quotas::default().error_excess);
    assert_eq!((config.quotas.error_excess_per_source.per_second, config.quotas.error_excess_per_source.burst), (0, 0));
    assert_eq!((config.quotas.binding_replies.per_second, config.quotas.binding_replies.burst), (9, 9));
    let rate = config.quotas.user_allocation_rate;
    assert_eq!((config.quotas.user_share_percent, rate.per_second, rate.burst), (40, 6, 24));
    let printed = config.effective(&Config::parse(file).unwrap().turn).quotas;
    assert_eq!((printed.quotas(), printed.caps()), (config.quotas, config.caps));
    let defaults = self::config(&[], "[turn]\nlisten = [\"127.0.0.1:0\"]\n").unwrap();
    assert_eq!((defaults.quotas, defaults.caps.permissions, defaults.caps.channels), (Quotas::default(), 256, 64));
    for key in [
        "user_allocations",
        "user_bytes_per_second",
        "user_packets_per_second",
        "source_bytes_per_second",
        "source_packets_per_second",
        "allocation_bytes_per_second",
        "bytes_per_second",
        "permissions_per_allocation",
        "channels_per_allocation",
    ] {
        let message = format!("{:#}", Config::parse(&format!("[turn.quotas]\n{key} = 0\n")).unwrap_err());
        assert!(message.contains("line 2") && message.contains(key), "{message}");
    }
}

#[test]
fn a_nat64_prefix_of_the_network_is_looked_into() {
    let policy = config(&["--nat64-prefix", "2606:4700:64::/96"], "").unwrap().peer_policy(&[], &[]);
    let judged = |ip: &str| policy.decide_ip(ip.parse().unwrap(), tt_turn::policy::Ownership::Foreign);
    assert_eq!(judged("2606:4700:64::808:808"), tt_turn::policy::PeerDecision::Allowed);
    assert_ne!(judged("2606:4700:64::7f00:1"), tt_turn::policy::PeerDecision::Allowed);
    for wrong in ["2606:4700:64::/80", "10.0.0.0/32"] {
        let message = format!("{:#}", config(&["--nat64-prefix", wrong], "").unwrap_err());
        assert!(message.starts_with("--nat64-prefix") && message.contains(wrong), "{message}");
    }
}

/// Every key has a value that is not its default; the effective section repeats all of them.
#[test]
fn every_key_of_the_section_is_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let (users, secrets) = (file("users", "carl:one\n"), file("secrets", "north\n"));
    let nonces = file("nonces", &"0f".repeat(32));
    let text = format!(
        "[turn]\nlisten = [\"127.0.0.1:1001\"]\nlisten_tcp = [\"127.0.0.1:1002\"]\nlisten_tls = [\"127.0.0.1:1003\"]\n\
         cert = \"chain.pem\"\nkey = \"key.pem\"\ntls_version_min = \"1.2\"\n\
         tls_ciphers = [\"ECDHE-RSA-AES128-GCM-SHA256\"]\nproxy_protocol_from = [\"10.13.0.0/28\"]\n\
         relay_ip = [\"127.0.0.4\"]\nexternal_ip = [\"192.0.2.5\"]\n\
         relay_ports = \"1006-1007\"\nrealm = \"r8\"\nuser = [\"ann:p9\"]\nuser_file = [\"{users}\"]\n\
         auth_secret_file = [\"{secrets}\"]\nnonce_key_file = \"{nonces}\"\npassword_algorithms = \"sha256\"\n\
         allow_peer = [\"10.10.0.0/16\"]\ndeny_peer = [\"10.11.0.0/16\"]\nnat64_prefix = [\"2001:db8:12::/96\"]\n\
         workers = 13\nallocations_max = 14\nrfc5766_channel_numbers = true\nhairpin = false\nbusy_poll_us = 15\n\
         drain_timeout_s = 16\nstrict_expiry = true\nkick_removed_users = true\nstrict_permissions = true\nicmp_indications = \"never\"\n\
         software = \"Relay 19\"\nfingerprint_always = true\nlifetime_s = 120\nlifetime_max_s = 2000\n\
         nonce_lifetime_s = 300\n\
         relay_low_ports = true\nallow_own_host = [\"10.12.0.1:17\"]\ndscp_allow = \"0,18\"\ndata_path = \"native\"\n\
         relay_sockets = \"shared\"\n"
    );
    let section = Config::parse(&text).unwrap().turn;
    let config = TurnConfig::new(&section).unwrap();
    assert_eq!((config.users.len(), config.auth_secrets.len(), config.nonce_keys.is_some()), (2, 1, true));
    let printed = config.effective(&section);
    let expected = TurnSection {
        user: vec!["ann:<masked>".to_owned()],
        quotas: printed.quotas,
        streams: printed.streams,
        key_sources: printed.key_sources.clone(),
        ..section
    };
    assert_eq!(printed, expected);
}
