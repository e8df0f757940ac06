//! A client of SQL: where the servers are, sessions, and what a failed statement means.

mod burst;
mod endpoint;
mod failure;
mod floor;
mod retry;
mod session;
mod sql;
mod value;

pub use burst::{all, both};
pub use endpoint::Endpoint;
pub use failure::{Failure, Phase};
pub use floor::{Whereabouts, whereabouts};
pub use retry::{RetryPolicy, retrying};
pub use session::{Access, Session, TextRow};
pub use sql::{get, placeholders, values_list};
pub use value::Value;
