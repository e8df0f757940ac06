//! What the tests of SQL share: a database and quotas in memory, behind the traits of the real ones, and statements of any depth.
//!
//! A crate of its own, and no feature of `rhumb-sql`: so that one build of that serves the product and the tests.

pub mod deep;
mod gateway;
mod quotas;

pub use gateway::{Gate, LocalGateway};
pub use quotas::LocalQuotas;
