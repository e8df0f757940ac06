//! The commit protocols that a database can declare. No other file of SQL tells one from another.
//!
//! ```text
//!   Protocol         its name, the table in which a site shows it, the option that its databases share
//!   Administration   the rows of that table, and the option changed; epochs and quorums adapt what two protocols offer
//!   Gateways         handed in by the site: where transactions begin, and what is administered
//! ```
//! What else depends on the protocol is asked of its gateway, such as whether a commit takes operations.

mod administration;
mod epochs;
mod gateways;
mod option;
mod protocol;
mod quorums;
mod site_table;

pub use administration::Administration;
pub use gateways::Gateways;
pub use option::SharedOption;
pub use protocol::{PROTOCOLS, Protocol};
pub use site_table::SiteTable;
