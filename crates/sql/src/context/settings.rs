//! The settings of a session: `SET`, `SHOW`, `RESET`.

use super::Timeout;
use crate::error::{SqlError, SqlResult, SqlState};
use rhumb_commit::transaction::CommitOptions;
use std::collections::BTreeMap;
use std::time::Duration;

/// How statements read where nothing else says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPreference {
    /// Optimistic for autocommit writes, locking inside transactions.
    #[default]
    Default,
    /// Always optimistic, from the nearest replica; an autocommit statement that runs again reads the nearest active one.
    Optimistic,
    /// Always optimistic, from the nearest active replica.
    Active,
    /// Always locking.
    Locking,
}

/// The version of PostgreSQL whose behaviour clients may expect.
pub const SERVER_VERSION: &str = "15.0";
/// The name of the setting of [`ReadPreference`].
pub const READ_MODE: &str = "rhumb.read_mode";
/// The name of the setting of [`CommitOptions::two_rounds`].
const COMMIT_ROUNDS: &str = "rhumb.commit_rounds";
/// The name of the setting of [`CommitOptions::handoff`].
const COMMIT_HANDOFF: &str = "rhumb.commit_handoff";
/// The longest value of a setting, in bytes.
const VALUE_BYTES_MAX: usize = 4_096;

/// A setting: its name, its value at the start, whether the client is told when it changes, and how it may be set.
struct Known {
    name: &'static str,
    default: &'static str,
    reported: bool,
    rule: Rule,
}

enum Rule {
    /// Anything.
    Free,
    /// One of these, in any case; stored as written here.
    OneOf(&'static [&'static str]),
    /// A [`Timeout`]: milliseconds, or a number with a unit.
    Timeout,
    /// Cannot be changed.
    ReadOnly,
}

const fn known(name: &'static str, default: &'static str, reported: bool, rule: Rule) -> Known {
    Known { name, default, reported, rule }
}

const UTC: &[&str] = &["UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "+00:00", "+00", "0"];
const ON_OFF: &[&str] = &["on", "off"];

/// All settings, by name. Only those that change what Rhumb does are more than a courtesy to drivers.
const SETTINGS: &[Known] = &[
    known("application_name", "", true, Rule::Free),
    known("bytea_output", "hex", false, Rule::OneOf(&["hex"])),
    known("client_encoding", "UTF8", true, Rule::OneOf(&["UTF8", "UTF-8", "UNICODE"])),
    known("check_function_bodies", "on", false, Rule::OneOf(ON_OFF)),
    known("client_min_messages", "notice", false, Rule::Free),
    known("datestyle", "ISO, MDY", true, Rule::OneOf(&["ISO, MDY", "ISO", "ISO,MDY"])),
    known("default_table_access_method", "heap", false, Rule::OneOf(&["heap"])),
    known("default_tablespace", "", false, Rule::OneOf(&[""])),
    known("default_transaction_deferrable", "off", false, Rule::OneOf(ON_OFF)),
    known("default_transaction_isolation", "serializable", false, Rule::OneOf(ISOLATION)),
    known("default_transaction_read_only", "off", true, Rule::OneOf(ON_OFF)),
    known("escape_string_warning", "on", false, Rule::OneOf(ON_OFF)),
    known("extra_float_digits", "1", false, Rule::Free),
    known(Timeout::IdleInTransaction.setting(), Timeout::DEFAULT, false, Rule::Timeout),
    known("integer_datetimes", "on", true, Rule::ReadOnly),
    known("intervalstyle", "postgres", true, Rule::OneOf(&["postgres"])),
    known("is_superuser", "on", true, Rule::ReadOnly),
    known("jit", "off", false, Rule::OneOf(ON_OFF)),
    known("lc_messages", "C", false, Rule::Free),
    known("lc_monetary", "C", false, Rule::Free),
    known("lc_numeric", "C", false, Rule::Free),
    known("lc_time", "C", false, Rule::Free),
    known(Timeout::Lock.setting(), Timeout::DEFAULT, false, Rule::Timeout),
    known("max_identifier_length", "63", false, Rule::ReadOnly),
    known(COMMIT_HANDOFF, "on", false, Rule::OneOf(ON_OFF)),
    known(COMMIT_ROUNDS, "1", false, Rule::OneOf(&["1", "2"])),
    known(READ_MODE, "default", false, Rule::OneOf(&["default", "optimistic", "active", "locking"])),
    known("row_security", "on", false, Rule::OneOf(ON_OFF)),
    known("search_path", "\"$user\", public", false, Rule::Free),
    known("server_encoding", "UTF8", true, Rule::ReadOnly),
    known("server_version", SERVER_VERSION, true, Rule::ReadOnly),
    known("server_version_num", "150000", false, Rule::ReadOnly),
    known("session_authorization", "", true, Rule::ReadOnly),
    known("standard_conforming_strings", "on", true, Rule::OneOf(&["on"])),
    known("synchronous_commit", "on", false, Rule::OneOf(&["on"])),
    known(Timeout::Statement.setting(), Timeout::DEFAULT, false, Rule::Timeout),
    known("timezone", "UTC", true, Rule::OneOf(UTC)),
    known("transaction_deferrable", "off", false, Rule::ReadOnly),
    known("transaction_isolation", "serializable", false, Rule::OneOf(ISOLATION)),
    known("transaction_read_only", "off", false, Rule::ReadOnly),
    known("xmloption", "content", false, Rule::OneOf(&["content", "document"])),
];

/// Every level is served as serializable, which each of them allows.
const ISOLATION: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];

