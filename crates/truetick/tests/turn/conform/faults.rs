//! Each kind of check is seen failing: a server that breaks one rule fails the checks of that rule.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::broken::{Breach, Broken, Memory, Pieces, start_stream};
use super::{FLAGS, credentials, judge, text};
use crate::server::Server;

const BINDING: u16 = 0x0001;
const ALLOCATE: u16 = 0x0003;
const REFRESH: u16 = 0x0004;
const LIFETIME: u16 = 0x000D;
const NONCE: u16 = 0x0015;
const REALM: u16 = 0x0014;
const XOR_RELAYED_ADDRESS: u16 = 0x0016;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const DATA: u16 = 0x0013;
const ERROR_CODE: u16 = 0x0009;
/// Runs at one time.
const THREADS: usize = 3;

/// A rule that is broken: its name, the checks that look at it, and how it is broken.
struct Fault {
    name: &'static str,
    /// Ids of which a check must fail, separated by commas; nothing else is judged.
    failing: &'static str,
    breach: Breach,
}

const fn reply(name: &'static str, failing: &'static str, reply: fn(&mut Pieces, &mut Memory)) -> Fault {
    Fault { name, failing, breach: Breach { reply, ..Breach::NONE } }
}

const fn request(name: &'static str, failing: &'static str, request: fn(&mut Pieces, &mut Memory)) -> Fault {
    Fault { name, failing, breach: Breach { request, ..Breach::NONE } }
}

const fn outgoing(name: &'static str, failing: &'static str, outgoing: fn(&mut Vec<u8>)) -> Fault {
    Fault { name, failing, breach: Breach { outgoing, ..Breach::NONE } }
}

const fn incoming(name: &'static str, failing: &'static str, incoming: fn(&mut Vec<u8>)) -> Fault {
    Fault { name, failing, breach: Breach { incoming, ..Breach::NONE } }
}

/// Changes the code of an error.
fn recode(pieces: &mut Pieces, from: u16, to: u16) {
    if pieces.code() == from
        && let Some(value) = pieces.value_mut(ERROR_CODE)
    {
        value[2..4].copy_from_slice(&[u8::try_from(to / 100).unwrap(), u8::try_from(to % 100).unwrap()]);
    }
}

fn set_relayed_port(pieces: &mut Pieces, port: u16) {
    if let Some(value) = pieces.value_mut(XOR_RELAYED_ADDRESS) {
        value[2..4].copy_from_slice(&(port ^ 0x2112).to_be_bytes());
    }
}

fn relayed_port(pieces: &Pieces) -> Option<u16> {
    Some(u16::from_be_bytes(pieces.value(XOR_RELAYED_ADDRESS)?[2..4].try_into().unwrap()) ^ 0x2112)
}

