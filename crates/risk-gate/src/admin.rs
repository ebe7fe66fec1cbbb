//! Control of a running gate for the control plane.

use std::sync::Arc;

use gate_limits::LimitsFile;
use tt_model::InstrumentId;
use tt_risk::{Controls, KillSwitch, Mode};
use tt_status::risk::{
    AdminError, CancelledOrders, GateAdmin, JournalRow, LimitsText, ModeChange, ModeRow, OpenOrderRow,
};

use crate::board::{Board, BoardRow};
use crate::control::{Acknowledged, Control};

/// Modes by their words.
const MODES: [(&str, Mode); 3] = [("active", Mode::Active), ("reduce", Mode::Reduce), ("kill", Mode::Kill)];

/// The names of a gate's scopes: `global`, `account:NAME`, `strategy:NAME`, `instrument:SYMBOL`.
#[derive(Clone, Copy, Debug)]
pub struct Scopes<'a> {
    limits: Option<&'a LimitsFile>,
    rows: &'a [BoardRow],
}

impl<'a> Scopes<'a> {
    /// Takes the names of a limits file, and the instruments of a board. A number is a name too.
    #[must_use]
    pub const fn new(limits: Option<&'a LimitsFile>, rows: &'a [BoardRow]) -> Self {
        Self { limits, rows }
    }

    /// Returns the mode of a word.
    ///
    /// # Errors
    /// [`AdminError::Unknown`].
    pub fn mode(word: &str) -> Result<Mode, AdminError> {
        let known = MODES.iter().find(|(known, _)| *known == word);
        known.map(|(_, mode)| *mode).ok_or_else(|| AdminError::Unknown(format!("`{word}` is no mode")))
    }

    /// Returns the switch of a scope.
    ///
    /// # Errors
    /// [`AdminError::Unknown`].
    pub fn switch(&self, scope: &str) -> Result<KillSwitch, AdminError> {
        let unknown = |what: &str, name: &str| AdminError::Unknown(format!("no {what} `{name}`"));
        let named = |of: fn(&LimitsFile, &str) -> Option<u16>, name: &str| match self.limits {
            Some(limits) => of(limits, name),
            None => name.parse().ok(),
        };
        match scope.split_once(':') {
            None if scope == "global" => Ok(KillSwitch::Global),
            Some(("account", name)) => {
                named(LimitsFile::account, name).map(KillSwitch::Account).ok_or_else(|| unknown("account", name))
            }
            Some(("strategy", name)) => {
                named(LimitsFile::strategy, name).map(KillSwitch::Strategy).ok_or_else(|| unknown("strategy", name))
            }
            Some(("instrument", name)) => self.instrument(name).map(KillSwitch::Instrument),
            _ => Err(AdminError::Unknown(format!(
                "`{scope}` is no scope: global, account:NAME, strategy:NAME or instrument:SYMBOL"
            ))),
        }
    }

    /// Returns the instrument with a symbol, or with `VENUE:SYMBOL`.
    fn instrument(&self, name: &str) -> Result<InstrumentId, AdminError> {
        let is_it = |row: &&BoardRow| row.symbol == name || full_name(row) == name;
        let mut found: Vec<_> = self.rows.iter().filter(is_it).map(|row| row.instrument).collect();
        found.dedup();
        match found[..] {
            [instrument] => Ok(instrument),
            [] => {
                let listed = self.limits.and_then(|limits| limits.find(name).ok().map(|(id, _)| id));
                listed.ok_or_else(|| AdminError::Unknown(format!("no instrument `{name}`")))
            }
            _ => Err(AdminError::Unknown(format!("`{name}` is at several venues: write instrument:VENUE:{name}"))),
        }
    }

    fn text(&self, switch: KillSwitch) -> String {
        match switch {
            KillSwitch::Global => "global".to_owned(),
            KillSwitch::Account(account) => format!("account:{account}"),
            KillSwitch::Strategy(strategy) => format!("strategy:{strategy}"),
            KillSwitch::Instrument(id) => {
                let row = self.rows.iter().find(|row| row.instrument == id).map(full_name);
                let listed = || Some(self.limits?.instrument(id)?.symbol.clone());
                format!("instrument:{}", row.or_else(listed).unwrap_or_else(|| id.0.to_string()))
            }
        }
    }

