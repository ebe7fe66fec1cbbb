//! Snapshots: the gate of a snapshot and the records behind it is that of the whole journal.

use std::path::PathBuf;

use tt_journal::JournalEnd;
use tt_risk::tree::Node;

use super::*;
use crate::journal::recovery::{Snapshot, snapshot};
use crate::journal::replay::{JournalReader, Replay};

/// Limits whose strategy, balance and conversions leave no table empty.
fn file() -> LimitsFile {
    let text = include_str!("../../../../../deploy/gate-limits.toml");
    let text = text.replace("per-second = 2, burst = 2", "per-second = 100, burst = 100");
    LimitsFile::parse(&text.replace("id-window-ms = 600000", "id-window-ms = 3000")).unwrap()
}

/// Lets a gate meet inputs of every kind; returns what it was at last.
fn run(folder: &Path) -> String {
    let (mut gate, _) = DurableGate::open(&file(), &config(folder, Durability::Process), 1).unwrap();
    let of_strategy = |seq, now_ns| OrderIntent { strategy: 1, ..order(seq, now_ns) };
    let mut seq = 0;
    for round in 1..9 {
        let now_ns = round * 7_000_000_000;
        gate.set_reference(now_ns, BTC, &mark(now_ns)).unwrap();
        for input in [
            Input::Conversion(1, file().conversion("BTC", "60000", now_ns).unwrap().1),
            Input::Balance(0, 1, 1 << 40),
            Input::Equity(0, 1 << 50),
            Input::Day,
            Input::Enable(0, 1),
        ] {
            gate.perform(now_ns, &input);
        }
        for kind in [IntentKind::LIMIT, IntentKind::LIMIT, IntentKind::REPLACE, IntentKind::CANCEL, IntentKind(77)] {
            seq += 1;
            // A replace and a cancel are of the order before; every third limit order is far behind.
            let client_id = if kind == IntentKind::LIMIT { seq } else { seq - 1 };
            let limit_px = Price(6_000_000 - 10 * (seq as i64 % 3) * 100);
            let intent = OrderIntent { kind, client_id, limit_px, ..of_strategy(seq, now_ns) };
            gate.evaluate(now_ns, 0, &intent, &mut Off);
        }
        gate.apply(now_ns, &fill(seq - 4));
        if round == 4 {
            let limits = file().limits_of(0, BTC, 1).unwrap();
            gate.set_limits(now_ns, 0, BTC, &limits).unwrap();
            gate.perform(now_ns, &Input::Restart);
            gate.perform(now_ns, &Input::Adopt(0));
        }
        gate.switches().set_mode(KillSwitch::Strategy(7 + round as u16), Mode::Reduce);
    }
    gate.perform(56_001_000_000, &Input::Time);
    assert!(gate.gate().totals(Node::Firm).is_some_and(|totals| totals.gross > 0));
    format!("{:?}", gate.gate())
}

fn numbers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains(".ttsnap")).collect();
    names.sort();
    names
}

/// Every field of two replays, by code that is derived.
fn text(replay: &Replay) -> String {
    format!("{replay:?}")
}

#[test]
fn a_snapshot_at_each_record_and_the_rest_give_the_same_state_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let last = run(folder.path());
    let segments = SegmentFolder::new(folder.path());
    let mut reader = JournalReader::new(&segments).unwrap();
    let mut replay: Option<Replay> = None;
    let mut cuts: Vec<(JournalEnd, Vec<u8>)> = Vec::new();
    let mut hashes: Vec<[u8; 32]> = Vec::new();
    while let Some(record) = reader.read().unwrap() {
        match &mut replay {
            None => replay = Some(Replay::begin(&record).unwrap()),
            Some(replay) => assert_eq!(replay.step(&record), None),
        }
        let replay = replay.as_mut().unwrap();
        cuts.push((reader.end(), replay.snapshot(&reader.end())));
        hashes.push(replay.state_hash());
        let (restored, place) = Replay::restore(&cuts[cuts.len() - 1].1).unwrap();
        assert_eq!(place, reader.end());
        if record.number % 8 == 0 {
            assert!(text(&restored) == text(replay), "record {}", record.number);
        }
    }
    let replay = replay.unwrap();
    assert!(cuts.len() > 80 && format!("{:?}", replay.gate) == last);
    assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]));
    let mut compared = 0;
    for (place, snapshot) in cuts {
        let (mut restored, _) = Replay::restore(&snapshot).unwrap();
        let mut rest = JournalReader::resume(&segments, &place).unwrap();
        while let Some(record) = rest.read().unwrap() {
            // Of a verdict all 64 bytes.
            assert_eq!(restored.step(&record), None, "from {} on", place.records);
            compared += usize::from(matches!(record.answer, Answer::Verdict(_)));
        }
        assert_eq!(restored.state_hash(), hashes[hashes.len() - 1], "from {} on", place.records);
    }
    assert!(compared > 1_000, "{compared}");
}

/// Copies the files of a folder whose names end so.
fn copy(from: &Path, ends: &str) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(ends) {
            fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    to
}

/// Starts a gate; returns its records, those of its snapshot, and its state after an intent.
fn start(folder: &Path) -> (u64, u64, String) {
    let (mut gate, recovered) = DurableGate::open(&file(), &config(folder, Durability::Process), 1).unwrap();
    let (seq, now_ns) = (recovered.last_seq + 1, recovered.now_ns);
    gate.evaluate(now_ns, 0, &OrderIntent { strategy: 1, ..order(seq, now_ns) }, &mut Off);
    (recovered.records, recovered.snapshot_records, format!("{:?}", gate.gate()))
}

