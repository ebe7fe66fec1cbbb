//! A table of a limits file, whose every key is read once; errors name the line.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use tt_model::Decimal;
use tt_risk::Rate;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) key: &'static str,
    pub(super) text: String,
    pub(super) line: usize,
}

/// When a file is read, and the times at which its temporary limits revert.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) at_ns: u64,
    pub(super) untils: BTreeSet<u64>,
}

/// A table, and the temporary values that are in force in it.
#[derive(Debug)]
pub(super) struct Block<'a> {
    lines: &'a Lines,
    /// What errors call it; empty for the file itself.
    pub(super) place: String,
    pub(super) line: usize,
    table: &'a DeTable<'a>,
    temporary: Option<&'a DeTable<'a>>,
    /// Whether the temporary values are in force.
    is_temporary: bool,
    read: BTreeSet<&'static str>,
    /// Keys of values, which may be temporary.
    values: BTreeSet<&'static str>,
}

impl<'a> Block<'a> {
    pub(super) fn root(lines: &'a Lines, table: &'a DeTable<'a>) -> Self {
        Self::new(lines, String::new(), 1, table)
    }

    fn new(lines: &'a Lines, place: String, line: usize, table: &'a DeTable<'a>) -> Self {
        let (read, values) = (BTreeSet::new(), BTreeSet::new());
        Self { lines, place, line, table, temporary: None, is_temporary: false, read, values }
    }

    fn line_of(&self, at: usize) -> usize {
        self.lines.at(at)
    }

    /// Returns an error at `line`.
    pub(super) fn error(&self, line: usize, error: impl std::fmt::Display) -> anyhow::Error {
        if self.place.is_empty() {
            return anyhow!("line {line}: {error}");
        }
        anyhow!("line {line}: {}: {error}", self.place)
    }

    /// Puts the table `temporary` in force while its time `until` has not come.
    pub(super) fn take_temporary(&mut self, moment: &mut Moment) -> Result<()> {
        self.read.insert("temporary");
        let Some((key, value)) = self.table.get_key_value("temporary") else { return Ok(()) };
        let line = self.line_of(key.span().start);
        let table = value.get_ref().as_table().ok_or_else(|| self.error(line, "temporary: not a table"))?;
        let until = table.get("until").and_then(|until| until.get_ref().as_str());
        let until = until.ok_or_else(|| self.error(line, "temporary: `until` is missing"))?;
        let until_ns = unix_ns(until).map_err(|error| self.error(line, format!("until = {until}: {error}")))?;
        moment.untils.insert(until_ns);
        self.temporary = Some(table);
        self.is_temporary = moment.at_ns < until_ns;
        Ok(())
    }

    fn value(&mut self, key: &'static str) -> Option<(usize, &'a DeValue<'a>)> {
        self.read.insert(key);
        self.values.insert(key);
        let over = self.temporary.filter(|_| self.is_temporary).and_then(|table| table.get_key_value(key));
        let (name, value) = over.or_else(|| self.table.get_key_value(key))?;
        Some((self.line_of(name.span().start), value.get_ref()))
    }

    fn missing(&self, key: &str) -> anyhow::Error {
        self.error(self.line, format!("`{key}` is missing"))
    }

    fn other_kind(&self, line: usize, key: &str, value: &DeValue<'_>, expected: &str) -> anyhow::Error {
        let shown = match value {
            DeValue::String(text) => format!("\"{text}\""),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(is) => is.to_string(),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => value.type_str().to_owned(),
        };
        self.error(line, format!("{key} = {shown}: expected {expected}"))
    }

    /// Returns a text.
    pub(super) fn text(&mut self, key: &'static str) -> Result<Text> {
        self.optional_text(key)?.ok_or_else(|| self.missing(key))
    }

    /// Returns a text that may be missing.
    pub(super) fn optional_text(&mut self, key: &'static str) -> Result<Option<Text>> {
        let Some((line, value)) = self.value(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.other_kind(line, key, value, "a string"))?;
        Ok(Some(Text { key, text: text.to_owned(), line }))
    }

