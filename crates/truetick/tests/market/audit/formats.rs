//! Everything that an audit looks for, in every format that it reads, in the table and in JSON.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use tempfile::TempDir;
use tt_journal::recording::{RecordHead, RecordKind, encode, header, seal};
use tt_journal::{CbcapReader, Record};

use super::{WHOLE, audit, found, lines, recordings, records};

/// A frame of some format.
trait Frame: Clone {
    fn ts_ns(&mut self) -> &mut u64;
    fn payload(&mut self) -> &mut Vec<u8>;
}

impl Frame for Record {
    fn ts_ns(&mut self) -> &mut u64 {
        &mut self.ts_ns
    }

    fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.payload
    }
}

impl Frame for (RecordHead, Vec<u8>) {
    fn ts_ns(&mut self) -> &mut u64 {
        &mut self.0.ts_ns
    }

    fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.1
    }
}

/// What is done to a recording, by the name under which it must be found.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Gap,
    Duplicate,
    Reordered,
    Crossed,
    ClockBackwards,
    Checksum,
}

impl Deed {
    const OF_NUMBERED: [Self; 5] = [Self::Gap, Self::Duplicate, Self::Reordered, Self::Crossed, Self::ClockBackwards];
    const OF_CHECKSUMMED: [Self; 4] = [Self::Duplicate, Self::Reordered, Self::ClockBackwards, Self::Checksum];

    const fn found_as(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Duplicate => "duplicate",
            Self::Reordered => "reordered",
            Self::Crossed => "crossed",
            Self::ClockBackwards => "receive_time_backwards",
            Self::Checksum => "checksum_mismatch",
        }
    }

    /// Does it at one of the places `books`, which hold updates of one book.
    fn done<F: Frame>(self, frames: &[F], books: &[usize]) -> Vec<F> {
        let mut wrong = frames.to_vec();
        let (at, next) = (books[0], books[1]);
        match self {
            Self::Gap => drop(wrong.remove(at)),
            Self::Duplicate => wrong.insert(at, frames[at].clone()),
            Self::Reordered => {
                let first = std::mem::take(wrong[at].payload());
                let second = std::mem::replace(wrong[next].payload(), first);
                *wrong[at].payload() = second;
            }
            Self::ClockBackwards => *wrong[at].ts_ns() -= 1_000_000_000,
            Self::Crossed => {
                // A ticker of the same update would detect it first.
                let texts: Vec<String> = frames.iter().map(text).collect();
                let has_ticker = |id: &str| texts.iter().any(|text| text.contains("bookTicker") && text.contains(id));
                let lone = books.iter().find(|at| !has_ticker(id(&texts[**at])));
                let (at, text) = (*lone.unwrap(), &texts[*lone.unwrap()]);
                let start = text.find("\"b\":[").unwrap() + 5;
                let comma = if text[start..].starts_with(']') { "" } else { "," };
                let text = format!("{}[\"999999.00\",\"1\"]{comma}{}", &text[..start], &text[start..]);
                *wrong[at].payload() = text.into_bytes();
            }
            Self::Checksum => {
                let mark = b"\"checksum\":";
                let payload = wrong[at].payload();
                let digit = payload.windows(mark.len()).position(|part| part == mark).unwrap() + mark.len();
                payload[digit] = if payload[digit] == b'9' { b'8' } else { payload[digit] + 1 };
            }
        }
        wrong
    }
}

fn text<F: Frame>(frame: &F) -> String {
    String::from_utf8_lossy(frame.clone().payload()).into_owned()
}

/// The update id of a frame of Binance, with its key.
fn id(text: &str) -> &str {
    let start = text.find("\"u\":").unwrap();
    &text[start..=start + text[start..].find(',').unwrap()]
}

/// Updates of a book in the second half.
fn books<F: Frame>(frames: &[F], mark: &str) -> Vec<usize> {
    let is_book = |at: &usize| {
        let text = text(&frames[*at]);
        text.contains(mark) && !text.contains("\"snapshot\"")
    };
    (frames.len() / 2..frames.len()).filter(is_book).collect()
}

fn seconds(ts_ns: u64) -> String {
    format!("{}.{:09}", ts_ns / 1_000_000_000, ts_ns % 1_000_000_000)
}

/// hftbacktest's packed lines.
fn write_gz(path: &Path, frames: &[Record]) -> PathBuf {
    let mut file = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    for Record { ts_ns, payload } in frames {
        writeln!(file, "{ts_ns} {}", String::from_utf8_lossy(payload)).unwrap();
    }
    file.finish().unwrap();
    path.to_owned()
}

/// cryptofeed's frames, and the REST response in the other file.
fn write_ws(path: &Path, frames: &[Record], address: &str) -> PathBuf {
    let mut text = format!("{address} <-> {}\n", seconds(frames[0].ts_ns));
    for Record { ts_ns, payload } in frames {
        let payload = String::from_utf8_lossy(payload);
        if payload.starts_with("{\"lastUpdateId\"") {
            let from = "https://fapi.binance.com/fapi/v1/depth?symbol=BTCUSDT&limit=1000";
            fs::write(path.with_extension("http"), format!("{from} -> {}: {payload}\n", seconds(*ts_ns))).unwrap();
        } else {
            writeln!(text, "{}: {payload}", seconds(*ts_ns)).unwrap();
        }
    }
    let path = path.with_extension("ws");
    fs::write(&path, text).unwrap();
    path
}

