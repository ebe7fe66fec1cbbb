//! `truetick gate` and the journal of `truetick risk`, from outside: kills, full disks, restarts, explanations.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use testkit::{Requirement, require};

const LIMITS: &str = include_str!("../../../../deploy/limits.toml");

fn truetick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truetick")).args(["--log-level", "off"]).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with limits, a configuration with small segments, and a journal.
struct Place {
    folder: tempfile::TempDir,
    journal: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        Self::with(folder, journal)
    }

    fn with(folder: tempfile::TempDir, journal: PathBuf) -> Self {
        let of = |line: &str| match line.split_once("rate = { ") {
            Some((key, "per_second = 2, burst = 2 }")) => {
                format!("{key}rate = {{ per_second = 1000, burst = 9000 }}\n")
            }
            Some((key, _)) => format!("{key}rate = {{ per_second = 100000, burst = 100000 }}\n"),
            None => format!("{line}\n"),
        };
        let limits: String = LIMITS.replace("id_window_ms = 600000", "id_window_ms = 10000").lines().map(of).collect();
        fs::write(folder.path().join("limits.toml"), limits).unwrap();
        fs::write(folder.path().join("truetick.toml"), "[risk]\njournal_segment_bytes = 16384\n").unwrap();
        Self { folder, journal }
    }

    fn journal(&self) -> &str {
        self.journal.to_str().unwrap()
    }

    /// Starts `truetick risk` on this journal, with events from the test.
    fn start(&self, flags: &[&str]) -> Gate {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        command.current_dir(self.folder.path()).args(["--log-level", "off", "--config", "truetick.toml", "risk"]);
        command.args(["--limits", "limits.toml", "--json", "--journal", self.journal()]).args(flags);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let rows = BufReader::new(child.stdout.take().unwrap()).lines();
        let events = child.stdin.take();
        Gate { child, events, rows }
    }

    fn export(&self) -> Vec<Vec<String>> {
        let text = text(&truetick(&["gate", "export", self.journal()]));
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    fn replay(&self) -> String {
        text(&truetick(&["gate", "replay", self.journal()]))
    }
}

/// A running `truetick risk`.
struct Gate {
    child: Child,
    events: Option<ChildStdin>,
    rows: Lines<BufReader<ChildStdout>>,
}

impl Gate {
    fn send(&mut self, event: &str) {
        writeln!(self.events.as_mut().unwrap(), "{event}").unwrap();
    }

    fn row(&mut self) -> Value {
        self.rows.next().expect("the gate runs").unwrap().parse().unwrap()
    }

    /// Sends an event and returns what its row says: the reasons, the outcome, or the differences.
    fn ask(&mut self, event: &str) -> String {
        self.send(event);
        said(&self.row())
    }

    fn finish(mut self) {
        self.events = None;
        assert!(self.child.wait().unwrap().success());
    }

    /// SIGKILL, then every row that was printed before.
    fn kill(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.rows.filter_map(|row| row.unwrap().parse().ok()).collect()
    }
}

fn said(row: &Value) -> String {
    let list = |key: &str| {
        let names = row[key].as_array()?.iter().filter_map(Value::as_str);
        Some(names.collect::<Vec<_>>().join(" "))
    };
    let outcome = || row["outcome"].as_str().map(str::to_owned);
    list("reasons").or_else(|| list("differences")).or_else(outcome).unwrap_or_default()
}

fn mark(at_ms: u64) -> String {
    format!(
        r#"{{"at_ms":{at_ms},"mark":{{"symbol":"BTC/USDT","px":"60000","bid":"59999.9","ask":"60000.1","is_verified":true}}}}"#
    )
}

fn order(at_ms: u64, client_id: u64, px: u64) -> String {
    format!(
        r#"{{"at_ms":{at_ms},"intent":{{"client_id":{client_id},"symbol":"BTC/USDT","side":"buy","px":"{px}","qty":"0.001"}}}}"#
    )
}

