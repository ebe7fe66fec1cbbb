//! The TOML of an import.

use toml::{Table, Value};

/// Sections `[turn]`, `[turn.quotas]` and `[http]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    turn: Table,
    quotas: Table,
    http: Table,
}

impl Document {
    /// Sets a key of `[turn]`.
    pub(crate) fn turn(&mut self, key: &str, value: impl Into<Value>) {
        self.turn.insert(key.to_owned(), value.into());
    }

    /// Sets a key of `[turn]` to a list, unless it is empty.
    pub(crate) fn turn_list(&mut self, key: &str, values: Vec<String>) {
        if !values.is_empty() {
            self.turn(key, values);
        }
    }

    /// Sets a key of `[turn.quotas]`.
    pub(crate) fn quota(&mut self, key: &str, value: impl Into<Value>) {
        self.quotas.insert(key.to_owned(), value.into());
    }

    /// Sets a key of `[http]`.
    pub(crate) fn http(&mut self, key: &str, value: impl Into<Value>) {
        self.http.insert(key.to_owned(), value.into());
    }

    pub(crate) fn to_toml(&self) -> String {
        let mut turn = self.turn.clone();
        if !self.quotas.is_empty() {
            turn.insert("quotas".to_owned(), self.quotas.clone().into());
        }
        let mut document = Table::new();
        for (name, table) in [("turn", turn), ("http", self.http.clone())] {
            if !table.is_empty() {
                document.insert(name.to_owned(), Value::Table(table));
            }
        }
        document.to_string()
    }
}
