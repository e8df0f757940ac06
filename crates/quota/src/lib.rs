//! Global quotas that any region answers locally and that are never exceeded: Samya (ICDE 2021), mended.

pub mod gateway;
pub mod info;
pub mod name;
pub mod operation;
pub mod refusal;
pub mod request;
pub mod spec;
