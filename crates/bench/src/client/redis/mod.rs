//! A client of quotas: where the sites are, connections, and replies.

mod connection;
mod decode;
mod endpoint;

pub use connection::Connection;
pub use decode::Reply;
pub use endpoint::Endpoint;
