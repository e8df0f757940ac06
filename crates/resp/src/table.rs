//! The commands there are: what they are called, what they take, and what for. `COMMAND`, errors and hints are made of
//! this table.

use std::fmt;
use std::ops::RangeInclusive;

/// A command, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Acquire,
    Release,
    QuotaCreate,
    QuotaGet,
    QuotaLimit,
    QuotaList,
    QuotaDrop,
    Ping,
    Echo,
    Hello,
    Auth,
    Select,
    Command,
    Client,
    Info,
    Config,
    Reset,
    Quit,
}

/// An argument of a command, for those who ask.
#[derive(Debug, PartialEq, Eq)]
pub struct Argument {
    /// What it stands for.
    pub name: &'static str,
    /// A word of the wire protocol: string or integer.
    pub kind: &'static str,
    /// The word before it.
    pub token: Option<&'static str>,
    /// It may be left out.
    pub optional: bool,
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which command.
    pub verb: Verb,
    /// Its name, in lower case.
    pub name: &'static str,
    /// How many arguments may follow the name.
    pub count: RangeInclusive<usize>,
    /// Words of the wire protocol for what it does.
    pub flags: &'static [&'static str],
    /// What may follow the name.
    pub arguments: &'static [Argument],
    /// What it does.
    pub summary: &'static str,
}

const ANY: usize = usize::MAX;
const WRITE: &[&str] = &["write", "fast"];
const CHANGE: &[&str] = &["write"];
const READ: &[&str] = &["readonly"];
const CONNECTION: &[&str] = &["fast"];
const NAME: Argument = string("name");
const AMOUNT: Argument = integer("n");
const LIMIT: Argument = integer("limit");
const ID: Argument = option("ID", "id");

const fn string(name: &'static str) -> Argument {
    Argument { name, kind: "string", token: None, optional: false }
}

const fn integer(name: &'static str) -> Argument {
    Argument { name, kind: "integer", token: None, optional: false }
}

const fn optional(name: &'static str) -> Argument {
    Argument { name, kind: "string", token: None, optional: true }
}

const fn option(token: &'static str, name: &'static str) -> Argument {
    Argument { name, kind: "string", token: Some(token), optional: true }
}

const CREATE: &[Argument] = &[
    NAME,
    LIMIT,
    option("PARENT", "name"),
    option("PROTOCOL", "majority|any"),
    option("OFFER", "all|spare"),
    option("REALLOCATION", "maximum-usage|most-satisfied|proportional"),
];

/// All commands, by subject.
#[rustfmt::skip]
pub static COMMANDS: [Entry; 18] = [
    entry(Verb::Acquire, "acquire", 2..=4, WRITE, &[NAME, AMOUNT, ID], "Takes n tokens of a quota, and of all above it, or none; says how many are left at this site."),
    entry(Verb::Release, "release", 2..=4, WRITE, &[NAME, AMOUNT, ID], "Gives n tokens of a quota back; says how many are left at this site."),
    entry(Verb::QuotaCreate, "quota.create", 2..=10, CHANGE, CREATE, "Makes a quota."),
    entry(Verb::QuotaGet, "quota.get", 1..=2, READ, &[NAME, optional("LOCAL|GLOBAL|EXACT")], "Says what a quota is and where its tokens are."),
    entry(Verb::QuotaLimit, "quota.limit", 2..=2, CHANGE, &[NAME, LIMIT], "Changes the limit of a quota in use."),
    entry(Verb::QuotaList, "quota.list", 0..=0, READ, &[], "Lists all quotas with the tokens of this site."),
    entry(Verb::QuotaDrop, "quota.drop", 1..=1, CHANGE, &[NAME], "Ends a quota that has none below it."),
    entry(Verb::Ping, "ping", 0..=1, CONNECTION, &[optional("message")], "Answers PONG, or the message."),
    entry(Verb::Echo, "echo", 1..=1, CONNECTION, &[string("message")], "Answers the message."),
    entry(Verb::Hello, "hello", 0..=6, CONNECTION, &[optional("2|3"), option("SETNAME", "name")], "Chooses the version of the protocol and says who serves."),
    entry(Verb::Auth, "auth", 1..=2, CONNECTION, &[optional("user"), string("password")], "Refused: there are no users here."),
    entry(Verb::Select, "select", 1..=1, CONNECTION, &[integer("0")], "Chooses the only database there is."),
    entry(Verb::Command, "command", 0..=ANY, CONNECTION, &[optional("COUNT|LIST|INFO|DOCS"), optional("command")], "Says which commands there are."),
    entry(Verb::Client, "client", 1..=ANY, CONNECTION, &[string("ID|INFO|GETNAME|SETNAME|SETINFO|NO-EVICT|NO-TOUCH"), optional("value")], "Names this connection, and says what is known of it."),
    entry(Verb::Info, "info", 0..=ANY, CONNECTION, &[optional("section")], "Says how this server is."),
    entry(Verb::Config, "config", 1..=ANY, CONNECTION, &[string("GET"), string("parameter")], "Says how this server is set up."),
    entry(Verb::Reset, "reset", 0..=0, CONNECTION, &[], "Takes the connection back to how it began."),
    entry(Verb::Quit, "quit", 0..=ANY, CONNECTION, &[], "Closes the connection."),
];

const fn entry(
    verb: Verb,
    name: &'static str,
    count: RangeInclusive<usize>,
    flags: &'static [&'static str],
    arguments: &'static [Argument],
    summary: &'static str,
) -> Entry {
    Entry { verb, name, count, flags, arguments, summary }
}

/// The command of that name, in upper or lower case.
pub fn find(name: &[u8]) -> Option<&'static Entry> {
    COMMANDS.iter().find(|entry| entry.name.as_bytes().eq_ignore_ascii_case(name))
}

impl Entry {
    /// The number of arguments, the name included, as the wire protocol has it: negative if it is the least of several.
    pub fn arity(&self) -> i64 {
        let least = *self.count.start() as i64 + 1;
        if self.count.start() == self.count.end() { least } else { -least }
    }

    /// True if the first argument is the name of a quota.
    pub fn has_key(&self) -> bool {
        self.arguments.first() == Some(&NAME)
    }
}

/// How it is used, as in `ACQUIRE name n [ID id]`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.to_ascii_uppercase())?;
        for argument in self.arguments {
            let (open, close) = if argument.optional { ("[", "]") } else { ("", "") };
            match argument.token {
                Some(token) => write!(f, " {open}{token} {}{close}", argument.name)?,
                None => write!(f, " {open}{}{close}", argument.name)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_how_it_is_used() {
        let usage = |name: &[u8]| find(name).expect("a command").to_string();
        assert_eq!(usage(b"Acquire"), "ACQUIRE name n [ID id]");
        assert_eq!(usage(b"QUOTA.get"), "QUOTA.GET name [LOCAL|GLOBAL|EXACT]");
        assert_eq!(usage(b"quota.list"), "QUOTA.LIST");
        assert_eq!(find(b"acquir"), None);
    }

    #[test]
    fn arity_counts_the_name() {
        let arity = |name: &[u8]| find(name).expect("a command").arity();
        assert_eq!([arity(b"acquire"), arity(b"quota.list"), arity(b"quota.limit"), arity(b"ping")], [-3, 1, 3, -1]);
    }

    #[test]
    fn every_command_stands_in_the_table_once() {
        for (index, entry) in COMMANDS.iter().enumerate() {
            assert_eq!(find(entry.name.as_bytes()), Some(entry));
            assert!(COMMANDS[..index].iter().all(|other| other.verb != entry.verb));
        }
    }
}