/// crossbook's capture.
fn write_cbcap(path: &Path, frames: &[Record], venue: &str) -> PathBuf {
    let mut bytes = format!("CBCAP1 {venue} BTC/USD {}\n", frames[0].ts_ns).into_bytes();
    for Record { ts_ns, payload } in frames {
        bytes.extend(format!("{ts_ns} {}\n", payload.len()).bytes());
        bytes.extend(payload.iter().chain(b"\n"));
    }
    fs::write(path, bytes).unwrap();
    path.to_owned()
}

/// truetick's own.
fn write_own(path: &Path, records: &[(RecordHead, Vec<u8>)]) -> PathBuf {
    let mut bytes = header(records[0].0.ts_ns).to_vec();
    for (head, body) in records {
        let start = bytes.len();
        encode(&mut bytes, *head, body);
        seal(&mut bytes[start..]);
    }
    fs::write(path, bytes).unwrap();
    path.to_owned()
}

/// The table that is printed without `--json`, and the status.
fn table(path: &Path) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_truetick")).arg("audit").arg(path).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

/// Nothing is wrong with it, and it is measured: levels of a message, their distance from the touch, times.
fn is_clean(format: &str, path: &Path) {
    let (value, status) = audit(&[path], &[]);
    assert_eq!((status, found(&value), &value["format"]), (0, Vec::new(), &Value::from(format)), "{value}");
    let feed = &value["feeds"][0];
    let instrument = &feed["instruments"][0];
    for measured in ["levels_per_message", "steps_from_touch"] {
        assert!(instrument[measured]["n"].as_u64().unwrap() > 40, "{measured}: {instrument}");
    }
    assert!(feed["lag_ns"]["n"].as_u64().unwrap() > 40, "{feed}");
    let (text, status) = table(path);
    assert_eq!(status, 0, "{text}");
    for expected in ["no errors found", "venue to receipt", "levels p50/p99", "steps off p50/p99"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// What was done to it is found, in JSON and in the table, and the status says so.
fn is_found(format: &str, deed: Deed, path: &Path) {
    let (value, status) = audit(&[path], &[]);
    assert_eq!((status, &value["right"]), (1, &Value::Bool(false)), "{format} {deed:?}: {value}");
    let names = found(&value);
    assert!(names.iter().any(|name| name == deed.found_as()), "{format} {deed:?}: {names:?}");
    let (text, status) = table(path);
    let row = text.lines().find(|line| line.contains("ERROR") && line.contains(deed.found_as()));
    assert!(status == 1 && row.is_some() && text.ends_with("errors found\n"), "{format} {deed:?}: {text}");
}

/// Writes `frames` in the three formats of others, whole and after each of `deeds`.
fn others(frames: &[Record], venue: &str, address: &str, mark: &str, deeds: &[Deed]) {
    let folder = TempDir::new().unwrap();
    let written = |name: &str, frames: &[Record]| {
        let path = |format: &str| folder.path().join(format!("{name}.{format}"));
        [
            ("stamped_lines", write_gz(&path("gz"), frames)),
            ("cryptofeed", write_ws(&path("ws"), frames, address)),
            ("cbcap", write_cbcap(&path("cbcap"), frames, venue)),
        ]
    };
    for (format, path) in written("clean", frames) {
        is_clean(format, &path);
    }
    let books = books(frames, mark);
    for deed in deeds {
        for (format, path) in written(deed.found_as(), &deed.done(frames, &books)) {
            is_found(format, *deed, &path);
        }
    }
}

#[test]
fn every_kind_of_fault_is_found_in_every_format_of_others() {
    let address = "wss://fstream.binance.com/stream?streams=btcusdt@depth";
    others(&lines("usdm"), "binance_usdm", address, "depthUpdate", &Deed::OF_NUMBERED);
    let kraken = CbcapReader::open(&recordings().join("kraken_btcusd_depth25.cbcap")).unwrap();
    let kraken: Vec<Record> = kraken.collect::<Result<_, _>>().unwrap();
    others(&kraken, "kraken", "wss://ws.kraken.com/v2", "\"channel\":\"book\"", &Deed::OF_CHECKSUMMED);
}

#[test]
fn every_kind_of_fault_is_found_in_our_own_format() {
    let folder = TempDir::new().unwrap();
    let whole = records(&recordings().join(WHOLE));
    is_clean("truetick", &recordings().join(WHOLE));
    let is_frame = |at: &usize| whole[*at].0.kind == RecordKind::Frame;
    let of = |mark: &str| books(&whole, mark).into_iter().filter(is_frame).collect::<Vec<_>>();
    for (books, deeds) in
        [(of("\"pu\":"), &Deed::OF_NUMBERED[..]), (of("{\"channel\":\"book\""), &Deed::OF_CHECKSUMMED[..])]
    {
        for deed in deeds {
            let path = folder.path().join(format!("{}.ttj", deed.found_as()));
            is_found("truetick", *deed, &write_own(&path, &deed.done(&whole, &books)));
        }
    }
}
