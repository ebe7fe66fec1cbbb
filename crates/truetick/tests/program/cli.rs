//! The command line from outside: every failure names its cause on standard error and has its exit status.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

const COMMANDS: &[&str] = &[
    "serve",
    "up",
    "demo",
    "turn",
    "import",
    "credential",
    "check",
    "conform",
    "stun",
    "market",
    "doctor",
    "risk",
    "simulate",
    "record",
    "replay",
    "audit",
    "floor",
    "why",
    "bench",
];

fn truetick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truetick")).args(arguments).output().expect("the binary starts")
}

/// Returns the error of `arguments` that clap rejects: the message, then usage and suggestions.
fn usage_error(arguments: &[&str]) -> String {
    let output = truetick(arguments);
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(output.stdout, b"", "{arguments:?} printed although it failed");
    assert!(error.starts_with("error: ") && error.contains("--help"), "{arguments:?}: {error}");
    error
}

/// Returns the one line that `arguments` fail with, without the program's name.
fn refusal(arguments: &[&str], status: i32) -> String {
    let output = truetick(arguments);
    let output_text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output_text}");
    assert_eq!(output_text.lines().count(), 1, "{arguments:?}: {output_text}");
    assert_eq!(output.stdout, b"", "{arguments:?} printed although it failed");
    output_text.trim_end().strip_prefix("truetick: ").expect("the line begins with the program's name").to_owned()
}

fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("truetick.toml");
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn every_command_explains_itself() {
    let overview = String::from_utf8(truetick(&["--help"]).stdout).expect("UTF-8");
    // `gate` and `paths` need one of their commands.
    for command in COMMANDS.iter().chain(&["gate", "paths"]) {
        assert!(overview.contains(&format!("\n  {command} ")), "{command} is missing in\n{overview}");
        let output = truetick(&[command, "--help"]);
        let help = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success() && help.contains(&format!("Usage: truetick {command}")), "{help}");
    }
    let listed = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A long explanation goes on below, further in.
    let listed = listed.filter(|line| !line.starts_with("   "));
    assert_eq!(
        listed.count(),
        COMMANDS.len() + 5,
        "only `gate`, `paths`, `completions`, `man` and `help` in addition to the known commands\n{overview}"
    );
}

#[test]
fn version_is_the_packages() {
    let output = truetick(&["--version"]);
    assert_eq!(output.stdout, format!("truetick {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
fn arguments_without_sense_are_refused_with_status_2() {
    let output = truetick(&[]);
    let help = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.code() == Some(2) && help.contains("\nCommands:\n"), "{help}");
    let error = usage_error(&["trun"]);
    assert!(error.contains("'trun'") && error.contains("similar subcommands exist: 'stun', 'turn'"), "{error}");
    let error = usage_error(&["turn", "--liste", "127.0.0.1:0"]);
    assert!(error.contains("similar argument exists: '--listen'"), "{error}");
    for command in COMMANDS {
        assert!(usage_error(&[command, "--no-such-flag"]).contains("'--no-such-flag'"));
    }
    assert!(usage_error(&["--log-level", "loud", "serve"]).contains("'loud'"));
}

#[test]
fn a_venue_is_known_in_any_case_and_the_start_of_its_name_is_a_tip() {
    for command in ["market", "doctor", "up", "record", "audit"] {
        let error = usage_error(&[command, "--venue", "Coinbase"]);
        assert!(error.contains("did you mean coinbase-exchange or coinbase-advanced? possible values: "), "{error}");
        let error = usage_error(&[command, "--venue", "mtgox"]);
        assert!(!error.contains("did you mean") && error.contains("possible values: binance-spot, "), "{error}");
    }
    let output = truetick(&["audit", "--venue", "Binance_Spot", "no/such/recording"]);
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(error, "truetick: no/such/recording: cannot read the recording: no such file or directory\n");
    let recording = tempfile::NamedTempFile::new().expect("a file");
    let path = recording.path().to_str().expect("UTF-8");
    let output = truetick(&["record", "--venue", "kraken", "--seconds", "1", "--out", path]);
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(error, format!("truetick: {path}: the recording exists already\n"));
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    for command in COMMANDS {
        let wanted: &[&str] = match *command {
            "record" => &["--out", "no/such/folder/recording"],
            "replay" | "audit" => &["no/such/recording"],
            "doctor" => &["--venue", "kraken"],
            "up" => &["--simulated"],
            "import" => &["no/such/turnserver.conf"],
            "credential" => &["--secret-file", "no/such/secret", "--user", "ann"],
            "check" | "conform" => &["turn:127.0.0.1"],
            "stun" => &["127.0.0.1"],
            _ => &[],
        };
        let output_text = refusal(&[&["--config", "no/such/file.toml", command], wanted].concat(), 1);
        assert!(output_text.starts_with("cannot read no/such/file.toml: "), "{output_text}");
    }
}

#[test]
fn an_unknown_key_is_named_with_file_and_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path(), "[turn]\nrealm = \"example.org\"\nrelms = \"example.org\"\n");
    let output_text = refusal(&["serve", "--config", &path], 1);
    assert!(output_text.starts_with(&format!("{path}, line 3: unknown field `relms`")), "{output_text}");
}