    /// Returns a text that may be `"off"`.
    pub(super) fn text_or_off(&mut self, key: &'static str) -> Result<Option<Text>> {
        let text = self.text(key)?;
        Ok((text.text != "off").then_some(text))
    }

    /// Returns one of `words`, by its place.
    pub(super) fn word(&mut self, key: &'static str, words: &[&str]) -> Result<usize> {
        let Text { text, line, .. } = self.text(key)?;
        let found = words.iter().position(|word| *word == text);
        found.ok_or_else(|| self.error(line, format!("{key} = \"{text}\": expected {}", words.join(" or "))))
    }

    /// Returns a whole number.
    pub(super) fn number(&mut self, key: &'static str) -> Result<u64> {
        self.optional_number(key)?.ok_or_else(|| self.missing(key))
    }

    /// Returns a whole number that may be missing.
    pub(super) fn optional_number(&mut self, key: &'static str) -> Result<Option<u64>> {
        let Some((line, value)) = self.value(key) else { return Ok(None) };
        self.whole(line, key, value).map(Some)
    }

    fn whole(&self, line: usize, key: &str, value: &DeValue<'_>) -> Result<u64> {
        let number = value.as_integer().filter(|number| number.radix() == 10);
        let number = number.and_then(|number| number.as_str().replace('_', "").parse().ok());
        number.ok_or_else(|| self.other_kind(line, key, value, "a whole number"))
    }

    /// Returns a whole number of a narrower type.
    pub(super) fn narrow<T: TryFrom<u64>>(&mut self, key: &'static str) -> Result<T> {
        let number = self.number(key)?;
        T::try_from(number).map_err(|_| self.error(self.line, format!("{key} = {number} is too large")))
    }

    /// Returns a whole number of a key that may be `"off"`.
    pub(super) fn number_or_off(&mut self, key: &'static str) -> Result<Option<u32>> {
        if let Some((_, value)) = self.value(key)
            && value.as_str() == Some("off")
        {
            return Ok(None);
        }
        self.narrow(key).map(Some)
    }

    /// Returns basis points below the whole.
    pub(super) fn bps(&mut self, key: &'static str) -> Result<u32> {
        let bps = self.narrow(key)?;
        self.check_bps(key, bps).map(|()| bps)
    }

    /// Returns basis points below the whole of a key that may be `"off"`.
    pub(super) fn bps_or_off(&mut self, key: &'static str) -> Result<Option<u32>> {
        let bps = self.number_or_off(key)?;
        bps.map_or(Ok(()), |bps| self.check_bps(key, bps)).map(|()| bps)
    }

    fn check_bps(&mut self, key: &'static str, bps: u32) -> Result<()> {
        let line = self.value(key).map_or(self.line, |(line, _)| line);
        ensure!(bps <= 9_999, self.error(line, format!("{key} = {bps} is above 9999")));
        Ok(())
    }

    /// Returns milliseconds in nanoseconds.
    pub(super) fn ms(&mut self, key: &'static str) -> Result<u64> {
        let ms = self.number(key)?;
        ms.checked_mul(1_000_000).ok_or_else(|| self.error(self.line, format!("{key} = {ms} is too large")))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool> {
        let Some((line, value)) = self.value(key) else { return Err(self.missing(key)) };
        value.as_bool().ok_or_else(|| self.other_kind(line, key, value, "true or false"))
    }

    /// Returns a message rate: `{ per-second = 10, burst = 2 }`.
    pub(super) fn rate(&mut self, key: &'static str) -> Result<Rate> {
        let Some((line, value)) = self.value(key) else { return Err(self.missing(key)) };
        let table = value.as_table().ok_or_else(|| self.other_kind(line, key, value, "a table"))?;
        let mut block = Self::new(self.lines, self.within(key), line, table);
        let rate = Rate { per_second: block.narrow("per-second")?, burst: block.narrow("burst")? };
        block.finish().map(|()| rate)
    }

    fn within(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}: {name}", self.place) }
    }

