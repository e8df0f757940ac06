//! The runtime of a Rhumb site: transport, timers, group commit, configuration. One process is one site.
//!
//! One of the two drivers of the contract in [`rhumb_core::actor`] (the other is the simulator); it makes no decision of
//! a protocol. [`process::run`] is the whole of a site's life; the parts below it stand on their own:
//!
//! - [`config`]: the file of a site, and what it means;
//! - [`runtime`]: actors, driven: each with its thread, group commit, timers, requests of clients;
//! - [`transport`] over [`frame`]: how sites reach each other, with the emulated wide area on the links;
//! - [`secret`]: what the sites of a cluster share and nobody else has;
//! - [`owner`], [`lives`]: whose a data folder is, and that it is the one that the site had;
//! - [`descriptors`]: the files that a site may have open;
//! - [`models`]: forecasts of the demand for quotas;
//! - [`client`], [`catenae`], [`quad`], [`quotas`], [`placements`]: transactions by each protocol, quotas and placements for clients in
//!   this process, over what they [`reach`];
//! - [`status`], [`vitals`], [`tables`], [`resources`], [`http`], [`metrics`]: what people and machines see of it.

pub mod catenae;
pub mod client;
pub mod config;
pub mod descriptors;
pub mod frame;
pub mod http;
pub mod lives;
pub mod metrics;
pub mod models;
pub mod owner;
pub mod placements;
pub mod process;
pub mod quad;
pub mod quotas;
pub mod reach;
pub mod resources;
pub mod runtime;
pub mod secret;
pub mod status;
pub mod tables;
pub mod transport;
pub mod vitals;
