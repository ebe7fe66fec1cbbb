//! The instructions of deploy/container/Dockerfile as an image's configuration.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

/// What an image is made of.
pub(super) struct Dockerfile {
    /// File of the context, and its place in the image.
    pub(super) copies: Vec<(String, String)>,
    /// As in the configuration of an OCI image, with Docker's `Healthcheck`.
    pub(super) config: Value,
}

impl Dockerfile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text)
    }

    /// Parses the few instructions that the file uses; another one is an error.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut file = Self { copies: Vec::new(), config: json!({ "Labels": {}, "ExposedPorts": {} }) };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (instruction, value) = line.split_once(' ').with_context(|| line.to_owned())?;
            let config = &mut file.config;
            match instruction {
                "FROM" => ensure!(value == "scratch", "the image begins with {value}"),
                "LABEL" => {
                    let (name, value) = value.split_once('=').with_context(|| line.to_owned())?;
                    config["Labels"][name] = serde_json::from_str(value)?;
                }
                "COPY" => {
                    let (from, to) = value.split_once(' ').with_context(|| line.to_owned())?;
                    file.copies.push((from.to_owned(), to.to_owned()));
                }
                "USER" => config["User"] = value.into(),
                "EXPOSE" => value.split(' ').for_each(|port| config["ExposedPorts"][port] = json!({})),
                "STOPSIGNAL" => config["StopSignal"] = value.into(),
                "HEALTHCHECK" => {
                    let words = value.strip_prefix("CMD ").with_context(|| line.to_owned())?;
                    let mut test = vec![Value::from("CMD")];
                    test.extend(serde_json::from_str::<Vec<Value>>(words)?);
                    config["Healthcheck"] = json!({ "Test": test });
                }
                "ENTRYPOINT" => config["Entrypoint"] = serde_json::from_str(value)?,
                "CMD" => config["Cmd"] = serde_json::from_str(value)?,
                _ => bail!("unknown instruction {instruction}"),
            }
        }
        Ok(file)
    }

    /// The words of a command in the configuration.
    pub(super) fn words(&self, key: &str) -> Vec<String> {
        let value = if key == "Healthcheck" { &self.config[key]["Test"] } else { &self.config[key] };
        let words = value.as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_has_a_user_without_privileges_and_a_health_check() {
        let file = Dockerfile::read(&crate::workspace_root().join("deploy/container/Dockerfile")).unwrap();
        assert_eq!(file.config["User"], "65532:65532");
        assert_eq!(file.words("Healthcheck"), ["CMD", "/truetick", "stun", "127.0.0.1:3478"]);
        assert_eq!((file.words("Entrypoint"), file.words("Cmd")), (vec!["/truetick".into()], vec!["turn".into()]));
        assert_eq!(file.copies[0], ("truetick".into(), "/truetick".into()));
    }

    #[test]
    fn an_instruction_that_it_does_not_know_is_an_error() {
        assert!(Dockerfile::parse("FROM scratch\nRUN true\n").is_err());
        assert!(Dockerfile::parse("FROM debian\n").is_err());
    }
}
