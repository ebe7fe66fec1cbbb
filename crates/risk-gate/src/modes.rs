//! Modes that outlive the process.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use tt_risk::{Controls, KillSwitch, Mode};

/// First line of the file.
const HEADER: &str = "# Modes of the gate, in force after a restart: MODE SCOPE. Written by truetick.";

/// The file of modes: at a path, or on a test's disk.
pub trait ModesFile: fmt::Debug + Send + Sync {
    /// Returns what an error calls it.
    fn name(&self) -> String;

    /// Returns its text; `None` without a file.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self) -> io::Result<Option<String>>;

    /// Writes the next text to another place.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self, text: &str) -> io::Result<()>;

    /// Waits until the next text is on the disk.
    ///
    /// # Errors
    /// The disk reports an error.
    fn sync(&self) -> io::Result<()>;

    /// Puts the next text in its place, on the disk too: a crash leaves the old text or the next.
    ///
    /// # Errors
    /// The disk reports an error.
    fn replace(&self) -> io::Result<()>;
}

#[derive(Debug)]
struct AtPath(PathBuf);

impl AtPath {
    fn next(&self) -> PathBuf {
        self.0.with_extension("new")
    }
}

impl ModesFile for AtPath {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn read(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        fs::write(self.next(), text)
    }

    fn sync(&self) -> io::Result<()> {
        File::open(self.next())?.sync_all()
    }

    fn replace(&self) -> io::Result<()> {
        fs::rename(self.next(), &self.0)?;
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// The modes of a gate in a file, which is synced before a change counts.
#[derive(Debug)]
pub struct Modes {
    file: Box<dyn ModesFile>,
    controls: Arc<Controls>,
    /// By instrument: its symbol.
    symbols: Vec<String>,
    kept: Mutex<Kept>,
}

/// The modes that the file has, or is to have.
#[derive(Debug, Default)]
struct Kept {
    /// By scope: the mode, unless active.
    modes: BTreeMap<String, Mode>,
    /// Whether the file could not be written.
    is_unwritten: bool,
}

impl Modes {
    /// Reads the modes at `path` and puts them in force in `controls`. Without a file, all are active.
    ///
    /// `symbols` names each instrument by its id. A mode of an instrument without a symbol here is kept.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no mode; the error names the line.
    pub fn open(path: &Path, controls: Arc<Controls>, symbols: Vec<String>) -> Result<Self> {
        Self::open_on(Box::new(AtPath(path.to_owned())), controls, symbols)
    }

    /// As [`open`](Self::open), of any file.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_on(file: Box<dyn ModesFile>, controls: Arc<Controls>, symbols: Vec<String>) -> Result<Self> {
        let name = file.name();
        let text = file.read().with_context(|| format!("cannot read {name}"))?.unwrap_or_default();
        let mut kept = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let (scope, mode) = parse(line).with_context(|| format!("{name}, line {number}"))?;
            kept.insert(scope.to_owned(), mode);
        }
        let modes = Self { file, controls, symbols, kept: Mutex::default() };
        for (scope, mode) in &kept {
            let switch = modes.switch(scope).with_context(|| format!("{name}: {scope}"))?;
            if let Some(switch) = switch {
                modes.controls.set_mode(switch, *mode);
            }
        }
        Ok(Self { kept: Mutex::new(Kept { modes: kept, is_unwritten: false }), ..modes })
    }

    /// Sets `switch` to `mode`, on disk first; returns the mode before.
    ///
    /// # Errors
    /// The file cannot be written. A stricter mode is in force then too, and is written with the next change or by
    /// [`write_again`](Self::write_again); else it ends with the process. A wider one is not in force.
    pub fn set(&self, switch: KillSwitch, mode: Mode) -> Result<Mode> {
        let scope = self.scope(switch)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.controls.mode(switch);
        let mut changed = kept.modes.clone();
        match mode {
            Mode::Active => changed.remove(&scope),
            Mode::Reduce | Mode::Kill => changed.insert(scope, mode),
        };
        let written = self.write(&changed);
        if written.is_ok() || mode > before {
            *kept = Kept { modes: changed, is_unwritten: written.is_err() };
            self.controls.set_mode(switch, mode);
        }
        written.with_context(|| format!("cannot write {}", self.file.name()))?;
        Ok(before)
    }

    /// Writes the modes that could not be written before, if there are any.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_again(&self) -> Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_unwritten {
            self.write(&kept.modes).with_context(|| format!("cannot write {}", self.file.name()))?;
            kept.is_unwritten = false;
        }
        Ok(())
    }

    /// Replaces the file: a crash leaves the old one or the new one.
    fn write(&self, modes: &BTreeMap<String, Mode>) -> io::Result<()> {
        let mut text = format!("{HEADER}\n");
        for (scope, mode) in modes {
            text += &format!("{} {scope}\n", word(*mode));
        }
        self.file.write(&text)?;
        self.file.sync()?;
        self.file.replace()
    }

    fn scope(&self, switch: KillSwitch) -> Result<String> {
        Ok(match switch {
            KillSwitch::Global => "global".to_owned(),
            KillSwitch::Account(account) => format!("account {account}"),
            KillSwitch::Strategy(strategy) => format!("strategy {strategy}"),
            KillSwitch::Instrument(id) => {
                let symbol = self.symbols.get(id.0 as usize).context("no such instrument")?;
                format!("instrument {symbol}")
            }
        })
    }

    /// Returns the switch of `scope`; `None` for an instrument that the gate does not have.
    fn switch(&self, scope: &str) -> Result<Option<KillSwitch>> {
        let (level, name) = scope.split_once(' ').unwrap_or((scope, ""));
        Ok(match level {
            "global" if name.is_empty() => Some(KillSwitch::Global),
            "account" => Some(KillSwitch::Account(name.parse().context("not an account")?)),
            "strategy" => Some(KillSwitch::Strategy(name.parse().context("not a strategy")?)),
            "instrument" => {
                let mut numbered = (0..).zip(&self.symbols);
                let found = numbered.find(|(_, symbol)| *symbol == name);
                found.map(|(id, _)| KillSwitch::Instrument(tt_model::InstrumentId(id)))
            }
            _ => bail!("not a scope"),
        })
    }
}

