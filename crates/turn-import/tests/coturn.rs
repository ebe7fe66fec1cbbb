//! Options of coturn: every one is named in the report, and the mapping means the same.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use tt_turn::policy::{Ownership, PeerDecision, PeerPolicy, PeerRange};
use turn_import::{Host, Import, Outcome, Row, coturn};

const HOST: Host<'_> = Host { has_ipv6: true, folder: None };

fn import(text: &str) -> Import {
    coturn::import(coturn::lines(text), &HOST)
}

fn turn(import: &Import) -> toml::Table {
    let document: toml::Table = import.to_toml(None).parse().unwrap();
    document.get("turn").and_then(toml::Value::as_table).cloned().unwrap_or_default()
}

fn list(table: &toml::Table, key: &str) -> Vec<String> {
    let values = table.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
    values.into_iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn outcome(import: &Import, option: &str) -> Vec<Outcome> {
    import.rows.iter().filter(|row| row.option == option).map(|row| row.outcome).collect()
}

fn refused(text: &str) -> Vec<Row> {
    import(text).rows_of(Outcome::Refused).cloned().collect()
}

/// The options of coturn 4.17.1, as its command line has them.
const NAMES: &str = include_str!("coturn_options.txt");

#[test]
fn knows_every_option_of_coturn_and_says_how_it_is_treated() {
    let names: Vec<&str> = NAMES.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(names.len(), 143);
    for name in names {
        for value in ["", "=1", "=on", "=off", "=a value", "=10.0.0.1", "=0"] {
            let import = import(&format!("{name}{value}\n"));
            let rows: Vec<_> = import.rows.iter().filter(|row| row.place == "line 1").collect();
            assert_eq!(rows.len(), 1, "{name}{value}: {rows:?}");
            assert_eq!(rows[0].option, name);
            assert_ne!(rows[0].outcome, Outcome::Unknown, "{name}{value}");
            assert!(!rows[0].reason.contains("does not know"), "{name}{value}");
            let is_plain = matches!(rows[0].outcome, Outcome::Same | Outcome::Ignored | Outcome::Better);
            assert!(is_plain || rows[0].reason.len() > 8, "{name}{value} has no reason");
        }
    }
}

#[test]
fn options_that_coturn_has_removed_stay_silent() {
    for name in [
        "no-loopback-peers",
        "no-tlsv1",
        "no-tlsv1_1",
        "no-sslv2",
        "no-sslv3",
        "prod",
        "ne=1",
        "no-rfc5780",
        "no-stun-backward-compatibility",
        "response-origin-only-with-rfc5780",
    ] {
        let row = import(name).rows.into_iter().find(|row| row.place == "line 1").unwrap();
        assert!(matches!(row.outcome, Outcome::Same | Outcome::Ignored), "{row:?}");
    }
}

#[test]
fn unknown_lines_are_named_and_change_nothing() {
    let import = import("use-auth-secret\nstatic-auth-secret=north\nsurprise=1\n");
    assert_eq!(outcome(&import, "surprise"), [Outcome::Unknown]);
    assert!(import.rows_of(Outcome::Refused).next().is_none());
}

#[test]
fn credentials_are_kept_apart_and_masked() {
    let text = "use-auth-secret\nstatic-auth-secret=hush-one\nstatic-auth-secret=hush-two\ncli-password=hush-3\n";
    let import = import(text);
    let secrets: Vec<&str> = import.secrets.iter().map(|secret| secret.as_str()).collect();
    assert_eq!((secrets, import.has_credentials), (vec!["hush-one", "hush-two"], true));
    let rows = format!("{:?} {}", import.rows, import.to_toml(None));
    assert!(!rows.contains("hush"), "{rows}");
    let import = self::import("lt-cred-mech\nuser=ann:hush:1\nuser=bob: hush\n");
    let users: Vec<&str> = import.users.iter().map(|user| user.as_str()).collect();
    assert_eq!(users, ["ann:hush:1", "bob:hush"]);
    assert!(!format!("{:?}", import.rows).contains("hush"));
    assert!(import.rows.iter().any(|row| row.value == "ann:<masked>"));
    let misspelt = self::import("static-auth-secert=hush\n");
    assert_eq!(
        (outcome(&misspelt, "static-auth-secert"), misspelt.rows[0].value.as_str()),
        (vec![Outcome::Unknown], "<masked>")
    );
}

#[test]
fn a_realm_that_truetick_does_not_take_is_refused_and_not_written() {
    let long = "r".repeat(128);
    for realm in ["", "a\"b", "a\\b", "a\u{7}b", &long] {
        let import = import(&format!("stun-only\nrealm={realm}\n"));
        assert_eq!((outcome(&import, "realm"), turn(&import).get("realm")), (vec![Outcome::Refused], None), "{realm}");
    }
    for realm in ["r", "\"quoted by coturn\"", "Straße", &long[1..]] {
        assert_eq!(outcome(&import(&format!("realm={realm}\n")), "realm"), [Outcome::Same], "{realm}");
    }
}

/// What coturn does with users next to a secret: it knows the secret only.
#[test]
fn users_next_to_a_secret_cannot_log_in() {
    let import = import("lt-cred-mech\nuser=ann:one\nstatic-auth-secret=north\n");
    assert_eq!((import.users.len(), import.secrets.len()), (0, 1));
    assert_eq!(outcome(&import, "user"), [Outcome::Ignored]);
}

#[test]
fn refuses_what_would_change_who_can_log_in() {
    for (text, option) in [
        ("no-auth", "no-auth"),
        ("lt-cred-mech", "lt-cred-mech"),
        ("use-auth-secret", "use-auth-secret"),
        ("use-auth-secret\npsql-userdb=", "psql-userdb"),
        ("lt-cred-mech\nuserdb=", "userdb"),
        ("user=a:b\nmysql-userdb=x", "mysql-userdb"),
        ("user=a:b\nmongo-userdb=x", "mongo-userdb"),
        ("user=a:b\nredis-userdb=ip=a\nuserdb=/x", "redis-userdb"),
        ("user=a:b\noauth", "oauth"),
        ("user=a:0x11223344556677889900aabbccddeeff", "realm"),
        ("user=a:b\nCA-file=ca.pem", "CA-file"),
        ("user=a:b\nno-udp-relay", "no-udp-relay"),
        ("static-auth-secret=a\nrest-api-separator=-", "rest-api-separator"),
        ("user=a:b\ncert=c\npkey=k\npkey-pwd=p", "pkey-pwd"),
    ] {
        let rows = refused(text);
        assert!(rows.iter().any(|row| row.option == option), "{text}: {rows:?}");
    }
    assert!(refused("use-auth-secret\nstatic-auth-secret=a\nuserdb=/var/tmp/turn.db").is_empty());
    assert!(refused("stun-only\nlt-cred-mech").is_empty());
}

/// As Debian's coturn 4.6.1 reads them.
#[test]
fn a_key_has_32_digits_and_makes_md5_the_only_algorithm() {
    let key = "11223344556677889900aabbccddeeFF";
    let of = |user: &str| import(&format!("lt-cred-mech\nrealm=example.org\nuser=bob:two\nuser={user}\n"));
    for (user, expected) in [
        (format!("ann:0x{key}"), format!("ann:0x{key}")),
        (format!("ann: 0x{key}"), format!("ann:0x{key}")),
        (format!("ann:0x{key}0"), format!("ann:0x{key}")),
        (format!("ann:0x{key}\u{e9}:zz"), format!("ann:0x{key}")),
    ] {
        let import = of(&user);
        let users: Vec<&str> = import.users.iter().map(|user| user.as_str()).collect();
        assert_eq!((users, outcome(&import, "user")), (vec!["bob:two", &expected], vec![Outcome::Same; 2]), "{user}");
        assert_eq!(turn(&import)["password_algorithms"].as_str(), Some("md5"), "{user}");
        let refused = import.rows_of(Outcome::Refused).count();
        assert!(refused == 0 && !format!("{:?}", import.rows).contains("1122"), "{:?}", import.rows);
    }
    for digits in [&key[1..], &key[..18], "", &key.replace('c', "g"), &key.replace("9900", "99\u{e9}")] {
        let import = of(&format!("ann:0x{digits}"));
        assert_eq!(
            (import.users.len(), outcome(&import, "user")),
            (1, vec![Outcome::Same, Outcome::Ignored]),
            "{digits}"
        );
        assert!(!turn(&import).contains_key("password_algorithms"), "{digits}");
        assert!(!format!("{:?}", import.rows).contains("1122"), "{:?}", import.rows);
    }
    let import = of(&format!("ann:0X{key}"));
    assert_eq!((import.users[1].as_str(), turn(&import).get("password_algorithms")), (&*format!("ann:0X{key}"), None));
}

#[test]
fn a_key_without_a_realm_is_refused() {
    let text = "user=ann:0x11223344556677889900aabbccddeeff\nuser=bob:0x00000000000000000000000000000000\n";
    let rows = refused(text);
    assert_eq!((rows.len(), rows[0].option.as_str(), rows[0].place.as_str()), (1, "realm", "default"), "{rows:?}");
    assert!(refused(&format!("realm=example.org\n{text}")).is_empty());
    assert!(refused("user=ann:one\n").is_empty());
}

#[test]
fn a_sqlite_database_has_users_or_secrets() {
    for (text, logins) in [
        ("lt-cred-mech\nuserdb=/var/lib/turn/turndb\n", "users"),
        ("lt-cred-mech\nuser=a:b\ndb=/var/lib/turn/turndb\n", "users"),
        ("use-auth-secret\nuserdb=/var/lib/turn/turndb\n", "secrets"),
        ("static-auth-secret=north\nlt-cred-mech\nuserdb=/var/lib/turn/turndb\n", "secrets"),
    ] {
        let import = import(text);
        let turn = turn(&import);
        let value = |key: &str| turn.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        assert_eq!(
            (value("database"), value("database_logins")),
            ("sqlite:/var/lib/turn/turndb".into(), logins.into())
        );
        assert!(import.rows_of(Outcome::Refused).next().is_none(), "{text}: {:?}", import.rows);
    }
    assert!(!turn(&import("stun-only\nuserdb=/x\n")).contains_key("database"));
}

#[test]
fn a_servers_password_is_kept_apart_and_masked() {
    for (text, database) in [
        (
            "psql-userdb=\"host=a dbname=turn user=u password=north connect_timeout=30\"",
            "postgres:host=a dbname=turn user=u connect_timeout=30",
        ),
        ("sql-userdb=postgresql://u:north@a/turn", "postgresql://u@a/turn"),
        ("redis-userdb=\"ip=10.0.0.1 dbname=2 password=north port=6380\"", "redis:ip=10.0.0.1 dbname=2 port=6380"),
    ] {
        let import = import(&format!("lt-cred-mech\n{text}\n"));
        assert_eq!(turn(&import)["database"].as_str(), Some(database));
        assert_eq!(import.database_password.as_ref().map(|password| password.as_str()), Some("north"));
        assert!(import.has_credentials && !import.to_toml(None).contains("north"));
        assert!(import.rows.iter().all(|row| !format!("{row:?}").contains("north")), "{:?}", import.rows);
        assert!(import.rows_of(Outcome::Refused).next().is_none(), "{:?}", import.rows);
    }
}

#[test]
fn messages_to_redis_have_a_key_and_a_password_apart() {
    let imported = import("redis-statsdb=\"ip=10.0.0.1 dbname=2 password=south port=6380\"\nuser=a:b\n");
    assert_eq!(turn(&imported)["stats_database"].as_str(), Some("redis:ip=10.0.0.1 dbname=2 port=6380"));
    assert_eq!(imported.stats_database_password.as_ref().map(|password| password.as_str()), Some("south"));
    assert_eq!(imported.database_password, None);
    assert!(imported.has_credentials && !imported.to_toml(None).contains("south"));
    let row = imported.rows.iter().find(|row| row.option == "redis-statsdb").unwrap();
    assert_eq!((row.outcome, row.keys.as_str()), (Outcome::Differs, "stats_database, stats_database_password_file"));
    assert!(!format!("{row:?}").contains("south"), "{row:?}");
    let both = import("lt-cred-mech\nredis-userdb=\"dbname=1 password=north\"\nredis-statsdb=\"dbname=2\"\n");
    assert_eq!(both.database_password.as_ref().map(|password| password.as_str()), Some("north"));
    assert_eq!((turn(&both)["stats_database"].as_str(), both.stats_database_password), (Some("redis:dbname=2"), None));
    assert!(!turn(&import("redis-statsdb=\"dbname 2\"\n")).contains_key("stats_database"));
}

#[test]
fn without_any_login_the_default_differs() {
    let import = import("realm=example.org\n");
    let row = import.rows.iter().find(|row| row.option == "no-auth").unwrap();
    assert_eq!((row.place.as_str(), row.outcome), ("default", Outcome::Differs));
}

#[test]
fn listeners_accept_what_those_of_coturn_accept() {
    let ports = "listening-ip=192.0.2.1\nlistening-port=3480\ntls-listening-port=5350\n";
    let files = "cert=c.pem\npkey=k.pem\n";
    let both = ["192.0.2.1:3480", "192.0.2.1:5350"];
    for (text, tcp, tls, no_tcp) in [
        (ports.to_owned(), &[][..], &[][..], false),
        (format!("{ports}{files}"), &both[..], &[], false),
        (format!("{ports}{files}no-tcp\n"), &[], &both[1..], true),
        (format!("{ports}{files}no-tls\n"), &[], &[], false),
        (format!("{ports}no-tcp\n"), &[], &[], true),
    ] {
        let turn = turn(&import(&text));
        assert_eq!(list(&turn, "listen"), ["192.0.2.1:3480"], "{text}");
        assert_eq!(
            (list(&turn, "listen_tcp"), list(&turn, "listen_tls")),
            (tcp.iter().map(ToString::to_string).collect(), tls.iter().map(ToString::to_string).collect()),
            "{text}"
        );
        assert_eq!(turn.contains_key("no_tcp"), no_tcp, "{text}");
    }
    let turn = turn(&import(""));
    assert_eq!(list(&turn, "listen"), ["0.0.0.0:3478", "[::]:3478"]);
}

#[test]
fn versions_and_suites_of_tls_have_their_keys_and_absent_suites_are_named() {
    let tls = |lines: &str| import(&format!("cert=a\npkey=b\n{lines}"));
    let named = "cipher-list=ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384\n";
    let cases: [(&str, Outcome, &[&str], &str); 5] = [
        (named, Outcome::Same, &["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"], ""),
        (
            "cipher-list=ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA\n",
            Outcome::Better,
            &["ECDHE-RSA-AES128-GCM-SHA256"],
            "AES256-SHA",
        ),
        ("cipher-list=DEFAULT\n", Outcome::Better, &[], "forward secrecy"),
        (
            "cipher-list=ECDHE+CHACHA20\n",
            Outcome::Better,
            &["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"],
            "forward secrecy",
        ),
        ("cipher-list=AES256-SHA:RC4-SHA\n", Outcome::Differs, &[], "AES256-SHA RC4-SHA"),
    ];
    for (lines, expected, suites, reason) in cases {
        let import = tls(lines);
        let row = import.rows.iter().find(|row| row.option == "cipher-list").unwrap();
        assert_eq!(
            (row.outcome, list(&turn(&import), "tls_ciphers")),
            (expected, suites.iter().map(ToString::to_string).collect()),
            "{lines}"
        );
        assert!(row.reason.contains(reason) && (reason.is_empty() == row.reason.is_empty()), "{row:?}");
    }
    let only_1_3 = tls("no-tlsv1_2\n");
    assert_eq!(outcome(&only_1_3, "no-tlsv1_2"), [Outcome::Same]);
    assert_eq!(turn(&only_1_3)["tls_version_min"].as_str(), Some("1.3"));
    assert!(!turn(&tls("no-tlsv1_2=off\n")).contains_key("tls_version_min"));
    // coturn gives the list to OpenSSL for TLS 1.2 and for TLS 1.3.
    let of_1_3 = "cipher-list=TLS_AES_256_GCM_SHA384:ECDHE-RSA-AES128-GCM-SHA256\n";
    for (list, expected) in
        [(named, Outcome::Ignored), ("cipher-list=HIGH\n", Outcome::Ignored), (of_1_3, Outcome::Differs)]
    {
        let both = tls(&format!("{list}no-tlsv1_2\n"));
        assert_eq!(outcome(&both, "cipher-list"), [expected], "{list}");
        assert!(!turn(&both).contains_key("tls_ciphers") && turn(&both).contains_key("tls_version_min"), "{list}");
    }
    let without = import(&format!("{named}no-tlsv1_2\n"));
    assert_eq!(
        (outcome(&without, "cipher-list"), outcome(&without, "no-tlsv1_2")),
        (vec![Outcome::Ignored], vec![Outcome::Ignored])
    );
}

#[test]
fn paths_are_relative_to_the_file() {
    let host = Host { has_ipv6: false, folder: Some("/etc/coturn".as_ref()) };
    let turn = turn(&coturn::import(coturn::lines("cert=c.pem\npkey=/k.pem\n"), &host));
    assert_eq!((turn["cert"].as_str(), turn["key"].as_str()), (Some("/etc/coturn/c.pem"), Some("/k.pem")));
}

#[test]
fn external_addresses_belong_to_their_relays() {
    for (text, relays, externals) in [
        ("external-ip=203.0.113.1", &[][..], &["203.0.113.1"][..]),
        ("external-ip=203.0.113.1/10.0.0.1", &["10.0.0.1"], &["203.0.113.1"]),
        (
            "relay-ip=10.0.0.1\nrelay-ip=10.0.0.2\nexternal-ip=203.0.113.2/10.0.0.2",
            &["10.0.0.1", "10.0.0.2"],
            &["10.0.0.1", "203.0.113.2"],
        ),
        (
            "relay-ip=10.0.0.1\nrelay-ip=fd00::1\nexternal-ip=2001:db8::1",
            &["10.0.0.1", "fd00::1"],
            &["10.0.0.1", "2001:db8::1"],
        ),
        ("listening-ip=10.0.0.1\nlistening-ip=fd00::1\nexternal-ip=203.0.113.1", &[], &["203.0.113.1", "fd00::1"]),
        (
            "external-ip=203.0.113.1\nexternal-ip=203.0.113.2\nexternal-ip=2001:db8::1",
            &[],
            &["203.0.113.1", "2001:db8::1"],
        ),
    ] {
        let turn = turn(&import(text));
        assert_eq!(
            (list(&turn, "relay_ip"), list(&turn, "external_ip")),
            (relays.iter().map(ToString::to_string).collect(), externals.iter().map(ToString::to_string).collect()),
            "{text}"
        );
    }
    // truetick's public addresses are in the order of its listeners.
    assert_eq!(list(&turn(&import("external-ip=2001:db8::1")), "listen"), ["[::]:3478", "0.0.0.0:3478"]);
}

#[test]
fn quotas_lifetimes_and_switches_have_their_keys() {
    let text = "user=a:b\nuser-quota=12 # streams\ntotal-quota=1200\nmax-bps=1000\nbps-capacity=5000\nmin-port=900\n\
                max-port=1000\nmax-allocate-lifetime=300\nstale-nonce=0\nfingerprint\nsoftware-attribute\n\
                rfc5766-channel-numbers\nrelay-threads=3\nprometheus\nprometheus-port=9000\nprometheus-address=127.0.0.1\n";
    let import = import(text);
    let document: toml::Table = import.to_toml(None).parse().unwrap();
    let expected: toml::Table = "[turn]\nlisten = [\"0.0.0.0:3478\", \"[::]:3478\"]\nrelay_ports = \"900-1000\"\n\
        relay_low_ports = true\nallocations_max = 1200\nlifetime_max_s = 300\nlifetime_s = 300\nnonce_lifetime_s = 3600\n\
        fingerprint_always = true\nsoftware = \"truetick\"\nrfc5766_channel_numbers = true\nworkers = 3\n\
        [turn.quotas]\nuser_allocations = 12\nuser_share_percent = 100\nuser_allocations_per_second = 0\n\
        allocation_bytes_per_second = 2000\nbytes_per_second = 10000\n[http]\nlisten = \"127.0.0.1:9000\"\n\
        metrics_names = \"coturn\"\n"
        .parse()
        .unwrap();
    assert_eq!(document, expected);
    assert_eq!(outcome(&import, "max-bps"), [Outcome::Differs]);
    assert_eq!(outcome(&import, "stale-nonce"), [Outcome::Better]);
}

#[test]
fn the_last_of_two_counts() {
    let import = import("user=a:b\nrealm=one\nrealm=two\n");
    assert_eq!(turn(&import)["realm"].as_str(), Some("two"));
    assert_eq!(outcome(&import, "realm"), [Outcome::Ignored, Outcome::Same]);
}

/// A file that leaves nothing open but what truetick opens, too.
#[test]
fn a_file_without_differences_does_not_change_behaviour() {
    let text = "use-auth-secret\nstatic-auth-secret=a\nno-tcp-relay\nno-multicast-peers\n\
                denied-peer-ip=0.0.0.0-255.255.255.255\n\
                denied-peer-ip=::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\nallowed-peer-ip=192.0.2.7\n";
    let import = import(text);
    let changing: Vec<_> =
        import.rows.iter().filter(|row| matches!(row.outcome, Outcome::Differs | Outcome::Refused)).collect();
    assert!(changing.is_empty() && !import.changes_behaviour(), "{changing:?}");
    assert!(self::import(&text.replace("no-tcp-relay\n", "")).changes_behaviour());
}

/// truetick allows IPv6's global unicast addresses by default, and of two ranges the smaller one counts.
#[test]
fn a_denial_of_all_of_ipv6_counts() {
    let all = "denied-peer-ip=::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n";
    let turn = turn(&import(&format!("{all}allowed-peer-ip=2001:db8::7\nallowed-peer-ip=2606:4700::1\n")));
    let mut policy = PeerPolicy::new();
    list(&turn, "allow_peer").iter().for_each(|range| policy.allow(range.parse::<PeerRange>().unwrap()));
    list(&turn, "deny_peer").iter().for_each(|range| policy.deny(range.parse::<PeerRange>().unwrap()));
    let is_allowed = |addr: &str| policy.decide(addr.parse().unwrap(), Ownership::Foreign) == PeerDecision::Allowed;
    assert!(is_allowed("[2001:db8::7]:9") && is_allowed("[2606:4700::1]:9"));
    for addr in ["[2606:4700::2]:9", "[2001:db8::8]:9", "[fd00::1]:9", "[::1]:9"] {
        assert!(!is_allowed(addr), "{addr}");
    }
}
