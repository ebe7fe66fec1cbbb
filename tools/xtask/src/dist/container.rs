//! The container images: an OCI archive from deploy/container/Dockerfile without a daemon, and the root file systems of
//! this image and of the bench's run as an ordinary user.

mod bench;
mod dockerfile;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use self::dockerfile::Dockerfile;
use super::program::{self, Build};
use super::record::Record;
use super::root::{Serving, namespaces};
use super::shop::{Shop, has, len, output, sha256};

const CONTEXT: &str = "deploy/container";
/// The address that the test's STUN server claims to see (RFC 5737).
const CLAIMED: [u8; 4] = [192, 0, 2, 7];

/// Makes the image and runs it.
pub(super) fn make(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let program = program::of_this_machine(shop, Build::Distribution, &mut record)?;
    let file = Dockerfile::read(&shop.root.join(CONTEXT).join("Dockerfile"))?;
    let context = shop.empty("container")?;
    for name in ["Dockerfile", "passwd", "group"] {
        std::fs::copy(shop.root.join(CONTEXT).join(name), context.join(name))?;
    }
    std::fs::copy(&program, context.join("truetick"))?;
    let root = shop.empty("container-root")?;
    for (from, to) in &file.copies {
        let to = root.join(to.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        std::fs::copy(context.join(from), &to).with_context(|| to.display().to_string())?;
    }
    let archive = archive(shop, &file, &root)?;
    record.done(format!("{}: {} bytes, SHA-256 {}", shop.name(&archive), len(&archive)?, &sha256(&archive)?[..16]));
    build_by_buildah(&file, &context, &mut record)?;
    run(&file, &root, &mut record)?;
    bench::make(shop, &program, &mut record)?;
    Ok(record)
}

/// Packs `root` as an OCI image (image-spec 1.1: image-layout, manifest, config).
fn archive(shop: &Shop, file: &Dockerfile, root: &Path) -> anyhow::Result<PathBuf> {
    let layout = shop.empty("container-oci")?;
    let blobs = layout.join("blobs/sha256");
    std::fs::create_dir_all(&blobs)?;
    let layer = shop.folder.join("container-layer.tar");
    shop.pack(root, &layer, &["."])?;
    let layer_digest = sha256(&layer)?;
    let layer_len = len(&layer)?;
    std::fs::rename(&layer, blobs.join(&layer_digest))?;
    let config = json!({
        "architecture": if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" },
        "os": "linux",
        "config": file.config,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
        "history": [{ "created_by": "cargo xtask dist container" }],
    });
    let blob = |value: &Value, kind: &str| -> anyhow::Result<Value> {
        let path = blobs.join("new");
        std::fs::write(&path, serde_json::to_vec(value)?)?;
        let (digest, size) = (sha256(&path)?, len(&path)?);
        std::fs::rename(&path, blobs.join(&digest))?;
        let media = format!("application/vnd.oci.image.{kind}.v1+json");
        Ok(json!({ "mediaType": media, "digest": format!("sha256:{digest}"), "size": size }))
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(&config, "config")?,
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": format!("sha256:{layer_digest}"),
            "size": layer_len,
        }],
    });
    let mut entry = blob(&manifest, "manifest")?;
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": shop.version });
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry],
    });
    std::fs::write(layout.join("index.json"), serde_json::to_vec(&index)?)?;
    std::fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let archive = shop.folder.join(format!("truetick-{}-oci.tar", shop.version));
    shop.pack(&layout, &archive, &["blobs", "index.json", "oci-layout"])?;
    Ok(archive)
}

