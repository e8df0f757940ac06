//! A command as clients send it, its bounds, and what may be wrong with it.

use smallvec::SmallVec;
use std::borrow::Cow;
use thiserror::Error;

/// The longest command, in bytes of its frame.
pub const COMMAND_BYTES_MAX: usize = 64 << 10;
/// Arguments of one command at the most, its name included.
pub const ARGUMENTS_MAX: usize = 1_024;

/// The arguments of a command, its name first; those of everyday commands need no allocation.
pub type Arguments<'a> = SmallVec<[Cow<'a, [u8]>; 6]>;

/// A command, and how many bytes it takes up. Without arguments it is to be passed over: an empty line, an empty array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its arguments.
    pub arguments: Arguments<'a>,
    /// The bytes it was made of.
    pub length: usize,
}

/// What is wrong with bytes that a client sent. Where the next command begins is not known after that.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Malformed {
    #[error("invalid multibulk length; a command has at most {ARGUMENTS_MAX} arguments")]
    ArrayLength,
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    NotBulk(u8),
    #[error("invalid bulk length; a command has at most {COMMAND_BYTES_MAX} bytes")]
    BulkLength,
    #[error("expected \\r\\n after a bulk string of {0} bytes")]
    BulkEnd(usize),
    #[error("too big a command; at most {COMMAND_BYTES_MAX} bytes are allowed")]
    TooLong,
    #[error("too big inline request; a line has at most {COMMAND_BYTES_MAX} bytes")]
    LineTooLong,
    #[error("too many words in a line; a command has at most {ARGUMENTS_MAX} arguments")]
    Words,
    #[error("unbalanced quotes in request")]
    Quotes,
}
