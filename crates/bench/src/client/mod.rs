//! Clients of a running cluster: over PostgreSQL's protocol and over Redis's.

pub mod postgres;
pub mod redis;