/// buildah reads the same Dockerfile: its image has the same configuration.
fn build_by_buildah(file: &Dockerfile, context: &Path, record: &mut Record) -> anyhow::Result<()> {
    if !has("buildah") {
        record.skipped("not built by buildah: it is not installed (Debian: buildah)");
        return Ok(());
    }
    let store = context.with_file_name("container-store");
    let buildah = || {
        let mut command = Command::new("buildah");
        command
            .args(["--storage-driver", "vfs", "--root"])
            .arg(store.join("root"))
            .arg("--runroot")
            .arg(store.join("run"));
        command
    };
    let arguments = ["bud", "--isolation", "chroot", "--format", "docker", "--tag", "truetick"];
    output(buildah().args(arguments).arg(context)).context("buildah")?;
    let inspected: Value = serde_json::from_str(&output(buildah().args(["inspect", "--type", "image", "truetick"]))?)?;
    let config = &inspected["Docker"]["config"];
    for key in ["User", "Entrypoint", "Cmd", "StopSignal", "ExposedPorts", "Labels"] {
        let ours = &file.config[key];
        let theirs = &config[key];
        // buildah adds a label with its own version.
        let is_same = match (ours.as_object(), theirs.as_object()) {
            (Some(ours), Some(theirs)) => ours.iter().all(|(key, value)| theirs.get(key) == Some(value)),
            _ => ours == theirs,
        };
        ensure!(is_same, "buildah has another {key}: {theirs}, not {ours}");
    }
    ensure!(config["Healthcheck"]["Test"] == file.config["Healthcheck"]["Test"], "buildah has another health check");
    record.done("buildah builds the Dockerfile without a daemon, to the same configuration as in the archive");
    Ok(())
}

/// Runs the image's root file system with its user, its environment and its health check.
fn run(file: &Dockerfile, root: &Path, record: &mut Record) -> anyhow::Result<()> {
    // Where runtimes mount them.
    for name in ["proc", "dev"] {
        std::fs::create_dir_all(root.join(name))?;
    }
    let user = file.config["User"].as_str().and_then(|user| user.split(':').next()).context("no user")?;
    let command = |environment: &[(&str, &str)]| {
        let mut command = namespaces(root, user)?;
        command.arg("--share-net");
        environment.iter().for_each(|(name, value)| {
            command.args(["--setenv", name, value]);
        });
        Ok::<_, String>(command)
    };
    let stun = claim_address()?;
    let environment = [("EXTERNAL_IP", "auto"), ("STUN_SERVER", stun.as_str())];
    let mut start = match command(&environment) {
        Ok(command) => command,
        Err(reason) => {
            record.skipped(format!("not run: {reason}"));
            return Ok(());
        }
    };
    start.args(file.words("Entrypoint")).args(file.words("Cmd"));
    // Other ports than the image's: those may be taken on this machine.
    let serving = Serving::start(start.args(["--listen", "127.0.0.1:0", "--relay-ip", "127.0.0.1"]))?;
    let claimed = format!("advertised as {}", CLAIMED.map(|byte| byte.to_string()).join("."));
    let relay = serving.banner.iter().find(|line| line.starts_with("relaying on")).context("no relay")?;
    ensure!(relay.ends_with(&claimed), "EXTERNAL_IP=auto: {relay}");
    record.done(format!("as user {user} in namespaces: ready; EXTERNAL_IP=auto asks a STUN server: \"{relay}\""));
    let port = serving.port()?;
    let health: Vec<String> = file.words("Healthcheck").into_iter().skip(1).collect();
    ensure!(health.iter().any(|word| word == "127.0.0.1:3478"), "the health check is of another port");
    let check = || {
        let words = health.iter().map(|word| word.replace(":3478", &format!(":{port}")));
        output(command(&[]).map_err(anyhow::Error::msg)?.args(words))
    };
    let seen = check()?;
    drop(serving);
    ensure!(check().is_err(), "the health check passes without a server");
    record.done(format!("its health check passes ({seen}), and fails when the server has ended"));
    let mut wrong = command(&[("EXTERNAL_IP", "auto")]).map_err(anyhow::Error::msg)?;
    let rejected = output(wrong.args(file.words("Entrypoint")).args(file.words("Cmd")));
    let error = rejected.err().context("it starts although nothing knows its address")?.to_string();
    ensure!(error.contains("EXTERNAL_IP=auto needs STUN_SERVER"), "{error}");
    record.done("EXTERNAL_IP=auto without STUN_SERVER is an error");
    Ok(())
}

/// Starts a STUN server that answers one request with an address that no socket has, written from RFC 8489.
fn claim_address() -> anyhow::Result<String> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let addr = socket.local_addr()?.to_string();
    thread::spawn(move || {
        let mut request = [0; 100];
        let Ok((20, from)) = socket.recv_from(&mut request) else { return };
        let mut response = vec![1, 1, 0, 12];
        response.extend(&request[4..20]);
        response.extend([0, 0x20, 0, 8, 0, 1, request[4], request[5]]);
        response.extend(CLAIMED.iter().zip(&request[4..8]).map(|(byte, cookie)| byte ^ cookie));
        // The client reports what does not arrive.
        let _ = socket.send_to(&response, from);
    });
    Ok(addr)
}
