//! Why a command was not carried out. The connection goes on.

use crate::code::Code;
use crate::table::{COMMANDS, Entry};
use rhumb_quota::refusal::Refusal;
use std::borrow::Cow;
use thiserror::Error;

/// Bytes of what a client sent that an error shows at the most.
const SHOWN_BYTES_MAX: usize = 128;

/// Why not. One line for people, behind [`CommandError::code`] for programs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum CommandError {
    #[error("unknown command '{name}', with args beginning with: {arguments}; there are {names}")]
    Unknown { name: String, arguments: String, names: String },
    #[error("wrong number of arguments for '{name}' command; it is {0}", name = .0.name)]
    Count(&'static Entry),
    #[error("syntax error at '{at}'; it is {entry}")]
    Syntax { entry: &'static Entry, at: String },
    #[error("unknown subcommand '{at}'; it is {entry}")]
    Subcommand { entry: &'static Entry, at: String },
    #[error("unsupported protocol version; there are 2 and 3")]
    Version,
    #[error("there are no users here and no password is needed; leave AUTH out")]
    Users,
    #[error("DB index is out of range; there is only database 0")]
    Database,
    #[error("there are no transactions: every operation stands for itself, so send a pipeline without one")]
    Transaction,
    #[error("not carried out: it is part of a transaction, and there are none")]
    InTransaction,
    #[error("Transaction discarded because of previous errors.")]
    Discarded,
    #[error("{0}")]
    ClientText(&'static str),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl CommandError {
    /// For programs.
    pub fn code(&self) -> Code {
        match self {
            CommandError::Refused(refusal) => refusal.into(),
            CommandError::Version => Code::NoProto,
            CommandError::Discarded => Code::ExecAbort,
            _ => Code::Err,
        }
    }

    /// There is no such command.
    pub fn unknown(arguments: &[Cow<'_, [u8]>]) -> CommandError {
        let (name, rest) = arguments.split_first().expect("a command has a name");
        let mut list = String::new();
        for argument in rest {
            if list.len() >= SHOWN_BYTES_MAX {
                break;
            }
            list.push_str(&format!("'{}' ", shown(argument)));
        }
        let names: Vec<_> = COMMANDS.iter().map(|entry| entry.name.to_ascii_uppercase()).collect();
        CommandError::Unknown { name: shown(name), arguments: list.trim_end().to_owned(), names: names.join(", ") }
    }
}

/// Bytes of a client as text, cut short.
pub fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(SHOWN_BYTES_MAX).flat_map(|byte| byte.escape_ascii()).map(char::from).collect()
}