const FAULTS: &[Fault] = &[
    reply("another mapped port", "R013", |reply, _| {
        if reply.method() == BINDING {
            reply.value_mut(XOR_MAPPED_ADDRESS).into_iter().for_each(|value| value[3] ^= 1);
        }
    }),
    reply("a first byte in the mapped address", "R023", |reply, _| {
        reply.value_mut(XOR_MAPPED_ADDRESS).into_iter().for_each(|value| value[0] = 1);
    }),
    reply("another type of response", "R016", |reply, _| {
        if reply.method() == BINDING && reply.is_success() {
            reply.kind = 0x0103;
        }
    }),
    outgoing("another cookie", "R002", |bytes| bytes[4] ^= 1),
    outgoing("set top bits", "R001", |bytes| bytes[0] |= 0x80),
    outgoing("the header counted", "R003", |bytes| bytes[3] = bytes[3].wrapping_add(20)),
    reply("the id of an earlier request", "R004", |reply, memory| {
        let first = *memory.ids.entry([0; 12]).or_insert(reply.id);
        reply.id = first;
    }),
    reply("a wrong FINGERPRINT", "R031", |reply, _| {
        if reply.has_fingerprint {
            reply.has_fingerprint = false;
            reply.attributes.push((0x8028, vec![1, 2, 3, 4]));
        }
    }),
    reply("an attribute behind FINGERPRINT", "R030", |reply, _| {
        if reply.has_fingerprint {
            reply.has_fingerprint = false;
            reply.attributes.extend([(0x8028, vec![1, 2, 3, 4]), (0xC0DE, vec![0; 4])]);
        }
    }),
    outgoing("padding that is not zero", "A19", |bytes| {
        if bytes[..2] == [1, 0x11] {
            *bytes.last_mut().unwrap() = 0xFF;
        }
    }),
    outgoing("a byte behind the attributes", "R020", |bytes| bytes.push(7)),
    reply("no ERROR-CODE", "R012,R042", |reply, _| reply.remove(ERROR_CODE)),
    reply("a class of 7", "R032", |reply, _| reply.value_mut(ERROR_CODE).into_iter().for_each(|value| value[2] = 7)),
    reply("a realm of 200 characters", "R033", |reply, _| {
        reply.value_mut(REALM).into_iter().for_each(|value| *value = vec![b'r'; 200]);
    }),
    reply("a nonce of 200 characters", "R034", |reply, _| {
        reply.value_mut(NONCE).into_iter().for_each(|value| value.resize(200, b'n'));
    }),
    reply("no NONCE", "R042", |reply, _| reply.remove(NONCE)),
    reply("no REALM", "R042", |reply, _| reply.remove(REALM)),
    reply("USERNAME in a 401", "R043", |reply, _| {
        if reply.code() == 401 {
            reply.attributes.push((0x0006, b"ann".to_vec()));
        }
    }),
    reply("REALM in a 400", "R047", |reply, _| {
        if reply.code() == 400 {
            reply.attributes.push((REALM, b"truetick".to_vec()));
        }
    }),
    reply("a list of unknown attributes that is cut", "R037", |reply, _| {
        reply.value_mut(0x000A).into_iter().for_each(|value| value.truncate(2));
    }),
    reply("400 for 420", "R009,A10", |reply, _| recode(reply, 420, 400)),
    reply("500 for 400", "R047,A27,R049,R050,R051,R072,R075,R080,R082,R077,R099,R110,R109,A66,A14", |reply, _| {
        recode(reply, 400, 500);
    }),
    reply("500 for 437", "R067,R071,R093,A58", |reply, _| recode(reply, 437, 500)),
    reply("400 for 438", "R055,A34", |reply, _| recode(reply, 438, 400)),
    reply("400 for 442", "R073", |reply, _| recode(reply, 442, 400)),
    reply("400 for 440", "A45", |reply, _| recode(reply, 440, 400)),
    reply("400 for 443", "R092,R100,R094", |reply, _| recode(reply, 443, 400)),
    reply("404 for 508", "R076,A48", |reply, _| recode(reply, 508, 404)),
    reply("400 for 403", "R101,A63", |reply, _| recode(reply, 403, 400)),
    reply("unsigned success", "R058,R057", |reply, _| {
        if reply.is_success() {
            reply.integrity = None;
        }
    }),
    reply("unsigned errors", "R059", |reply, _| {
        if !reply.is_success() {
            reply.integrity = None;
        }
    }),
    reply("MESSAGE-INTEGRITY for SHA-256", "R057", |reply, _| {
        if reply.integrity.is_some() {
            reply.integrity = Some(0x0008);
        }
    }),
    request("integrity is ignored", "R054,R056,A38", |request, _| {
        if request.is_request() && request.value(0x0008).is_some() {
            request.remove(0x0008);
            request.integrity = Some(0x0008);
        }
    }),
    request("nonces are ignored", "R055,A34,A41", |request, memory| {
        let nonce = memory.nonce.clone();
        request.value_mut(NONCE).into_iter().for_each(|value| *value = nonce.clone());
    }),
    reply("one nonce for all", "R044", |reply, _| {
        reply.value_mut(NONCE).into_iter().for_each(|value| *value = b"one nonce".to_vec());
    }),
    reply("a nonce cookie without base64", "R040", |reply, _| {
        reply.value_mut(NONCE).into_iter().for_each(|value| value[9] = b'!');
    }),
    reply("no PASSWORD-ALGORITHMS", "R045", |reply, _| reply.remove(0x8002)),
    request("unknown optional attributes are required", "R007,R021", |request, _| {
        request.attributes.iter_mut().filter(|(kind, _)| *kind == 0xC0DE).for_each(|(kind, _)| *kind = 0x7F05);
    }),
    reply("no XOR-RELAYED-ADDRESS", "R090", |reply, _| reply.remove(XOR_RELAYED_ADDRESS)),
    reply("no LIFETIME", "R090,R095", |reply, _| reply.remove(LIFETIME)),
    reply("one relayed port for all", "R069", |reply, _| set_relayed_port(reply, 50_000)),
    reply("odd ports", "R087", |reply, _| {
        let port = relayed_port(reply);
        port.into_iter().for_each(|port| set_relayed_port(reply, port | 1));
    }),
    reply("well-known ports", "R088", |reply, _| set_relayed_port(reply, 80)),
    reply("a token of four bytes", "R086", |reply, _| {
        reply.value_mut(0x0022).into_iter().for_each(|value| value.truncate(4));
    }),
    reply("a lifetime of 600 s or an hour", "R089,R095", |reply, _| {
        let lifetime = reply.value_mut(LIFETIME).into_iter().filter(|value| **value != [0, 0, 2, 88]);
        lifetime.for_each(|value| *value = vec![0, 0, 14, 16]);
    }),
    reply("a lifetime of one second", "A53,R089", |reply, memory| {
        static CLIENTS: AtomicU32 = AtomicU32::new(0);
        if reply.method() == ALLOCATE && reply.is_success() {
            if memory.count == 0 {
                memory.count = CLIENTS.fetch_add(1, Ordering::Relaxed) % 255 + 1;
            }
            let lifetime = reply.value_mut(LIFETIME).unwrap();
            *lifetime = u32::from_be_bytes(lifetime[..].try_into().unwrap()).max(601).to_be_bytes().to_vec();
            // Another one for each client, so never that of the client that asks for none.
            lifetime[3] = lifetime[3].wrapping_add(u8::try_from(memory.count).unwrap_or(1));
        }
    }),
    request("lifetime zero ends nothing", "R093", |request, _| {
        if request.method() == REFRESH {
            request.remove(LIFETIME);
        }
    }),
    request("a retransmitted Allocate is a new one", "R091", |request, memory| {
        if request.method() == ALLOCATE && request.integrity.is_some() {
            let mut other = request.id;
            other[0] ^= 0x55;
            if memory.ids.insert(other, request.id).is_some() {
                request.id = other;
            }
        }
    }),
    request("channel numbers are not looked at", "R109,A66", |request, _| {
        request.value_mut(0x000C).into_iter().for_each(|value| value[0] = 0x40);
    }),
    request("families are not looked at", "A45,R078", |request, _| {
        request.value_mut(0x0017).into_iter().for_each(|value| value[0] = 1);
    }),
    request("EVEN-PORT's reserved bits are looked at", "R115", |request, _| {
        request.value_mut(0x0018).into_iter().filter(|value| value[0] & 0x7F != 0).for_each(|value| value[0] |= 0x80);
    }),
    reply("a Data indication with less", "R106,A73", |reply, _| {
        reply.value_mut(DATA).into_iter().for_each(|value| value.truncate(value.len().saturating_sub(1)));
    }),
    reply("a Data indication of another peer", "R106,A75", |reply, _| {
        if reply.kind == 0x0017 {
            reply.value_mut(0x0012).into_iter().for_each(|value| value[2] ^= 1);
        }
    }),
    outgoing("no Data indications", "R106,A75", |bytes| {
        if bytes[..2] == [0, 0x17] && bytes.len() > 44 {
            bytes.clear();
        }
    }),
    outgoing("ChannelData of another number", "R112", |bytes| {
        if bytes[0] & 0xC0 == 0x40 {
            bytes[1] ^= 1;
        }
    }),
    incoming("the last attribute of a Send counts", "A11", |bytes| {
        // XOR-PEER-ADDRESS is 12 bytes.
        if bytes[..2] == [0, 0x16] && bytes.len() > 44 && bytes[32..34] == [0, 0x12] {
            bytes.drain(20..32);
            bytes[3] -= 12;
        }
    }),
    incoming("Binding indications are requests", "A22", |bytes| {
        if bytes[..2] == [0, 0x11] {
            bytes[1] = 1;
        }
    }),
    incoming("unknown methods are Bindings", "R006", |bytes| {
        if bytes[..2] == [3, 0xEE] {
            bytes[..2].copy_from_slice(&[0, 1]);
        }
    }),
    incoming("responses are requests", "A20", |bytes| {
        if bytes[0] == 1 {
            bytes[..2].copy_from_slice(&[0, 1]);
        }
    }),
    incoming("classic STUN is answered", "A23", |bytes| bytes[4..8].copy_from_slice(&[0x21, 0x12, 0xA4, 0x42])),
    incoming("a Binding with FINGERPRINT is not answered", "R017", |bytes| {
        if bytes.len() == 28 {
            bytes.clear();
        }
    }),
];