    /// Returns every scope of `switches` that is not active.
    #[must_use]
    pub fn modes(&self, switches: &Controls) -> Vec<ModeRow> {
        let mut rows = Vec::new();
        switches.each_mode(|switch, mode| rows.push(ModeRow { scope: self.text(switch), mode: word(mode) }));
        rows
    }

    /// Returns the change of `switch` to `mode`, as it is reported.
    #[must_use]
    pub fn change(&self, (switch, mode): (KillSwitch, Mode), acknowledged: Acknowledged) -> ModeChange {
        let Acknowledged { before, silent, senders, waited } = acknowledged;
        ModeChange {
            scope: self.text(switch),
            mode: word(mode),
            before: word(before),
            acknowledged: silent.is_empty(),
            silent,
            senders,
            waited_us: u64::try_from(waited.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// Control of a running gate by text.
#[derive(Debug)]
pub struct Admin {
    control: Control,
    board: Arc<Board>,
}

impl Admin {
    /// Takes the control and the board of a gate: scopes name its instruments.
    #[must_use]
    pub const fn new(control: Control, board: Arc<Board>) -> Self {
        Self { control, board }
    }
}

fn full_name(row: &BoardRow) -> String {
    if row.venue.is_empty() { row.symbol.clone() } else { format!("{}:{}", row.venue, row.symbol) }
}

fn word(mode: Mode) -> &'static str {
    MODES.iter().find(|(_, of)| *of == mode).map_or("active", |(word, _)| word)
}

impl GateAdmin for Admin {
    fn modes(&self) -> Vec<ModeRow> {
        let limits = self.control.limits();
        Scopes::new(limits.as_deref(), &self.board.rows).modes(self.control.switches())
    }

    fn set_mode(&self, scope: &str, mode: &str) -> Result<ModeChange, AdminError> {
        let limits = self.control.limits();
        let scopes = Scopes::new(limits.as_deref(), &self.board.rows);
        let (switch, mode) = (scopes.switch(scope)?, Scopes::mode(mode)?);
        let set = self.control.set_mode(switch, mode);
        let acknowledged = set.map_err(|error| AdminError::Failed(format!("{scope}, {}: {error:#}", word(mode))))?;
        Ok(scopes.change((switch, mode), acknowledged))
    }

    fn limits_version(&self) -> Option<u32> {
        Some(self.control.switches().limits_version())
    }

    fn journal(&self) -> Option<JournalRow> {
        self.control.journal().row()
    }

    fn limits(&self) -> Option<LimitsText> {
        let limits = self.control.limits()?;
        Some(limits_text(&limits, self.control.switches().limits_version()))
    }

    fn load(&self, text: &str) -> Result<LimitsText, AdminError> {
        let refused = |error: anyhow::Error| AdminError::Refused(format!("{error:#}"));
        let limits = LimitsFile::parse(text).map_err(refused)?;
        let version = self.control.load(limits.clone()).map_err(refused)?;
        Ok(limits_text(&limits, version))
    }

    fn cancel(&self, scope: &str) -> Result<CancelledOrders, AdminError> {
        let limits = self.control.limits();
        let scopes = Scopes::new(limits.as_deref(), &self.board.rows);
        let switch = scopes.switch(scope)?;
        let found = self.control.cancel_scope(switch).map_err(|error| AdminError::Refused(format!("{error:#}")))?;
        let open = found.open.into_iter().map(|(account, client_id)| OpenOrderRow { account, client_id });
        Ok(CancelledOrders { scope: scopes.text(switch), requested: found.requested as u64, open: open.collect() })
    }
}

/// Returns a limits file with its version and hash.
#[must_use]
pub fn limits_text(limits: &LimitsFile, version: u32) -> LimitsText {
    LimitsText { version, sha256: limits.hash_text(), text: limits.text().to_owned() }
}