#[test]
fn what_is_not_toml_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path(), "[turn]\nrealm = \n");
    let output_text = refusal(&["turn", "--config", &path], 1);
    assert!(output_text.starts_with(&format!("{path}, line 2: ")), "{output_text}");
}

/// A server that the test started; it does not outlive the test.
struct Running {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts the program and reads its output up to a line that begins with `until`.
    fn start(arguments: &[&str], until: &str) -> (Self, Vec<String>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let printed = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut running = Self { child, printed };
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.starts_with(until)) {
            lines.push(running.printed.next().expect("it is ready before it ends").expect("UTF-8"));
        }
        (running, lines)
    }

    /// Sends `signal` and waits for the end.
    fn end_by(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const QUIET: [&str; 2] = ["--log-level", "error"];

#[test]
fn signals_end_a_server_with_status_0() {
    for signal in ["TERM", "INT"] {
        let turn = ["turn", "--listen", "127.0.0.1:0", "--workers", "2", "--relay-ports", "49152-49251"];
        let (running, lines) = Running::start(&[&QUIET[..], &turn].concat(), "ready");
        assert!(lines[0].starts_with("listening on udp 127.0.0.1:"), "{lines:?}");
        assert_eq!(running.end_by(signal).code(), Some(0), "turn, {signal}");
        let (running, lines) = Running::start(&["simulate", "--instruments", "1"], "kraken");
        assert_eq!(lines.len(), 3, "one line a venue: {lines:?}");
        assert_eq!(running.end_by(signal).code(), Some(0), "simulate, {signal}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let turn = ["turn", "--listen", "127.0.0.1:0", "--relay-ports", "49152-49251"];
    for (arguments, until) in [(&turn[..], "ready"), (&["simulate", "--instruments", "1"][..], "kraken")] {
        let (reader, writer) = std::io::pipe().expect("pipe");
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        let child = command.args(QUIET).args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().expect("starts");
        // The command holds the pipe's other end as well.
        drop(command);
        let mut printed = BufReader::new(reader).lines();
        let is_last = |line: &String| line.starts_with(until);
        assert!(printed.by_ref().map_while(Result::ok).any(|line| is_last(&line)), "{arguments:?}");
        drop(printed);
        let sent = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(0), &b""[..]), "{arguments:?}");
    }
    // The discard port is closed: the command prints at once, and its output is closed.
    let (reader, writer) = std::io::pipe().expect("pipe");
    drop(reader);
    let mut market = Command::new(env!("CARGO_BIN_EXE_truetick"));
    market.args(["market", "--venue", "kraken", "--symbols", "BTC/USD", "--url", "ws://127.0.0.1:9/v2"]);
    let ended = market.stdout(writer).output().expect("it ends");
    assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    let addr = taken.local_addr().expect("bound").to_string();
    let output_text = refusal(&[&QUIET[..], &["turn", "--listen", &addr]].concat(), 1);
    assert!(output_text.contains(&addr) && output_text.contains("in use"), "{output_text}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let addr = taken.local_addr().expect("bound").to_string();
    let output_text = refusal(&[&QUIET[..], &["turn", "--listen", "127.0.0.1:0", "--http", &addr]].concat(), 1);
    assert!(output_text.contains(&addr) && output_text.contains("in use"), "{output_text}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    for flag in ["--user-file", "--auth-secret-file"] {
        let output_text =
            refusal(&[&QUIET[..], &["turn", "--listen", "127.0.0.1:0", flag, "no/such/file"]].concat(), 1);
        assert!(output_text.contains("no/such/file"), "{output_text}");
    }
    let output_text = refusal(&["risk", "--limits", "no/such/file"], 1);
    assert!(output_text.contains("no/such/file"), "{output_text}");
}

#[test]
fn a_feed_without_a_venue_is_refused() {
    assert!(refusal(&["market"], 1).contains("--venue"));
}

#[test]
fn feeds_of_the_flags_and_of_the_configuration_are_not_mixed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(folder.path(), "[[market.feeds]]\nvenue = \"kraken\"\nsymbols = [\"BTC/USD\"]\n");
    let error = refusal(&["--config", &path, "market", "--venue", "okx", "--symbols", "BTC-USDT"], 1);
    assert_eq!(error, "--venue and [[market.feeds]] of --config: leave one of them out");
}

#[test]
fn values_without_sense_are_refused_with_status_2() {
    for (flag, value) in [("--listen", "here"), ("--relay-ports", "9-3"), ("--allow-peer", "10.0.0.0/33")] {
        assert!(usage_error(&["turn", flag, value]).contains(value));
    }
    for (command, cpus) in [("why", "1"), ("why", "1,1"), ("bench", "1,x"), ("bench", "0,1,2")] {
        assert!(usage_error(&[command, "--cpus", cpus]).contains("two different CPUs are needed"), "{cpus}");
    }
    // The form that the manual names is read: what fails is the row.
    let error = refusal(&["bench", "turn", "--row", "no such row", "--cpus", "0,1"], 1);
    assert!(error.contains("no such row"), "{error}");
}

/// bash itself completes a command that begins like one of ours.
#[test]
fn the_shell_completes_commands() {
    let completions = truetick(&["completions", "bash"]);
    assert!(completions.status.success());
    let script = String::from_utf8(completions.stdout).expect("UTF-8");
    let ask = "COMP_WORDS=(truetick ma); COMP_CWORD=1; _truetick truetick ma truetick; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).output().expect("bash starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "market man", "{output:?}");
    for shell in ["zsh", "fish"] {
        let script = String::from_utf8(truetick(&["completions", shell]).stdout).expect("UTF-8");
        assert!(script.contains("rehearse") && script.contains("listen-tls"), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = truetick(&["man", "--out", folder.path().to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    for command in COMMANDS {
        let text = page(&format!("truetick-{command}.1"));
        assert!(text.contains(&format!("\n.TH truetick-{command} 1 ")), "{command}: {text}");
        assert!(text.contains(".SH OPTIONS") && text.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(page("truetick-gate-load.1").contains("limits") && page("truetick.1").contains("truetick\\-turn(1)"));
}

#[test]
fn the_build_is_printed_on_request() {
    let version = String::from_utf8(truetick(&["--version"]).stdout).expect("UTF-8");
    let verbose = String::from_utf8(truetick(&["--version", "--verbose"]).stdout).expect("UTF-8");
    assert!(verbose.starts_with(version.trim_end()) && version.lines().count() == 1, "{version}{verbose}");
    for name in ["commit: ", "compiler: rustc ", "features: turn, market, risk, bench, simulate", "CRC-32: "] {
        assert!(verbose.lines().any(|line| line.starts_with(name)), "{name}: {verbose}");
    }
    assert!(usage_error(&["--verbose", "serve"]).contains("--verbose"));
}