fn cancel(at_ms: u64, client_id: u64) -> String {
    format!(r#"{{"at_ms":{at_ms},"intent":{{"kind":"cancel","client_id":{client_id},"symbol":"BTC/USDT"}}}}"#)
}

fn rejected(at_ms: u64, client_id: u64) -> String {
    format!(r#"{{"at_ms":{at_ms},"report":{{"kind":"rejected","client_id":{client_id},"symbol":"BTC/USDT"}}}}"#)
}

/// The columns of an exported row that a printed verdict has too.
fn verdict_of(row: &[String]) -> Option<(String, String, String)> {
    (row[2] == "intent").then(|| (row[15].clone(), row[8].clone(), row[17].clone()))
}

/// A gate is killed after every number of verdicts, and in the middle of a flood. What it has printed is in the journal,
/// in order; each next gate continues behind it; and a replay of all of them gives every verdict bit for bit.
#[test]
fn what_was_printed_is_in_the_journal_after_kill_9() {
    let place = Place::new();
    let (mut printed, mut at_ms, mut client_id) = (Vec::new(), 0, 0);
    let mut last: Option<u64> = None;
    for kill in 1..25 {
        let mut gate = place.start(if kill % 6 == 5 { &["--durable"] } else { &[] });
        at_ms += 1;
        gate.send(&format!(r#"{{"at_ms":{at_ms},"adopt":0}}"#));
        gate.send(&mark(at_ms));
        // The kill may have come between an order and its report: it would stay open, and so would that of every such kill.
        if let Some(last) = last {
            gate.send(&rejected(at_ms, last));
        }
        let flood = if kill % 2 == 0 { 0 } else { 120 };
        for _ in 0..kill + flood {
            client_id += 1;
            gate.send(&order(at_ms, client_id, 59_400 + client_id % 500));
            gate.send(&rejected(at_ms, client_id));
        }
        // Of a flood, nothing more is read: the kill is anywhere in it.
        let mut rows: Vec<_> = (0..2 * kill).map(|_| gate.row()).collect();
        rows.extend(gate.kill());
        printed.extend(rows.into_iter().filter(|row| row["seq"].is_u64()));
        let exported: Vec<_> = place.export().iter().filter_map(|row| verdict_of(row)).collect();
        assert!(exported.len() >= printed.len(), "{} printed, {} in the journal", printed.len(), exported.len());
        for (row, (seq, client_id, reasons)) in printed.iter().zip(&exported) {
            let expected = (row["seq"].to_string(), row["client_id"].to_string(), said(row));
            assert_eq!((seq.clone(), client_id.clone(), reasons.clone()), expected);
        }
        last = exported.last().map(|(_, client_id, _)| client_id.parse().unwrap());
        // Verdicts that were not printed are in the journal too: the next gate goes on with the numbers behind it.
        let unprinted = &exported[printed.len()..];
        let rows = unprinted.iter().map(|(seq, client_id, reasons)| {
            let reasons: Vec<_> = reasons.split_whitespace().collect();
            serde_json::json!({ "seq": seq.parse::<u64>().unwrap(), "client_id": client_id.parse::<u64>().unwrap(),
                "reasons": reasons })
        });
        printed.extend(rows);
    }
    assert!(printed.len() > 300, "{}", printed.len());
    assert!(printed.iter().all(|row| said(row).is_empty()), "{:?}", printed.iter().find(|row| !said(row).is_empty()));
    let said = place.replay();
    assert!(said.contains(&format!("{} verdicts: every answer is the recorded one", printed.len())), "{said}");
}

/// Copies a journal whose snapshots stay or go; starts a gate on it; returns what the log says of the start, and the gate's
/// answer to an order.
fn started(place: &Place, keeps_snapshots: bool) -> (String, String) {
    let folder = tempfile::tempdir_in(place.folder.path()).unwrap();
    for entry in fs::read_dir(&place.journal).unwrap() {
        let path = entry.unwrap().path();
        if keeps_snapshots || path.extension().is_some_and(|extension| extension == "ttseg") {
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let events = format!("{}\n{}\n{}\n", r#"{"at_ms":9000,"adopt":0}"#, mark(9_000), order(9_000, 77_777, 59_400));
    fs::write(folder.path().join("events"), events).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    command.current_dir(place.folder.path()).args(["--log-level", "info", "--config", "truetick.toml", "risk"]);
    command.args(["--limits", "limits.toml", "--json", "--events"]).arg(folder.path().join("events"));
    let output = command.arg("--journal").arg(folder.path()).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    (log, String::from_utf8(output.stdout).unwrap())
}

/// The writer of a snapshot is killed while it writes. The next start uses the snapshot before, and answers as without one.
#[test]
fn kill_9_of_the_writer_of_a_snapshot_leaves_the_one_before() {
    let place = Place::new();
    let mut client_id = 0;
    let mut go_on = || {
        let mut gate = place.start(&[]);
        let at_ms = 1 + client_id;
        gate.send(&format!(r#"{{"at_ms":{at_ms},"adopt":0}}"#));
        gate.send(&mark(at_ms));
        for _ in 0..60 {
            client_id += 1;
            assert_eq!(gate.ask(&order(at_ms, client_id, 59_400 + client_id)), "");
            gate.ask(&rejected(at_ms, client_id));
        }
        gate.kill();
    };
    go_on();
    let first = text(&truetick(&["gate", "snapshot", place.journal()]));
    let records: u64 = first.split(' ').next().unwrap().parse().unwrap();
    assert!(first.ends_with(&format!("; {records} performed: every answer is the recorded one\n")), "{first}");
    go_on();
    let whole = started(&place, false);
    assert!(whole.0.contains(" snapshot=0 ") && whole.1.contains("77777"), "{whole:?}");
    let names = || {
        let names =
            fs::read_dir(&place.journal).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(".ttsnap")).collect::<Vec<_>>()
    };
    let before = names();
    let mut torn = 0;
    for _ in 0..400 {
        let mut writer = Command::new(env!("CARGO_BIN_EXE_truetick"));
        let mut writer = writer.args(["gate", "snapshot", place.journal()]).stdout(Stdio::null()).spawn().unwrap();
        while writer.try_wait().unwrap().is_none() && !names().iter().any(|name| name.ends_with(".new")) {
            std::thread::yield_now();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let left = names();
        if left.iter().any(|name| name.ends_with(".new")) {
            torn += 1;
            let with = started(&place, true);
            assert!(with.0.contains(&format!(" snapshot={records} ")), "{}", with.0);
            assert_eq!(with.1, whole.1);
            if torn == 3 {
                break;
            }
        }
        for name in left.iter().filter(|name| !before.contains(name)) {
            fs::remove_file(place.journal.join(name)).unwrap();
        }
    }
    assert_eq!(torn, 3, "no writer was killed while it wrote");
    let second = text(&truetick(&["gate", "snapshot", place.journal()]));
    let (all, _) = second.split_once(" records in ").unwrap_or_else(|| panic!("{second}"));
    let with = started(&place, true);
    assert!(with.0.contains(&format!(" snapshot={all} ")), "{}", with.0);
    assert_eq!((with.1, names().len()), (whole.1, 2));
    assert!(place.replay().contains("120 verdicts: every answer is the recorded one"), "{}", place.replay());
}

/// A clean stop writes a snapshot: the next start performs no record again.
#[test]
fn a_clean_stop_leaves_a_snapshot() {
    let place = Place::new();
    let mut gate = place.start(&[]);
    gate.send(&mark(1));
    assert_eq!(gate.ask(&order(1, 1, 59_400)), "");
    gate.finish();
    assert!(started(&place, true).0.contains(" records=3 snapshot=3 "), "{}", started(&place, true).0);
    let said = text(&truetick(&["gate", "snapshot", place.journal()]));
    assert_eq!(said, "3 records: the last snapshot has all of them\n");
}

/// After a restart the gate knows ids, numbers, orders and positions; every account is in doubt until the venue agrees.
#[test]
fn a_restart_restores_orders_and_waits_for_the_venue() {
    let place = Place::new();
    let mut gate = place.start(&[]);
    gate.send(&mark(1));
    assert_eq!(gate.ask(&order(1, 1, 59_400)), "");
    assert_eq!(gate.ask(&order(1, 2, 59_401)), "");
    let fill = r#"{"at_ms":1,"fill":{"client_id":2,"symbol":"BTC/USDT","side":"buy","execution_id":7,"qty":"0.001","px":"59401"}}"#;
    assert_eq!(gate.ask(fill), "applied");
    gate.kill();
    let mut gate = place.start(&[]);
    gate.send(&mark(2));
    assert_eq!(gate.ask(&order(2, 1, 59_400)), "DUP_ID UNRECONCILED");
    assert_eq!(gate.ask(&fill.replace(r#""at_ms":1"#, r#""at_ms":2"#)), "duplicate");
    let state = |orders: &str, position: &str| {
        let positions = format!(r#"[{{"symbol":"BTC/USDT","qty":"{position}"}}]"#);
        format!(r#"{{"at_ms":2,"reconcile":{{"account":0,"orders":[{orders}],"positions":{positions}}}}}"#)
    };
    let one = r#"{"client_id":1,"symbol":"BTC/USDT","side":"buy","qty":"0.001"}"#;
    let other = r#"{"client_id":9,"symbol":"BTC/USDT","side":"buy","qty":"0.001"}"#;
    let more = r#"{"client_id":1,"symbol":"BTC/USDT","side":"buy","qty":"0.001","executed":"0.0005"}"#;
    assert_eq!(gate.ask(&state("", "0.001")), "client id 1: open here, not at the venue");
    assert_eq!(gate.ask(&state(&format!("{one},{other}"), "0.001")), "client id 9: open at the venue, not here");
    assert_eq!(gate.ask(&state(more, "0.001")), "client id 1: other terms at the venue");
    let differs = "BTC/USDT: position 0.00100 here, 0.00200 at the venue";
    assert_eq!(gate.ask(&state(one, "0.002")), differs);
    assert_eq!(gate.ask(&order(2, 3, 59_402)), "UNRECONCILED");
    assert_eq!(gate.ask(&cancel(2, 1)), "", "cancels pass");
    assert_eq!(gate.ask(&state(one, "0.001")), "");
    assert_eq!(gate.ask(&order(2, 4, 59_403)), "");
    gate.finish();
    assert!(place.replay().contains(" 6 verdicts: every answer is the recorded one"), "{}", place.replay());
    // There is one writer at a time.
    let running = place.start(&[]);
    let error = |flags: &[&str]| {
        let limits = place.folder.path().join("limits.toml");
        let arguments = ["risk", "--events", "/dev/null", "--journal", place.journal(), "--limits"];
        let output = truetick(&[&arguments[..], &[limits.to_str().unwrap()], flags].concat());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let mut running = running;
    running.send(&mark(3));
    assert_eq!(running.ask(&cancel(3, 4)), "", "it runs");
    assert!(error(&[]).contains("another gate writes it"), "{}", error(&[]));
    running.finish();
    let limits = fs::read_to_string(place.folder.path().join("limits.toml")).unwrap();
    fs::write(place.folder.path().join("limits.toml"), limits.replace("id_window_ms = 10000", "id_window_ms = 9000"))
        .unwrap();
    // Other limits continue the journal as a recorded input.
    let mut gate = place.start(&[]);
    gate.send(&mark(4));
    assert_eq!(gate.ask(&order(4, 5, 59_404)), "UNRECONCILED");
    gate.finish();
    assert_eq!(place.export().iter().filter(|row| row[2] == "load").count(), 1);
    place.replay();
}

/// A kill is in the journal where it took effect, and in force in the next run.
#[test]
fn a_kill_is_in_the_journal_and_in_force_after_a_restart() {
    let place = Place::new();
    let modes = place.folder.path().join("modes");
    let flags = ["--modes", modes.to_str().unwrap()];
    let mut gate = place.start(&flags);
    gate.send(&mark(1));
    assert_eq!(gate.ask(&order(1, 1, 59_400)), "");
    gate.send(r#"{"at_ms":1,"kill":{"account":0}}"#);
    assert_eq!(gate.ask(&order(1, 2, 59_400)), "KILL_ACCOUNT");
    gate.kill();
    let mut gate = place.start(&flags);
    gate.send(r#"{"at_ms":2,"adopt":0}"#);
    gate.send(&mark(2));
    assert_eq!(gate.ask(&order(2, 3, 59_400)), "KILL_ACCOUNT");
    // More than was ordered: reduce mode, which outlives the process too.
    gate.send(r#"{"at_ms":2,"revive":{"account":0}}"#);
    let fill = r#"{"at_ms":2,"fill":{"client_id":1,"symbol":"BTC/USDT","side":"buy","execution_id":7,"qty":"0.002","px":"59400"}}"#;
    assert_eq!(gate.ask(fill), "overfill");
    assert_eq!(gate.ask(&order(2, 4, 59_400)), "REDUCE_ONLY_STATE");
    gate.finish();
    let mut gate = place.start(&flags);
    gate.send(r#"{"at_ms":3,"adopt":0}"#);
    gate.send(&mark(3));
    assert_eq!(gate.ask(&order(3, 5, 59_400)), "REDUCE_ONLY_STATE");
    gate.finish();
    let modes: Vec<_> = place.export().iter().filter(|row| ["kill", "active"].contains(&&*row[2])).cloned().collect();
    assert_eq!(modes.iter().map(|row| (&*row[2], &*row[5])).collect::<Vec<_>>(), [("kill", "0"), ("active", "0")]);
    place.replay();
}

#[test]
fn a_verdict_is_explained_with_the_values_of_its_time() {
    let place = Place::new();
    let mut gate = place.start(&[]);
    gate.send(&mark(1));
    assert_eq!(gate.ask(&order(1, 1, 59_500)), "");
    let large = r#"{"at_ms":3,"intent":{"client_id":2,"symbol":"BTC/USDT","side":"buy","px":"66000","qty":"0.6"}}"#;
    assert_eq!(gate.ask(large), "COLLAR_REF POS_LONG");
    assert_eq!(gate.ask(&order(9_001, 3, 59_500)), "MD_STALE");
    gate.finish();
    let explain = |verdict: &str| text(&truetick(&["gate", "explain", verdict, "--journal", place.journal()]));
    assert_eq!(
        explain("2"),
        "verdict 2: rejected, record 4, at 3000000 ns\n\
         intent: limit buy 0.60000 BTC/USDT at 66000.00; account 0, strategy 0, client id 2\n        \
         number 2 of producer 0, 0 ns old\n\
         exposure before: position 0.00000, open buys 0.00100, open sells 0.00000, 1 open orders\n\
         mark: 60000.00 (bid 59999.90, ask 60000.10), 2000000 ns old, verified\n\
         limits, version 10: quantity 0.00010 to 1.00000, value 5.0000000 to 50000.0000000, position -0.50000 to 0.50000, \
         open quantity 2.00000 per side, 10 open orders\n\
         COLLAR_REF: the price 66000.00 is more than 100 bps from the mark 60000.00\n\
         POS_LONG: account 0: with all open buys filled the position would be 0.60100, the limit is 0.50000\n"
    );
    assert!(explain("1").ends_with("no check was breached\n"), "{}", explain("1"));
    assert!(explain("3").contains("MD_STALE: the mark is 9000000000 ns old, allowed are 0 to 2000000000 ns\n"));
    let output = truetick(&["gate", "explain", "4", "--journal", place.journal()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no verdict 4"));
    // One bit of a recorded verdict, with its checksum set right, is another verdict than the replay's.
    let header = "record,time_ns,input,producer,seq,account,strategy,symbol,client_id,side,kind,qty,px,trigger_px,";
    assert!(text(&truetick(&["gate", "export", place.journal()])).starts_with(header));
    assert_eq!(place.export()[4][..9].join(","), "4,3000000,intent,0,2,0,0,BTC/USDT,2");
    assert_eq!(place.export()[4][9..].join(","), "buy,limit,0.60000,66000.00,,,2,0,COLLAR_REF POS_LONG,0.60100,10,0,");
}

/// A small file system.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> nix::Result<Self> {
        let folder = tempfile::tempdir().map_err(|_| nix::errno::Errno::EIO)?;
        let flags = nix::mount::MsFlags::empty();
        nix::mount::mount(None::<&str>, folder.path(), Some("tmpfs"), flags, Some("size=96k"))?;
        Ok(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(self.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

/// A full disk rejects orders and passes cancels; with room again, orders pass; nothing that was printed is missing.
#[test]
fn a_full_disk_rejects_orders_and_passes_cancels() {
    let Some(disk) = require(Requirement::Privilege, SmallDisk::mount()) else { return };
    let place = Place::with(tempfile::tempdir().unwrap(), disk.path().join("journal"));
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![1; 40 << 10]).unwrap();
    let mut gate = place.start(&[]);
    gate.send(&mark(1));
    assert_eq!(gate.ask(&order(1, 1, 59_400)), "");
    let mut client_id = 1;
    let mut until = |gate: &mut Gate, wanted: &str| {
        for _ in 0..2_000 {
            client_id += 1;
            let found = gate.ask(&order(1, client_id, 59_400 + client_id % 500));
            if found.is_empty() {
                assert_eq!(gate.ask(&rejected(1, client_id)), "applied");
            }
            if found == wanted {
                return client_id;
            }
            assert!(found.is_empty() || found == "JOURNAL", "{found}");
        }
        panic!("never {wanted:?}");
    };
    let accepted = until(&mut gate, "JOURNAL") - 2;
    assert!(accepted > 50, "{accepted}");
    assert_eq!(gate.ask(&order(1, 100_000, 59_400)), "JOURNAL");
    // It stays full: the journal is not lost.
    for client_id in 100_000..102_000 {
        assert_eq!(gate.ask(&order(1, client_id, 59_400)), "JOURNAL");
    }
    assert_eq!(gate.ask(&cancel(1, 1)), "", "cancels pass");
    fs::remove_file(&filler).unwrap();
    until(&mut gate, "");
    gate.finish();
    assert!(place.replay().contains("every answer is the recorded one"), "{}", place.replay());
    let events: Vec<_> = place.export().iter().map(|row| row[2].clone()).collect();
    assert!(events.contains(&"journal_lost".to_owned()) && events.contains(&"journal_written".to_owned()));
}
