//! What functions like `current_user` and `version()` answer.

use super::settings::{SERVER_VERSION, Settings};

/// The function that answers what a setting is.
pub const CURRENT_SETTING: &str = "current_setting";

/// What a session says about itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The user that the client named.
    pub user: String,
    /// The database of the session.
    pub database: String,
    /// Its process id, as cancel requests name it.
    pub pid: i32,
    /// Its settings.
    pub settings: Settings,
}

impl Facts {
    /// The value of a function of the session; `None`: it is another function.
    pub fn function(&self, name: &str, argument: Option<&str>) -> Option<String> {
        match (name, argument) {
            ("current_user" | "session_user" | "user" | "current_role", None) => Some(self.user.clone()),
            ("current_database" | "current_catalog", None) => Some(self.database.clone()),
            ("current_schema", None) => Some("public".into()),
            ("version", None) => Some(format!("PostgreSQL {SERVER_VERSION} compatible, Rhumb {}", env!("CARGO_PKG_VERSION"))),
            ("pg_backend_pid", None) => Some(self.pid.to_string()),
            (CURRENT_SETTING, Some(setting)) => self.settings.get(setting).ok(),
            ("pg_client_encoding", None) => Some("UTF8".into()),
            // Nobody has such a lock.
            ("pg_advisory_unlock_all", None) => Some(String::new()),
            _ => None,
        }
    }
}
