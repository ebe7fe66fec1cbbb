//! `truetick credential`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha1::Sha1;
use testkit::turn_client::Client;

use crate::server::{Server, program};

const SECRET: &str = "north";

fn secret_file(folder: &Path) -> String {
    let path = folder.join("secret");
    fs::write(&path, format!("# for tests\n{SECRET}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn credential(file: &str, more: &[&str]) -> String {
    let arguments = [&["credential", "--secret-file", file, "--user", "alice"], more].concat();
    let output = Command::new(program()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_credential_is_valid_until_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret_file(folder.path());
    let server = Server::start(&["--listen", "127.0.0.1:0", "--auth-secret-file", &file]);
    let allocate = |ttl: &str| {
        let credential: Value = serde_json::from_str(&credential(&file, &["--ttl", ttl, "--json"])).unwrap();
        let text = |key: &str| credential[key].as_str().unwrap().to_owned();
        let (name, password) = (text("username"), text("password"));
        let mut mac = Hmac::<Sha1>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(name.as_bytes());
        assert_eq!(password, BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        Client::new(server.listen[0], &name, &password).allocate().map(drop)
    };
    assert_eq!((allocate("1h"), allocate("0s")), (Ok(()), Err(401)));
    server.stop();
}

#[test]
fn products_get_a_credential_or_the_file_of_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret_file(folder.path());
    for (product, expected) in [
        ("js", ":alice"),
        ("livekit", ":alice"),
        ("synapse", "turn_shared_secret"),
        ("jitsi", "external_service_secret"),
        ("nextcloud", "occ talk:turn:add"),
    ] {
        let text = credential(&file, &["--for", product, "--host", "relay.example.net"]);
        assert!(text.contains(expected) && text.contains("relay.example.net"), "{text}");
        assert_eq!(text.contains(&file), !text.contains(":alice"), "{product} has one of both: {text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}
