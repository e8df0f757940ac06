//! What surrounds a statement: its session's settings and what that says about itself, timers and randomness, and the gateways handed in.

pub mod environment;
mod facts;
mod gateways;
mod settings;
mod timeouts;

pub use facts::Facts;
pub use gateways::Gateways;
pub use settings::{ReadPreference, Settings, of_database};
pub use timeouts::{STARTUP_TIMEOUT, Timeout, WRITE_STALL_TIMEOUT};