/// The settings of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What the session said.
    values: BTreeMap<&'static str, String>,
    /// What its database says, where the session says nothing.
    of_database: BTreeMap<&'static str, String>,
}

/// What a database says of a setting of its sessions: the name and the value, both as they are stored; `None`: nothing.
/// Errors: 42704, 22023.
pub fn of_database(name: &str, value: Option<&str>) -> SqlResult<(&'static str, Option<String>)> {
    let setting = find(name)?;
    Ok((setting.name, value.map(|value| checked(setting, value)).transpose()?))
}

impl Settings {
    /// The settings that a session begins with in a database that says `settings`. Those that this version does not know, or
    /// not with this value, are left out: another version has set them.
    pub fn of(settings: &BTreeMap<String, String>) -> Settings {
        let known = settings.iter().filter_map(|(name, value)| of_database(name, Some(value)).ok());
        let of_database = known.filter_map(|(name, value)| Some((name, value?))).collect();
        Settings { values: BTreeMap::new(), of_database }
    }

    /// The same without what the session said.
    pub fn initial(&self) -> Settings {
        Settings { values: BTreeMap::new(), of_database: self.of_database.clone() }
    }

    /// What the session says of a setting, or else its database.
    fn said(&self, name: &str) -> Option<&str> {
        self.values.get(name).or_else(|| self.of_database.get(name)).map(String::as_str)
    }

    /// The value of a setting as it is shown: a time has its unit.
    fn shown(&self, setting: &Known) -> String {
        let value = self.said(setting.name).unwrap_or(setting.default);
        match (&setting.rule, value.parse()) {
            (Rule::Timeout, Ok(millis)) => with_unit(millis),
            _ => value.to_owned(),
        }
    }

    /// The value of the setting `name`, as it is shown. Error 42704.
    pub fn get(&self, name: &str) -> SqlResult<String> {
        find(name).map(|setting| self.shown(setting))
    }

