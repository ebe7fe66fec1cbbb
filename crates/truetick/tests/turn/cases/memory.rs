//! What the process keeps in its memory: requirement R063.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;

use super::stage::{Stage, UDP};
use testkit::{Requirement, require};

use crate::server::Server;
use crate::wire::{self, ALLOCATE};

/// Where `needle` occurs in writable memory of the process: the mapping, and the bytes around it.
fn found(pid: u32, needle: &[u8]) -> Option<Vec<String>> {
    let mut memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut places = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        memory.seek(SeekFrom::Start(start)).ok()?;
        let mut bytes = vec![0; usize::try_from(end - start).ok()?];
        // Pages of a device or of a guard cannot be read; there is no password in them.
        let length = memory.read(&mut bytes).unwrap_or(0);
        let bytes = &bytes[..length];
        for (at, _) in bytes.windows(needle.len()).enumerate().filter(|(_, window)| window == &needle) {
            let around = &bytes[at.saturating_sub(64)..length.min(at + needle.len() + 64)];
            places.push(format!("{line}, {} bytes before its end: {}", length - at, around.escape_ascii()));
        }
    }
    Some(places)
}

#[test]
fn rfc_r063_keys_are_kept_and_passwords_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let users = file("users", "benjamin-the-sleepless:a-password-like-no-other\n");
    let secrets = file("secrets", "a-secret-like-no-other-one\n");
    let on = ["--listen", "127.0.0.1:0", "--workers", "4", "--http", "127.0.0.1:0", "--allow-own-host", "127.0.0.0/8"];
    let stage = Stage::of(Server::start(&[&on[..], &["--user-file", &users, "--auth-secret-file", &secrets]].concat()));
    let mut caller = stage.caller();
    "benjamin-the-sleepless".clone_into(&mut caller.name);
    "a-password-like-no-other".clone_into(&mut caller.password);
    let request = caller.request(ALLOCATE).attr(wire::TRANSPORT, &UDP);
    assert_eq!(caller.ask(request).code(), 0);
    let passwords = found(stage.server.id(), b"a-password-like-no-other");
    let passwords = passwords.ok_or("the memory of another process may not be read");
    let Some(passwords) = require(Requirement::Privilege, passwords) else { return };
    assert_eq!(passwords, [""; 0], "the password itself is in memory");
    let secrets = found(stage.server.id(), b"a-secret-like-no-other-one").unwrap();
    assert_eq!(secrets, [""; 0], "the secret itself is in memory");
    // The search finds what is there: the password of the command line, and the realm.
    assert!(!found(stage.server.id(), b"truetick").unwrap().is_empty());
    assert!(!found(stage.server.id(), b"ann:correct horse").unwrap().is_empty());
    stage.probe();
}