/// Faults that only malformed messages show.
const HOSTILE: &[Fault] = &[
    incoming("wrong FINGERPRINT is mended", "A17", |bytes| {
        if bytes.len() == 28 {
            bytes.truncate(20);
            bytes[3] = 0;
        }
    }),
    incoming("junk is cut", "A04", |bytes| {
        if bytes.len() == 24 && bytes[3] == 0 {
            bytes.truncate(20);
        }
    }),
    incoming("lengths are not looked at", "A03", |bytes| {
        if bytes.len() == 20 {
            bytes[2..4].copy_from_slice(&[0, 0]);
        }
    }),
    incoming("first bits are not looked at", "A02,A03", |bytes| bytes[0] = 0),
];

/// Judges a server with a fault, and returns what is wrong with the judgement.
fn wrong(server: &Server, fault: &Fault, flags: &[&str]) -> Option<String> {
    let broken = Broken::start(server.listen[0], fault.breach);
    let uri = format!("turn:{}?transport=udp", broken.addr);
    let judged = judge(&uri, &[flags, &["--only", fault.failing]].concat());
    let expected: Vec<_> = fault.failing.split(',').collect();
    let failed = judged.ids("failed");
    let is_right = judged.status == Some(1) && expected.iter().all(|id| failed.iter().any(|failed| failed == id));
    (!is_right).then(|| format!("{}: expected {expected:?}, failed {failed:?}: {:#?}", fault.name, judged.rows))
}

