//! Why a run ended before its time. Each of these is a finding about the protocol or its scenario, not about the world.

use rhumb_core::{SiteId, Time};
use thiserror::Error;

/// Why a run ended before its time.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SimError {
    /// More events than a run may have.
    #[error("livelock: {events} events without an end, by {at}; the last of them:\n{tail}")]
    Livelock {
        /// How many there were.
        events: u64,
        /// When the last of them happened.
        at: Time,
        /// The last lines of the trace.
        tail: String,
    },
    /// An observer found an invariant broken, or an actor broke its contract.
    #[error("at {at}: {what}")]
    Violation {
        /// When.
        at: Time,
        /// What is wrong.
        what: String,
    },
    /// An actor panicked: one of its assertions does not hold.
    #[error("at {at}: site {site} panicked: {message}")]
    Panicked {
        /// When.
        at: Time,
        /// Where.
        site: SiteId,
        /// With what message.
        message: String,
    },
}
