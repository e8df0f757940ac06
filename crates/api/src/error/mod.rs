//! Why a request was refused: one shape for all routes that answer JSON, and the table of its codes.

mod code;

pub use code::Code;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is answered in place of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// Why.
    pub error: Reason,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// For programs.
    pub code: Code,
    /// One line for people.
    pub message: String,
}

impl Error {
    /// The error with this code and a message for people.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { error: Reason { code, message: message.into() } }
    }
}
