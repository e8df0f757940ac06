//! The runtime of a Rhumb site: transport, timers, group commit, configuration. One process is one site.
//!
//! One of the two drivers of the contract in [`rhumb_core::actor`] (the other is the simulator); it makes no decision of a protocol. Each
//! folder may use those below it, and none above:
//!
//! ```text
//!   site        the life of the process: ports, data folder, stores; the services that it hosts
//!   forming     a cluster that is about to open: sites join the one that holds the CA
//!   admin       HTTP: probes, status, metrics, placements, quorums, quotas, faults for demonstrations
//!   gateway     transactions by each protocol, quotas and placements for clients in this process
//!   status      what is known of the site and its peers
//!   runtime     actors, driven: each with its thread, group commit, timers, requests of clients
//!   transport   how sites reach each other: frames, proofs, clocks compared, the emulated wide area
//!   metrics     what is counted and measured, for Prometheus
//!   config      the file of a site, and what it means
//!   incarnation whether a data folder is the one that the site left
//!   credentials what a site proves itself with: secret and certificates
//!   https       one request to a site, and its answer
//!   service, secret, bounds, clock, failure
//! ```

pub mod admin;
pub mod bounds;
pub mod clock;
pub mod credentials;
pub mod failure;
pub mod forming;
pub mod gateway;
pub mod https;
pub mod incarnation;
pub mod metrics;
pub mod runtime;
pub mod secret;
pub mod service;
pub mod site;
pub mod status;
pub mod transport;
