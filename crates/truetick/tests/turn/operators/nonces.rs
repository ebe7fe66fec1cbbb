//! Nonces of a fleet: a key that servers share, and its rotation.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::operated::{Operated, wait};

const FIRST: &str = "1111111111111111111111111111111111111111111111111111111111111111\n";
const SECOND: &str = "2222222222222222222222222222222222222222222222222222222222222222\n";

/// A server with `keys` in the file `nonce-keys` of the folder.
fn server(keys: &str) -> (Operated, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nonce-keys");
    std::fs::write(&path, keys).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    (Operated::start(&format!("nonce_key_file = {path:?}"), &[]), folder)
}

#[test]
fn a_nonce_of_one_server_holds_on_another_with_the_same_key() {
    let [(one, _first), (other, _second), (stranger, _third)] = [FIRST, FIRST, SECOND].map(server);
    let mut client = one.client("ann");
    client.allocate().unwrap();
    client.socket.connect(other.listen).unwrap();
    assert!(client.allocate().is_ok(), "the nonce of the first server is refused");
    client.socket.connect(stranger.listen).unwrap();
    assert_eq!(client.allocate(), Err(438));
}

#[test]
fn a_rotation_keeps_nonces_of_the_key_before_until_that_is_taken_away() {
    let ((one, _folder), (other, folder)) = (server(FIRST), server(&format!("{SECOND}{FIRST}")));
    let mut client = one.client("ann");
    client.allocate().unwrap();
    client.socket.connect(other.listen).unwrap();
    assert!(client.allocate().is_ok(), "the key before is refused");
    std::fs::write(folder.path().join("nonce-keys"), SECOND).unwrap();
    assert!(other.reload().contains("configuration reloaded"), "{}", other.log());
    wait("the key before counts for nothing", || client.refresh(600) == 438);
}