    /// Changes a setting; `None` is its default, or what the database says. Returns what the client is to be told, if anything.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> SqlResult<Option<(&'static str, String)>> {
        let setting = find(name)?;
        match value {
            None => drop(self.values.remove(setting.name)),
            Some(value) => drop(self.values.insert(setting.name, checked(setting, value)?)),
        }
        Ok(if setting.reported { Some((reported_name(setting.name), self.get(name)?)) } else { None })
    }

    /// What a client is told when it connects.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        SETTINGS.iter().filter(|setting| setting.reported).map(|setting| {
            let value = self.said(setting.name).unwrap_or(setting.default);
            (reported_name(setting.name), value.to_string())
        })
    }

    /// Every setting and its value, by name.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        SETTINGS.iter().map(|setting| (setting.name, self.shown(setting)))
    }

    /// A bound on time; `None`: no bound.
    pub fn timeout(&self, timeout: Timeout) -> Option<Duration> {
        let millis = self.said(timeout.setting())?.parse().ok()?;
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// How statements read.
    pub fn read_preference(&self) -> ReadPreference {
        match self.said(READ_MODE) {
            Some("optimistic") => ReadPreference::Optimistic,
            Some("active") => ReadPreference::Active,
            Some("locking") => ReadPreference::Locking,
            _ => ReadPreference::Default,
        }
    }

    /// How transactions commit.
    pub fn commit_options(&self) -> CommitOptions {
        CommitOptions { two_rounds: self.said(COMMIT_ROUNDS) == Some("2"), handoff: self.said(COMMIT_HANDOFF) != Some("off") }
    }

    /// True if transactions are read-only where nothing else says so.
    pub fn read_only(&self) -> bool {
        self.said("default_transaction_read_only") == Some("on")
    }
}

/// Milliseconds in the largest unit of which they are a whole number.
fn with_unit(millis: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    match UNITS.iter().find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None if millis == 0 => "0".into(),
        None => format!("{millis}ms"),
    }
}

fn find(name: &str) -> SqlResult<&'static Known> {
    let unknown = || {
        SqlError::new(SqlState::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
            .with_hint("SHOW rhumb.read_mode, statement_timeout and application_name are settings of Rhumb.")
    };
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name)).ok_or_else(unknown)
}

/// Drivers look for these names in the case that PostgreSQL reports them in.
fn reported_name(name: &'static str) -> &'static str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        other => other,
    }
}

fn checked(setting: &Known, value: &str) -> SqlResult<String> {
    let invalid =
        || SqlError::new(SqlState::InvalidParameterValue, format!("invalid value for parameter \"{}\": \"{value}\"", setting.name));
    if value.len() > VALUE_BYTES_MAX || value.contains('\0') {
        return Err(SqlError::too_large(format!("the value of \"{}\" is longer than {VALUE_BYTES_MAX} bytes", setting.name)));
    }
    match setting.rule {
        Rule::Free => Ok(value.to_string()),
        Rule::ReadOnly => Err(SqlError::new(SqlState::InvalidParameterValue, format!("parameter \"{}\" cannot be changed", setting.name))),
        Rule::Timeout => millis(value).map(|millis| millis.to_string()).ok_or_else(invalid),
        Rule::OneOf(values) => {
            let value = match value.to_lowercase().as_str() {
                "true" | "yes" | "1" if values == ON_OFF => "on".to_string(),
                "false" | "no" | "0" if values == ON_OFF => "off".to_string(),
                other => other.to_string(),
            };
            let is_encoding = setting.name == "client_encoding";
            // As PostgreSQL does it, since a driver sends it in quotes.
            let letters = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
            let found = values
                .iter()
                .find(|allowed| allowed.eq_ignore_ascii_case(&value) || is_encoding && letters(allowed) == letters(&value))
                .ok_or_else(|| invalid().with_hint(format!("Available values: {}.", values.join(", "))))?;
            // Synonyms are stored as the one that PostgreSQL shows.
            let synonym = values == UTC || is_encoding || setting.name == "datestyle";
            Ok(if synonym { values[0] } else { found }.to_string())
        }
    }
}