fn all_wrong(faults: &[Fault], more: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path());
    let flags = [&credentials.each_ref().map(String::as_str)[..2], more].concat();
    let server = Server::start(&[FLAGS, &["--user-allocations-per-second", "0"]].concat());
    let judge_some = |first: usize| -> Vec<String> {
        faults.iter().skip(first).step_by(THREADS).filter_map(|fault| wrong(&server, fault, &flags)).collect()
    };
    thread::scope(|scope| {
        let runs: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || judge_some(first))).collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    })
}

#[test]
fn a_server_between_that_breaks_nothing_passes() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path());
    let server = Server::start(FLAGS);
    let broken = Broken::start(server.listen[0], Breach::NONE);
    let uri = format!("turn:{}?transport=udp", broken.addr);
    let judged = judge(&uri, &credentials.each_ref().map(String::as_str)[..2]);
    assert_eq!(judged.with_result("failed"), Vec::<String>::new(), "{:#?}", judged.rows);
    assert_eq!(judged.status, Some(0));
    server.stop();
}

#[test]
fn each_broken_rule_is_found() {
    let wrong = all_wrong(FAULTS, &[]);
    assert_eq!(wrong, Vec::<String>::new(), "{}", wrong.join("\n"));
}

#[test]
fn each_fault_of_malformed_messages_is_found() {
    let wrong = all_wrong(HOSTILE, &["--hostile"]);
    assert_eq!(wrong, Vec::<String>::new(), "{}", wrong.join("\n"));
}

#[test]
fn a_stream_that_is_cut_wrongly_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path());
    let server = Server::start(FLAGS);
    let uri = format!("turn:{}?transport=tcp", start_stream(server.tcp[0]));
    let flags = [&credentials.each_ref().map(String::as_str)[..2], &["--only", "A70,R112"]].concat();
    let judged = judge(&uri, &flags);
    let failed = judged.ids("failed");
    assert_eq!(failed, ["A70", "R112"], "{:#?}", judged.rows);
    let of = |id: &str| judged.rows.iter().filter(|row| text(row, "id") == id && row["result"] == "failed").count();
    assert_eq!(of("A70"), 5, "{:#?}", judged.rows);
    server.stop();
}
