//! Clients of a running cluster: over PostgreSQL's protocol and over Redis's.

pub mod postgres;
mod ready_file;
pub mod redis;
