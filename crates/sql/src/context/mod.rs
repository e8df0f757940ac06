//! What surrounds a statement: its session's settings and what that says about itself, timers and randomness.

pub mod environment;
mod facts;
mod settings;
mod timeouts;

pub use facts::{CURRENT_SETTING, Facts};
pub use settings::{ReadPreference, Settings, of_database};
pub use timeouts::{STARTUP_TIMEOUT, Timeout, WRITE_STALL_TIMEOUT};
