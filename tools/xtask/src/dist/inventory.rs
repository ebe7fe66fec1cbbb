//! What the program contains: a bill of materials (CycloneDX 1.5), licences of its dependencies, checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::record::Record;
use super::shop::{Shop, len, output, sha256};

/// Ends of the files in target/dist that are for others.
const RELEASED: [&str; 7] = [".tar.gz", ".deb", ".tar", ".whl", ".crate", ".json", ".txt"];

pub(super) fn make(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &target]);
    let metadata: Value = serde_json::from_str(&output(cargo.current_dir(&shop.root))?)?;
    let packages = linked(&metadata)?;
    let lock: toml::Table = std::fs::read_to_string(shop.root.join("Cargo.lock"))?.parse()?;
    let bill = bill_of_materials(&packages, &checksums_of(&lock));
    let path = shop.folder.join(format!("truetick-{}.cdx.json", shop.version));
    std::fs::write(&path, serde_json::to_string_pretty(&bill)? + "\n")?;
    record.done(format!("{}: {} components", shop.name(&path), packages.len() - 1));
    let (text, without) = licences(&packages)?;
    let path = shop.folder.join("LICENCES-of-dependencies.txt");
    std::fs::write(&path, text)?;
    let without = if without.is_empty() { String::new() } else { format!("; no text in {}", without.join(", ")) };
    record.done(format!("{}: {} bytes{without}", shop.name(&path), len(&path)?));
    checksums(shop, &mut record)?;
    Ok(record)
}

/// The packages whose code the program contains, by name and version; the first is truetick.
fn linked(metadata: &Value) -> anyhow::Result<Vec<&Value>> {
    let list = |value: &'static str| metadata[value].as_array().context("no packages");
    let packages: BTreeMap<&str, &Value> =
        list("packages")?.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph")?;
    let nodes: BTreeMap<&str, &Value> = nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let root = packages.iter().find(|(_, package)| package["name"] == "truetick").map(|(id, _)| *id);
    let root = root.context("no truetick")?;
    let (mut found, mut open) = (BTreeSet::from([root]), vec![root]);
    while let Some(id) = open.pop() {
        for dependency in nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten() {
            // Those of tests have the kind `dev`, those of build scripts `build`.
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            let is_linked = kinds.into_iter().any(|kind| kind["kind"].is_null());
            if let Some(id) = dependency["pkg"].as_str().filter(|_| is_linked)
                && !packages.get(id).is_some_and(|package| is_macro(package))
                && found.insert(id)
            {
                open.push(id);
            }
        }
    }
    let mut linked: Vec<&Value> = found.iter().filter_map(|id| packages.get(id).copied()).collect();
    linked.sort_by_key(|package| {
        (package["name"] != "truetick", package["name"].to_string(), package["version"].to_string())
    });
    Ok(linked)
}

/// Macros run while the program is compiled, and are not part of it.
fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    targets.into_iter().any(|target| target["kind"][0] == "proc-macro")
}

/// SHA-256 of the packages of registries, by name and version.
fn checksums_of(lock: &toml::Table) -> BTreeMap<(String, String), String> {
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let text = |package: &toml::Value, key: &str| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    packages.filter_map(|of| Some(((text(of, "name")?, text(of, "version")?), text(of, "checksum")?))).collect()
}

fn bill_of_materials(packages: &[&Value], checksums: &BTreeMap<(String, String), String>) -> Value {
    let component = |package: &&Value| {
        let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default().to_owned());
        let url = format!("pkg:cargo/{name}@{version}");
        let mut component = json!({
            "type": "library", "bom-ref": url, "purl": url, "name": name, "version": version,
            "licenses": [{ "expression": package["license"].as_str().unwrap_or_default().replace('/', " OR ") }],
        });
        if let Some(checksum) = checksums.get(&(name, version)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let mut program = component(&packages[0]);
    program["type"] = "application".into();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": program },
        "components": packages[1..].iter().map(component).collect::<Vec<_>>(),
    })
}

/// The licences of the packages of others with their texts, and the names of those that contain no text.
fn licences(packages: &[&Value]) -> anyhow::Result<(String, Vec<String>)> {
    let (mut text, mut without) = (String::new(), Vec::new());
    for package in packages.iter().filter(|package| package["source"].is_string()) {
        let [name, version, licence] =
            ["name", "version", "license"].map(|key| package[key].as_str().unwrap_or_default());
        ensure!(!licence.is_empty(), "{name} {version} has no licence");
        text += &format!("{0}\n{name} {version}: {licence}\n{0}\n\n", "=".repeat(80));
        let folder =
            Path::new(package["manifest_path"].as_str().context("no manifest")?).parent().context("no folder")?;
        let mut files: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| is_licence(path));
        files.sort();
        if files.is_empty() {
            without.push(format!("{name} ({licence})"));
        }
        for file in files {
            text += &String::from_utf8_lossy(&std::fs::read(&file)?);
            text += "\n";
        }
    }
    Ok((text, without))
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_uppercase();
    let names = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
    path.is_file() && names.iter().any(|start| name.starts_with(start))
}

/// Writes SHA256SUMS, as `sha256sum --check` reads it.
fn checksums(shop: &Shop, record: &mut Record) -> anyhow::Result<()> {
    let files = std::fs::read_dir(&shop.folder)?.flatten().filter(|entry| entry.path().is_file());
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| RELEASED.iter().any(|end| name.ends_with(end))).collect();
    names.sort();
    let lines: anyhow::Result<Vec<String>> =
        names.iter().map(|name| Ok(format!("{}  {name}\n", sha256(&shop.folder.join(name))?))).collect();
    std::fs::write(shop.folder.join("SHA256SUMS"), lines?.concat())?;
    output(Command::new("sha256sum").args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(&shop.folder))?;
    record.done(format!("target/dist/SHA256SUMS: {} files, checked by sha256sum", names.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_lists_what_is_linked() {
        let package = |name: &str, kind: &str| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "targets": [{ "kind": [kind] }],
            })
        };
        let edge = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("truetick", "lib"), package("a", "lib"), package("b", "lib"), package("m", "proc-macro"),
                package("t", "lib"), package("c", "lib")],
            "resolve": { "nodes": [
                { "id": "truetick", "deps": [edge("b", Value::Null), edge("m", Value::Null), edge("t", "dev".into())] },
                { "id": "b", "deps": [edge("a", Value::Null), edge("c", "build".into())] },
            ] },
        });
        let linked = linked(&metadata).unwrap();
        let names: Vec<&str> = linked.iter().map(|package| package["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["truetick", "a", "b"]);
        let lock = "[[package]]\nname = \"b\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n".parse().unwrap();
        let bill = bill_of_materials(&linked, &checksums_of(&lock));
        assert_eq!(bill["metadata"]["component"]["name"], "truetick");
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "00ff");
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
