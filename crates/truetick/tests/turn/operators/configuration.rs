//! `--check-config` and `--print-config`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use testkit::turn_client::{ALLOCATE, FINGERPRINT, LIFETIME, REFRESH, REQUESTED_TRANSPORT, SOFTWARE};

use super::operated::{Operated, wait};

fn truetick(arguments: &[&str]) -> Output {
    Command::new(crate::server::program()).args(arguments).output().unwrap()
}

fn written(folder: &Path, name: &str, text: &str, mode: u32) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What `turn` says of a configuration that it does not start with, without the program's name; the same with
/// `--check-config`, with `--print-config`, and where it would serve.
fn refusal(config: &str) -> String {
    let message = ["--check-config", "--print-config", "--rfc5766-channel-numbers"].map(|flag| {
        let output = truetick(&["turn", "--config", config, flag]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{flag}: {message}");
        assert_eq!(output.stdout, b"", "{flag} printed although it failed");
        message.trim_end().strip_prefix("truetick: ").unwrap().to_owned()
    });
    assert!(message.iter().all(|line| *line == message[0]), "{message:?}");
    message[0].clone()
}

/// A82: nothing that makes no sense is started with, and file, line and key are named.
#[test]
fn case_a82_a_bad_value_names_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let loose = written(folder.path(), "loose", "ann:secret-of-ann\n", 0o640);
    let wrong = written(folder.path(), "wrong", "ann:secret-of-ann\n\nbob\n", 0o600);
    let loose_line = format!("user_file = [\"{loose}\"]");
    let wrong_line = format!("user_file = [\n  \"{wrong}\"\n]");
    let loose_error = format!("turn.user_file: {loose} holds secrets and others than its owner may use it (mode 640)");
    let wrong_error = format!("turn.user_file: {wrong}, line 3: a user must be NAME:PASSWORD");
    let cases = [
        ("listen = [\"127.0.0.1:65536\"]", 0, "turn.listen: invalid socket address"),
        ("listen = [\"127.0.0.1:-1\"]", 0, "turn.listen: invalid socket address"),
        ("listen = [\"127.0.0.1:abc\"]", 0, "turn.listen: invalid socket address"),
        ("listen = [\n\"127.0.0.1:1\",\n\"127.0.0.1\"]", 2, "turn.listen: invalid socket address"),
        ("relay_ports = \"50000-49999\"", 0, "turn.relay_ports: `50000-49999` is not a port range"),
        ("relay_ports = \"1-65536\"", 0, "turn.relay_ports: `1-65536` is not a port range"),
        ("relay_ports = \"-1-5\"", 0, "turn.relay_ports: `-1-5` is not a port range"),
        ("allow_peer = [\"10.0.0.0/33\"]", 0, "turn.allow_peer: `10.0.0.0/33`: no prefix length"),
        ("deny_peer = [\"ten/8\"]", 0, "turn.deny_peer: `ten/8`: not an IP address"),
        ("workers = -1", 0, "turn.workers: invalid value"),
        ("workers = 0", 0, "turn.workers must be from 1 to 256"),
        ("realm = \"\"", 0, "turn.realm must have from 1 to 127 characters"),
        ("relay_ip = [\"127.0.0.1\", \"0.0.0.0\"]", 0, "turn.relay_ip 0.0.0.0 is not an address"),
        ("relay_ip = [\"127.0.0.1\"]\nexternal_ip = [\"::1\"]", 1, "turn.external_ip ::1 and relay address"),
        ("relms = \"a\"", 0, "unknown field `relms`"),
        ("realm = ", 0, "string values must be quoted"),
        ("user = [\"ann\"]", 0, "turn.user: a user must be NAME:PASSWORD"),
        (&loose_line, 0, loose_error.as_str()),
        (&wrong_line, 1, wrong_error.as_str()),
    ];
    for (lines, offset, expected) in cases {
        let text = format!("# a comment\n\n[turn]\n{lines}\n[http]\n");
        let config = written(folder.path(), "truetick.toml", &text, 0o600);
        let message = refusal(&config);
        let expected = format!("{config}, line {}: {expected}", 4 + offset);
        assert!(
            message.starts_with(&expected) && !message.contains("secret-of-ann"),
            "{lines}: {message}\nnot {expected}"
        );
    }
}

#[test]
fn a_valid_configuration_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[turn]\nlisten = [\"127.0.0.1:0\"]\nuser = [\"ann:secret\"]\n";
    let config = written(folder.path(), "truetick.toml", text, 0o600);
    for command in ["turn", "serve"] {
        let output = truetick(&[command, "--config", &config, "--check-config"]);
        assert!(output.status.success(), "{output:?}");
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.ends_with("the configuration is valid\n") && output.stderr.is_empty(), "{shown}");
        assert_eq!(
            shown.contains("peers 10.0.0.0-10.255.255.255: deny (deny 10.0.0.0/8 (built-in))\n"),
            command == "turn"
        );
        assert!(!shown.contains("warning"), "{shown}");
    }
}

