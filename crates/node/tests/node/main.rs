//! Sites in this process: what they host, over toy protocols and over the real ones.

mod catenae;
mod clocks;
mod cluster;
mod common;
mod durability;
mod encrypted_links;
mod frames;
mod http;
mod links;
mod process;
mod quotas;
mod stepping;
