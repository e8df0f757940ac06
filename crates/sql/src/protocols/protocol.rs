//! What is known of a protocol wherever there is no site that runs it.

use super::{SharedOption, SiteTable, epochs, quorums};
use crate::error::{SqlError, SqlState};
use rhumb_core::Value;

/// The commit protocols that a database can declare; the first is the default.
pub const PROTOCOLS: [(&str, Protocol); 3] =
    [("replicated_commit", Protocol::ReplicatedCommit), ("catenae", Protocol::Catenae), ("quad", Protocol::Quad)];

/// A commit protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Votes of regions on every commit.
    ReplicatedCommit,
    /// One-shot transactions, by epochs.
    Catenae,
    /// Locks and two rounds in quorums that follow load and distance.
    Quad,
}

impl Protocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        let known = PROTOCOLS.iter().find(|(_, protocol)| *protocol == self);
        known.expect("all protocols have names").0
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Protocol> {
        PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, protocol)| *protocol)
    }

    /// The one whose databases share the option `name`.
    pub fn with_option(name: &str) -> Option<(Protocol, &'static SharedOption)> {
        let options = PROTOCOLS.iter().filter_map(|(_, protocol)| protocol.option().map(|option| (*protocol, option)));
        options.into_iter().find(|(_, option)| option.name == name)
    }

    /// True if its databases lie where the names of all databases are.
    pub fn holds_names(self) -> bool {
        self == Protocol::ReplicatedCommit
    }

    /// What notes, where the names are, that a database of it was dropped: which one, but for the first that was kept apart.
    pub fn note_of_dropped(self) -> Value {
        if self == Protocol::Catenae { Value::default() } else { Value::from(self.name()) }
    }

    /// The table in which a site shows it.
    pub fn table(self) -> Option<&'static SiteTable> {
        match self {
            Protocol::ReplicatedCommit => None,
            Protocol::Catenae => Some(&epochs::TABLE),
            Protocol::Quad => Some(&quorums::TABLE),
        }
    }

    /// The option that its databases share.
    pub fn option(self) -> Option<&'static SharedOption> {
        match self {
            Protocol::ReplicatedCommit | Protocol::Catenae => None,
            Protocol::Quad => Some(&quorums::CORES),
        }
    }

    /// The error of whoever gives its option to a database of another protocol.
    pub fn option_misplaced(self, option: &SharedOption) -> SqlError {
        let message = format!("{} is an option of protocol \"{}\" only", option.name, self.name());
        let hint = format!("Write WITH (protocol = '{}', {}).", self.name(), option.example);
        SqlError::new(SqlState::InvalidParameterValue, message).with_hint(hint)
    }

    /// The error of whoever looks for its databases at a site that has none.
    pub fn not_held(self) -> SqlError {
        let hint = match self {
            Protocol::Quad => "Quorums are built of at most 64 sites, and this cluster has more.",
            Protocol::Catenae | Protocol::ReplicatedCommit => "Connect to the first or the second site of a region.",
        };
        SqlError::unsupported(format!("this site holds no databases of protocol \"{}\"", self.name())).with_hint(hint)
    }
}