#[test]
fn rfc_r088_relay_ports_below_1024_need_consent() {
    for (ports, is_low) in [("1-65535", true), ("600-1000", true), ("1023-1023", true), ("1024-1025", false)] {
        let flags = ["turn", "--listen", "127.0.0.1:0", "--print-config", "--relay-ports", ports];
        let refused = truetick(&flags);
        assert_eq!(refused.status.success(), !is_low, "{ports}");
        let line = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(line.contains("--relay-ports: ports below 1024"), is_low, "{line}");
        assert!(truetick(&[&flags[..], &["--relay-low-ports"]].concat()).status.success(), "{ports}");
    }
}

#[test]
fn overlapping_peer_rules_are_shown_as_they_count() {
    let rules = "--allow-peer 10.0.0.0/8 --deny-peer 10.0.0.5/32 --deny-peer 8.8.0.0/16 --allow-peer 8.8.8.8/32 \
                 --deny-peer 9.0.0.0/8:0-1023 --allow-peer 9.0.0.0/8:80 --allow-own-host 127.0.0.1-127.0.0.9:5000 \
                 --deny-peer 127.0.0.9";
    let show = |flag| {
        let flags: Vec<_> = ["turn", "--listen", "127.0.0.1:0", flag].into_iter().chain(rules.split(' ')).collect();
        let output = truetick(&flags);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (shown, printed) = (show("--check-config"), show("--print-config"));
    for line in [
        "peers 10.0.0.0-10.0.0.4: allow (allow 10.0.0.0/8)",
        "peers 10.0.0.5-10.0.0.5: deny (deny 10.0.0.5/32)",
        "peers 10.0.0.6-10.255.255.255: allow (allow 10.0.0.0/8)",
        "peers 8.8.8.8-8.8.8.8: allow (allow 8.8.8.8/32)",
        "peers 8.8.8.9-8.8.255.255: deny (deny 8.8.0.0/16)",
        "peers 2000::-2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff: allow (allow 2000::/3)",
        "peers 9.0.0.0-9.255.255.255 ports 0-79: deny (deny 9.0.0.0/8:0-1023)",
        "peers 9.0.0.0-9.255.255.255 ports 80-80: allow (allow 9.0.0.0/8:80)",
        "peers 9.0.0.0-9.255.255.255 ports 1024-65535: allow",
        "own host 127.0.0.1-127.0.0.8 ports 5000-5000: allow (allow 127.0.0.1-127.0.0.9:5000)",
        "own host 127.0.0.9-127.0.0.9: deny (deny 127.0.0.9/32)",
        "own host 127.0.0.10-127.255.255.255: deny (deny own host)",
        "warning: allow_peer 9.0.0.0/8:80 counts inside of deny_peer 9.0.0.0/8:0-1023",
        "warning: deny_peer 127.0.0.9/32 counts inside of allow_own_host 127.0.0.1-127.0.0.9:5000",
        "warning: deny_peer 10.0.0.5/32 counts inside of allow_peer 10.0.0.0/8",
        "warning: allow_peer 8.8.8.8/32 counts inside of deny_peer 8.8.0.0/16",
    ] {
        assert!(shown.lines().any(|row| row == line), "{line}: {shown}");
        let comment = format!("# {line}");
        assert!(printed.lines().any(|row| row == comment), "{line}: {printed}");
    }
}

/// The sample with every key in force, and files that exist in the place of those that it names.
fn whole_sample(folder: &Path) -> String {
    let users = written(folder, "users", "bob:secret-of-bob\n", 0o600);
    let secrets = written(folder, "secrets", "secret-of-all\n", 0o600);
    let nonce_keys = written(folder, "nonce-keys", &"5e".repeat(32), 0o600);
    let token = written(folder, "token", "secret-of-api\n", 0o600);
    let is_toml =
        |line: &&str| line.starts_with("[[") || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let sample = include_str!("../../../../../deploy/truetick.toml");
    let lines = sample.lines().map(|line| line.strip_prefix("# ").filter(is_toml).unwrap_or(line));
    // It contradicts `listen_tcp`.
    let text = lines.collect::<Vec<_>>().join("\n").replace("no_tcp = true", "no_tcp = false");
    // A database has MD5 keys, and SQLite has no password.
    let text = text.replace("\"md5-and-sha256\"", "\"md5\"").replace("sqlite:/var/lib/turn/turndb", "redis:dbname=2");
    let database_password = written(folder, "database-password", "secret-of-database\n", 0o600);
    text.replace("demo:demo", "demo:secret-of-demo")
        .replace("database-password.txt", &database_password)
        .replace("192.0.2.2:3478", "127.0.0.1:3478")
        .replace("users-of-customer.txt", &users)
        .replace("secrets-of-customer.txt", &secrets)
        .replace("users.txt", &users)
        .replace("secrets.txt", &secrets)
        .replace("nonce-keys.txt", &nonce_keys)
        .replace("api-token.txt", &token)
}

#[test]
fn the_printed_configuration_is_the_one_in_force_and_leads_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let sample = whole_sample(folder.path());
    let config = written(folder.path(), "truetick.toml", &sample, 0o600);
    let print = |config: &str, flags: &[&str]| {
        let output = truetick(&[&["turn", "--config", config, "--print-config"], flags].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = print(&config, &[]);
    assert!(!printed.contains("secret-of"), "{printed}");
    let (mut given, shown): (toml::Table, toml::Table) = (sample.parse().unwrap(), printed.parse().unwrap());
    given["turn"]["user"] = toml::Value::Array(vec!["demo:<masked>".into()]);
    given["turn"]["realms"][0]["user"] = given["turn"]["user"].clone();
    for (section, keys) in &given {
        let Some(keys) = keys.as_table() else { continue };
        for (key, value) in keys {
            assert_eq!(shown[section].get(key), Some(value), "[{section}] {key}");
        }
    }
    let again = written(folder.path(), "again.toml", &printed, 0o600);
    assert_eq!(print(&again, &[]), printed);
    let flagged = print(&again, &["--realm", "flagged", "--http", "127.0.0.1:1"]);
    assert!(flagged.contains("realm = \"flagged\"") && flagged.contains("listen = \"127.0.0.1:1\""), "{flagged}");
    // A mask is nobody's password.
    assert!(refusal_of_start(&again).contains("the password is masked"));
}

fn refusal_of_start(config: &str) -> String {
    let output = truetick(&["turn", "--config", config]);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_samples_for_other_servers_are_configurations() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples");
    let manual = include_str!("../../../../../docs/turn-operators.md");
    let names: Vec<_> =
        fs::read_dir(&samples).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let (secrets, users) = ("a-secret\n", "livekit:a-password\n");
    let files =
        [("secrets", secrets), ("users", users), ("api-token", secrets), ("fullchain.pem", ""), ("privkey.pem", "")];
    for (name, text) in files {
        written(folder.path(), name, text, 0o600);
    }
    let certified = rcgen::generate_simple_self_signed(["turn.example.org".to_owned()]).unwrap();
    written(folder.path(), "fullchain.pem", &certified.cert.pem(), 0o600);
    written(folder.path(), "privkey.pem", &certified.signing_key.serialize_pem(), 0o600);
    for name in names {
        assert!(manual.contains(&format!("deploy/samples/{name}")), "{name}");
        let text = fs::read_to_string(samples.join(&name)).unwrap();
        let text = text.replace("/etc/truetick", folder.path().to_str().unwrap());
        let config = written(folder.path(), &name, &text, 0o600);
        // On addresses that every machine has; under the unit they are started as they are.
        let here = "--listen 127.0.0.1:0 --listen-tls 127.0.0.1:0 --relay-ip 127.0.0.1 --http 127.0.0.1:0";
        let flags = ["turn", "--config", &config, "--check-config"].into_iter().chain(here.split(' '));
        let output = truetick(&flags.collect::<Vec<_>>());
        assert!(output.status.success(), "{name}: {output:?}");
    }
    // A certificate that cannot be used is found before a restart, too.
    written(folder.path(), "privkey.pem", "no key\n", 0o600);
    let config = folder.path().join("synapse.toml");
    let config = config.to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0", "--relay-ip", "127.0.0.1"];
    let output = truetick(&[&["turn", "--config", config, "--check-config"][..], &listen].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("privkey.pem"));
}

#[test]
fn defaults_are_printed_too() {
    let output = truetick(&["turn", "--listen", "127.0.0.1:3478", "--print-config"]);
    let shown: toml::Table = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    let turn = &shown["turn"];
    assert_eq!(turn["relay_ip"].as_array().unwrap()[0].as_str(), Some("127.0.0.1"));
    assert_eq!((turn["realm"].as_str(), turn["relay_ports"].as_str()), (Some("truetick"), Some("49152-65535")));
    assert!(turn["workers"].as_integer().unwrap() >= 1);
}

/// RFC 8656 section 7.2, RFC 8489 sections 14.7 and 14.14.
#[test]
fn responses_carry_what_the_configuration_names() {
    let keys = "software = \"Relay 19\"\nfingerprint_always = true\nlifetime_s = 120\nlifetime_max_s = 200\n\
                nonce_lifetime_s = 1";
    for (keys, software, has_fingerprint, lifetimes) in
        [("", None, false, [600, 3_600]), (keys, Some(&b"Relay 19"[..]), true, [120, 200])]
    {
        let server = Operated::start(keys, &[]);
        let mut client = server.client("ann");
        let response = client.binding_response();
        let carried = (response.bytes(SOFTWARE), response.bytes(FINGERPRINT).is_some());
        assert_eq!(carried, (software, has_fingerprint), "{keys}");
        let response = client.request(ALLOCATE, vec![(REQUESTED_TRANSPORT, vec![17, 0, 0, 0])]);
        assert_eq!((response.code, response.bytes(LIFETIME)), (0, Some(&u32::to_be_bytes(lifetimes[0])[..])));
        let mut longest = || client.request(REFRESH, vec![(LIFETIME, 1_000_000_u32.to_be_bytes().to_vec())]);
        let response = longest();
        assert_eq!((response.code, response.bytes(LIFETIME)), (0, Some(&u32::to_be_bytes(lifetimes[1])[..])));
        if !keys.is_empty() {
            wait("the nonce is stale", || longest().code == 438);
        }
    }
}