const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Active => "active",
        Mode::Reduce => "reduce",
        Mode::Kill => "kill",
    }
}

/// Reads `MODE SCOPE`.
fn parse(line: &str) -> Result<(&str, Mode)> {
    let (mode, scope) = line.split_once(' ').context("not `MODE SCOPE`")?;
    let mode = match mode {
        "kill" => Mode::Kill,
        "reduce" => Mode::Reduce,
        _ => bail!("`{mode}` is not kill or reduce"),
    };
    Ok((scope, mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_model::InstrumentId;
    use tt_risk::{Capacity, Gate};

    const CAPACITY: Capacity =
        Capacity { accounts: 2, instruments: 2, producers: 1, orders: 1, executions: 1, routes: 0, currencies: 0 };

    fn open(path: &Path, symbols: [&str; 2]) -> Result<(Modes, Arc<Controls>)> {
        let controls = Gate::new(CAPACITY).controls();
        let modes = Modes::open(path, Arc::clone(&controls), symbols.map(str::to_owned).to_vec())?;
        Ok((modes, controls))
    }

    #[test]
    fn case_k18_modes_are_in_force_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("modes");
        let switches = [
            (KillSwitch::Global, Mode::Reduce),
            (KillSwitch::Account(7), Mode::Kill),
            (KillSwitch::Strategy(9), Mode::Reduce),
            (KillSwitch::Instrument(InstrumentId(1)), Mode::Kill),
        ];
        let (modes, controls) = open(&path, ["A/B", "C/D"]).unwrap();
        for (switch, mode) in switches {
            assert_eq!(modes.set(switch, mode).unwrap(), Mode::Active);
            assert_eq!(controls.mode(switch), mode);
            let (_, restarted) = open(&path, ["A/B", "C/D"]).unwrap();
            assert_eq!(restarted.mode(switch), mode);
        }
        // The symbol names the instrument, whatever its number is now.
        let (renumbered, controls) = open(&path, ["C/D", "A/B"]).unwrap();
        assert_eq!(controls.mode(KillSwitch::Instrument(InstrumentId(0))), Mode::Kill);
        assert_eq!(controls.mode(KillSwitch::Instrument(InstrumentId(1))), Mode::Active);
        assert_eq!(renumbered.set(KillSwitch::Account(7), Mode::Active).unwrap(), Mode::Kill);
        // An instrument that the gate does not have keeps its mode.
        let (without, _) = open(&path, ["A/B", "E/F"]).unwrap();
        without.set(KillSwitch::Global, Mode::Active).unwrap();
        let (_, restarted) = open(&path, ["A/B", "C/D"]).unwrap();
        assert_eq!(restarted.mode(KillSwitch::Instrument(InstrumentId(1))), Mode::Kill);
        assert_eq!(restarted.mode(KillSwitch::Global), Mode::Active);
        assert_eq!(restarted.mode(KillSwitch::Account(7)), Mode::Active);
    }

    #[test]
    fn a_mode_that_cannot_be_written_is_in_force_if_it_is_stricter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone").join("modes");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let (modes, controls) = open(&path, ["A/B", "C/D"]).unwrap();
        modes.set(KillSwitch::Account(0), Mode::Kill).unwrap();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        modes.set(KillSwitch::Account(0), Mode::Active).unwrap_err();
        assert_eq!(controls.mode(KillSwitch::Account(0)), Mode::Kill);
        modes.set(KillSwitch::Global, Mode::Kill).unwrap_err();
        assert_eq!(controls.mode(KillSwitch::Global), Mode::Kill);
        modes.write_again().unwrap_err();
        // What had no room is written once there is some.
        fs::create_dir(path.parent().unwrap()).unwrap();
        modes.write_again().unwrap();
        let restarted = open(&path, ["A/B", "C/D"]).unwrap().1;
        assert_eq!([KillSwitch::Global, KillSwitch::Account(0)].map(|of| restarted.mode(of)), [Mode::Kill; 2]);
        fs::remove_file(&path).unwrap();
        modes.write_again().unwrap();
        assert!(!path.exists(), "nothing was left to write");
    }

    #[test]
    fn a_line_that_is_no_mode_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("modes");
        for line in ["kill", "stop global", "kill globally", "kill account x", "reduce strategy 70000", "active global"]
        {
            fs::write(&path, format!("{HEADER}\nkill account 1\n{line}\n")).unwrap();
            let error = format!("{:#}", open(&path, ["A/B", "C/D"]).unwrap_err());
            assert!(error.contains("modes"), "{line}: {error}");
        }
    }
}