/// Milliseconds in `250`, `250ms`, `2s` or `1min`.
fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().ok()?;
    let factor = match text[split..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(factor).filter(|millis| *millis <= Timeout::MILLIS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_defaults_and_can_be_reset() {
        let mut settings = Settings::default();
        assert_eq!(settings.get("Search_Path").as_deref(), Ok("\"$user\", public"));
        settings.set("search_path", Some("a")).expect("set");
        assert_eq!(settings.get("search_path").as_deref(), Ok("a"));
        settings.set("search_path", None).expect("reset");
        assert_eq!(settings.get("search_path").as_deref(), Ok("\"$user\", public"));
        assert_eq!(settings.get("no_such").expect_err("unknown").state(), SqlState::UndefinedObject);
    }

    #[test]
    fn only_allowed_values_are_taken() {
        let mut settings = Settings::default();
        assert_eq!(settings.set("TimeZone", Some("etc/utc")), Ok(Some(("TimeZone", "UTC".into()))));
        assert_eq!(settings.set("timezone", Some("Asia/Tokyo")).expect_err("refused").state(), SqlState::InvalidParameterValue);
        assert_eq!(settings.set("server_version", Some("9")).expect_err("refused").state(), SqlState::InvalidParameterValue);
        assert_eq!(settings.set("client_encoding", Some("'utf-8'")), Ok(Some(("client_encoding", "UTF8".into()))));
        assert_eq!(settings.set("client_encoding", Some("latin1")).expect_err("refused").state(), SqlState::InvalidParameterValue);
        settings.set(READ_MODE, Some("LOCKING")).expect("set");
        assert_eq!(settings.read_preference(), ReadPreference::Locking);
        settings.set(READ_MODE, Some("active")).expect("set");
        assert_eq!(settings.read_preference(), ReadPreference::Active);
    }

    #[test]
    fn a_session_goes_before_its_database_and_that_before_what_is_built_in() {
        let said = [(COMMIT_ROUNDS, "2"), (COMMIT_HANDOFF, "off"), (COMMIT_ROUNDS, "2"), ("rhumb.of_tomorrow", "x")];
        let mut settings = Settings::of(&said.map(|(name, value)| (name.to_string(), value.to_string())).into());
        assert_eq!(settings.commit_options(), CommitOptions { two_rounds: true, handoff: false });
        settings.set(COMMIT_ROUNDS, Some("1")).expect("set");
        settings.set(COMMIT_HANDOFF, Some("yes")).expect("set");
        assert_eq!(settings.commit_options(), CommitOptions::default());
        assert_eq!(settings.initial().commit_options(), CommitOptions { two_rounds: true, handoff: false });
        settings.set(COMMIT_ROUNDS, None).expect("reset");
        assert_eq!(settings.get(COMMIT_ROUNDS).as_deref(), Ok("2"));
        assert_eq!(of_database("RHUMB.Commit_Handoff", Some("0")), Ok((COMMIT_HANDOFF, Some("off".to_string()))));
        let refused = of_database(COMMIT_ROUNDS, Some("3")).expect_err("one or two");
        assert_eq!((refused.state(), refused.hint()), (SqlState::InvalidParameterValue, Some("Available values: 1, 2.")));
    }

    #[test]
    fn timeouts_take_units() {
        let mut settings = Settings::default();
        for (text, expected) in [("0", None), ("250", Some(250)), ("2s", Some(2_000)), ("1 min", Some(60_000))] {
            settings.set("statement_timeout", Some(text)).expect(text);
            assert_eq!(settings.timeout(Timeout::Statement), expected.map(Duration::from_millis), "{text}");
        }
        assert!(settings.set("statement_timeout", Some("soon")).is_err());
        for timeout in [Timeout::Statement, Timeout::Lock, Timeout::IdleInTransaction] {
            assert_eq!(Settings::default().timeout(timeout), None, "by default there is none");
            let longest = Timeout::MILLIS_MAX;
            settings.set(timeout.setting(), Some(&longest.to_string())).expect("the longest");
            assert_eq!(settings.timeout(timeout), Some(Duration::from_millis(longest)));
            assert!(settings.set(timeout.setting(), Some(&(longest + 1).to_string())).is_err(), "{}", timeout.setting());
        }
    }
}
