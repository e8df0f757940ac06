//! The binary as its users run it: real processes, real clients, an emulated wide area.
//!
//! One program of all of them: apart, each would link the same clients.

mod catenae;
mod catenae_settings;
mod catenae_tpcc;
mod common;
mod demo;
mod encrypted;
mod explain;
mod faults;
mod folders;
mod forecast;
mod lab;
mod load;
mod placements;
mod plan;
mod plan_from;
mod quad;
mod quad_tpcc;
mod quota_interfaces;
mod quota_lost;
mod quotas;
mod refusals;
mod stop;
mod unproven_connections;
