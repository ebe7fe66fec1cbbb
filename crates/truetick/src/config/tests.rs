use super::*;

fn refusal(text: &str) -> String {
    Config::parse(text).expect_err("refused").to_string()
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let message = refusal("[turn]\nrealm = \"a\"\nrelm = \"b\"\n");
    assert!(message.starts_with("line 3: unknown field `relm`"), "{message}");
}

#[test]
fn an_unknown_section_is_named_with_its_line() {
    let message = refusal("[http]\n\n[tern]\n");
    assert!(message.starts_with("line 3: unknown field `tern`"), "{message}");
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_line() {
    let message = refusal("[turn]\nworkers = \"two\"\n");
    assert!(message.starts_with("line 2: turn.workers: invalid type"), "{message}");
    let message = refusal("[turn]\n\nrelay_ports = \"9-3\"\n");
    assert_eq!(message, "line 3: turn.relay_ports: `9-3` is not a port range LOW-HIGH");
}

#[test]
fn sections_reach_their_fields() {
    let config = Config::parse(
        "[turn]\nlisten = [\"127.0.0.1:3478\"]\nrelay_ports = \"50000-50100\"\nallow_peer = [\"10.0.0.0/8\"]\n\
         [http]\nlisten = \"127.0.0.1:9641\"\n",
    )
    .expect("parses");
    assert_eq!(config.turn.relay_ports, Some(turn_server::PortRange { low: 50_000, high: 50_100 }));
    assert_eq!(config.turn.allow_peer, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(config.http.listen, Some("127.0.0.1:9641".parse().unwrap()));
}

#[test]
fn the_sample_file_is_a_configuration() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/truetick.toml");
    let config = Config::read(&path).expect("the sample parses");
    assert_eq!(config.turn.listen, ["127.0.0.1:3478".parse().unwrap()]);
    assert_eq!(config.http.listen, Some("127.0.0.1:9641".parse().unwrap()));
}

/// The sample with every key in force.
fn uncommented_sample() -> String {
    let sample = include_str!("../../../../deploy/truetick.toml");
    let is_toml =
        |line: &&str| line.starts_with("[[") || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let lines = sample.lines().map(|line| line.strip_prefix("# ").filter(is_toml).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_key_of_the_sample_file_is_known() {
    let mut config = Config::parse(&uncommented_sample()).expect("the commented keys parse too");
    let both = config.market.feeds().expect_err("the addresses are given twice");
    assert!(format!("{both:#}").contains("region and url exclude each other"), "{both:#}");
    config.market.feeds[0].region = None;
    let missing = config.market.feeds().expect_err("the account's file is the operator's own");
    assert!(format!("{missing:#}").contains("/etc/truetick/binance.toml"), "{missing:#}");
    config.market.feeds[0].account_file = None;
    let level3 = config.market.feeds().expect_err("the sample's venue sends no single orders");
    assert!(format!("{level3:#}").contains("sends no single orders"), "{level3:#}");
    config.market.feeds[0].level3 = false;
    let feeds = config.market.feeds().expect("the feed is one");
    assert!(feeds.len() == 1 && feeds[0].rpi);
}

#[test]
fn every_known_key_is_in_the_operators_manual() {
    let manual = include_str!("../../../../docs/turn-operators.md");
    for section in ["[turn]", "[turn.streams]", "[turn.quotas]", "[[turn.realms]]", "[http]"] {
        let message = refusal(&format!("{section}\nno_such_key = 1\n"));
        for key in message.split('`').skip(3).step_by(2).filter(|key| !["streams", "quotas"].contains(key)) {
            assert!(manual.contains(&format!("`{key}`")), "{section} {key} is missing in the manual");
        }
    }
}

#[test]
fn every_known_key_is_in_the_sample_file() {
    let sample = uncommented_sample();
    let feed = "venue = \"kraken\"\nsymbols = []\n";
    for (section, rest) in [
        ("[turn]", ""),
        ("[turn.quotas]", ""),
        ("[turn.streams]", ""),
        ("[[turn.realms]]", ""),
        ("[risk]", ""),
        ("[http]", ""),
        ("[[market.feeds]]", feed),
    ] {
        let message = refusal(&format!("{section}\nno_such_key = 1\n{rest}"));
        let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
        assert!(!known.is_empty(), "{message}");
        // Deprecated aliases are in the manual only.
        for key in known.into_iter().filter(|key| *key != "linger_us") {
            let is_there = sample.contains(&format!("\n{key} = "))
                || sample.contains(&format!(".{key}]\n"))
                || sample.contains(&format!(".{key}]]\n"));
            assert!(is_there, "{section} {key} is missing in the sample");
        }
    }
}
