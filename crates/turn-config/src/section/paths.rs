//! A path, or a list of paths.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a path or a list of paths")]
enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(match Paths::deserialize(deserializer)? {
        Paths::One(path) => vec![path],
        Paths::Many(paths) => paths,
    })
}

pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    match paths {
        [path] => path.serialize(serializer),
        paths => paths.serialize(serializer),
    }
}