    /// Returns the table of `key`; `None` if it is missing.
    pub(super) fn table(&mut self, key: &'static str, place: &str) -> Result<Option<Block<'a>>> {
        self.read.insert(key);
        let Some((name, value)) = self.table.get_key_value(key) else { return Ok(None) };
        self.child(name, value, place).map(Some)
    }

    /// Returns the tables in the table of `key`, by name.
    pub(super) fn tables(
        &mut self,
        key: &'static str,
        place: impl Fn(&str) -> String,
    ) -> Result<Vec<(&'a str, Block<'a>)>> {
        let Some(outer) = self.table(key, key)? else { return Ok(Vec::new()) };
        let child = |(name, value): (&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>)| {
            Ok((&**name.get_ref(), self.child(name, value, &place(name.get_ref()))?))
        };
        outer.table.iter().map(child).collect()
    }

    /// Returns the tables in the array of `key`.
    pub(super) fn array(&mut self, key: &'static str) -> Result<Option<Vec<Block<'a>>>> {
        let Some((line, value)) = self.value(key) else { return Ok(None) };
        let DeValue::Array(array) = value else { return Err(self.other_kind(line, key, value, "an array")) };
        let element = |element: &'a Spanned<DeValue<'a>>| {
            let table = element.get_ref().as_table();
            let table = table.ok_or_else(|| self.other_kind(line, key, element.get_ref(), "a table"))?;
            Ok(Self::new(self.lines, self.within(key), self.line_of(element.span().start), table))
        };
        array.iter().map(element).collect::<Result<_>>().map(Some)
    }

    fn child(
        &self,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &'a Spanned<DeValue<'a>>,
        place: &str,
    ) -> Result<Block<'a>> {
        let line = self.line_of(name.span().start);
        let table = value.get_ref().as_table();
        let table = table.ok_or_else(|| self.other_kind(line, name.get_ref(), value.get_ref(), "a table"))?;
        Ok(Self::new(self.lines, place.to_owned(), line, table))
    }

    /// Returns an error if a key was not read.
    pub(super) fn finish(self) -> Result<()> {
        if let Some(key) = self.table.keys().find(|key| !self.read.contains(&**key.get_ref())) {
            let line = self.line_of(key.span().start);
            return Err(self.error(line, format!("unknown key `{}`", key.get_ref())));
        }
        let temporary = self.temporary.into_iter().flat_map(|table| table.keys());
        for key in temporary.filter(|key| **key.get_ref() != *"until") {
            let line = self.line_of(key.span().start);
            let name = &**key.get_ref();
            ensure!(self.values.contains(name), self.error(line, format!("temporary: unknown key `{name}`")));
            // It is not alone: without the temporary value there is another.
            ensure!(self.table.contains_key(name), self.missing(name));
        }
        Ok(())
    }
}

/// Where the lines of a text end.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// Returns the number of the line at byte `at`.
    pub(super) fn at(&self, at: usize) -> usize {
        1 + self.0.partition_point(|end| *end < at)
    }
}

/// Returns an RFC 3339 time in nanoseconds since the Unix epoch.
fn unix_ns(text: &str) -> Result<u64> {
    let time = humantime::parse_rfc3339(text).context("not a time such as 2026-12-01T00:00:00Z")?;
    let since = time.duration_since(std::time::UNIX_EPOCH).context("before 1970")?;
    u64::try_from(since.as_nanos()).context("too late")
}

impl Text {
    /// Returns the number at `decimals`, at least zero.
    pub(super) fn steps(&self, decimals: u8) -> Result<i64> {
        let Self { key, text, .. } = self;
        let steps = Decimal::steps(text, decimals)
            .with_context(|| format!("{key} = {text} is not a decimal number with at most {decimals} decimals"))?;
        if steps < 0 {
            bail!("{key} = {text} is below zero");
        }
        Ok(steps)
    }

    /// Returns a positive decimal number, as written.
    pub(super) fn positive(&self) -> Result<Decimal> {
        let Self { key, text, .. } = self;
        let number = Decimal::parse_unsigned(text.as_bytes()).ok().filter(|number| number.mantissa > 0);
        number.with_context(|| format!("{key} = {text} is not a positive decimal number"))
    }
}