#[test]
fn a_start_uses_the_newest_snapshot_that_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let first = snapshot(folder.path()).unwrap();
    assert_eq!((first.performed, snapshot(folder.path()).unwrap().bytes), (first.records, 0));
    start(folder.path());
    // The records of the start only.
    let second = snapshot(folder.path()).unwrap();
    assert_eq!(second, Snapshot { records: first.records + 2, performed: 2, bytes: second.bytes });
    let names = [first, second].map(|of| format!("{:016}.ttsnap", of.records));
    assert_eq!(numbers(folder.path()), names);
    let whole = start(copy(folder.path(), ".ttseg").path());
    assert_eq!((whole.0, whole.1), (second.records, 0));
    // The names of the files are those of another folder; what is started is the same.
    let path = |of: &tempfile::TempDir, name: &str| -> PathBuf { of.path().join(name) };
    let newest = fs::read(folder.path().join(&names[1])).unwrap();
    let damaged = |len: usize, flipped: Option<usize>| {
        let mut image = newest[..len].to_vec();
        flipped.into_iter().for_each(|at| image[at] ^= 1);
        image
    };
    let places = (0..newest.len()).step_by(newest.len() / 12).chain([1, 9, 11, 20, 41, 71, 72, 80]);
    let torn = places.clone().map(|len| damaged(len, None));
    let flipped = places.map(|at| damaged(newest.len(), Some(at)));
    for image in torn.chain(flipped) {
        let copied = copy(folder.path(), "");
        fs::write(path(&copied, &names[1]), &image).unwrap();
        assert_eq!(start(copied.path()), (whole.0, first.records, whole.2.clone()));
    }
    let copied = copy(folder.path(), "");
    assert_eq!(start(copied.path()), (whole.0, second.records, whole.2.clone()));
    let copied = copy(folder.path(), "");
    names.iter().for_each(|name| fs::write(path(&copied, name), &newest[..100]).unwrap());
    assert_eq!(start(copied.path()), whole);
}

/// Two snapshots are kept, and what a killed writer has left goes.
#[test]
fn older_snapshots_are_removed_behind_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    fs::write(folder.path().join("0000000000000003.ttsnap.new"), "half of a").unwrap();
    let records: Vec<_> = (0..4)
        .map(|_| {
            start(folder.path());
            snapshot(folder.path()).unwrap().records
        })
        .collect();
    let kept = records[2..].iter().map(|records| format!("{records:016}.ttsnap"));
    assert_eq!(numbers(folder.path()), kept.collect::<Vec<_>>());
}

/// A snapshot of records that the loss of power has taken, and one of another journal, are not used.
#[test]
fn a_snapshot_that_does_not_fit_the_journal_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let records = snapshot(folder.path()).unwrap().records;
    let whole = start(copy(folder.path(), ".ttseg").path());
    let path = folder.path().join(SEGMENT);
    let mut image = fs::read(&path).unwrap();
    let used = image.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    image[used - 20..].fill(0);
    fs::write(&path, &image).unwrap();
    let (left, of_snapshot, _) = start(folder.path());
    assert_eq!((left, of_snapshot), (records - 1, 0));
    // Another journal of the same length: the checksum of its last record differs.
    let other = tempfile::tempdir().unwrap();
    let (mut gate, _) = DurableGate::open(&file(), &config(other.path(), Durability::Process), 1).unwrap();
    for _ in 1..records {
        gate.perform(2, &Input::Time);
    }
    drop(gate);
    snapshot(other.path()).unwrap();
    let name = format!("{records:016}.ttsnap");
    let copied = copy(other.path(), ".ttseg");
    assert_eq!(start(copied.path()).0, records);
    let journal = copy(folder.path(), "");
    fs::copy(other.path().join(&name), journal.path().join(&name)).unwrap();
    assert_eq!(start(journal.path()).1, 0);
    assert_ne!(whole.2, String::new());
}

/// A gate that runs writes a snapshot behind every 16 segments, and its thread one more at its end.
#[test]
fn a_running_gate_writes_snapshots_and_one_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let small = JournalConfig { segment_bytes: Some(1 << 14), ..config(folder.path(), Durability::Process) };
    let (mut gate, _) = DurableGate::open(&file(), &small, 1).unwrap();
    // Each record has 40 bytes.
    for _ in 0..17 * (1 << 14) / 40 {
        gate.perform(2, &Input::Time);
    }
    drop(gate);
    let first = numbers(folder.path());
    assert_eq!(first.len(), 1);
    let (gate, recovered) = DurableGate::open(&file(), &small, 1).unwrap();
    assert_eq!(first, [format!("{:016}.ttsnap", recovered.snapshot_records)]);
    assert!(recovered.snapshot_records > 4_000 && recovered.records >= recovered.snapshot_records, "{recovered:?}");
    let (rows, senders) = (Vec::new(), Vec::new());
    let (quotes, cpu, dead_man) = (None, None, None);
    let config =
        crate::GateConfig { gate, rows, quotes, ring_slots: 4, sample_one_in: 1, cpu, spins: false, senders, dead_man };
    let (running, ports) = crate::start(config).unwrap();
    running.stop();
    drop(ports);
    // The restart is a record, and the system's clock.
    let records = recovered.records + 2;
    assert_eq!(numbers(folder.path()), [first[0].clone(), format!("{records:016}.ttsnap")]);
}
