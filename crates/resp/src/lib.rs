//! Clients of Redis: the quotas of a cluster, acquired and released over RESP2 and RESP3.
//!
//! ```text
//!   bytes ──decode──▶ arguments ──command──▶ Command ──┬─ operations, as many as have come ──▶ Quotas::run ──┐
//!                     (decode.rs)           (parse.rs) └─ anything else, once those are answered ────────────┤
//!   bytes ◀──────────────────────────────────── Replies ◀───────────────────────────────────────────────────┘
//!                                             (reply.rs)
//! ```
//!
//! Invariants: a connection's replies come in the order of its commands; a command sees what those before it on the same
//! connection did; a frame that breaks the protocol closes the connection and nothing of it is carried out; whatever a
//! client sends or leaves unread, what is kept for it stays below the bounds named in `frame.rs` and `connection.rs`.

mod answer;
mod calls;
mod code;
mod connection;
pub mod decode;
mod error;
pub mod frame;
mod inline;
mod introspect;
mod parse;
mod quota_reply;
mod reply;
mod server;
mod session;
mod table;

pub use server::{ServerOptions, serve, serve_until};
