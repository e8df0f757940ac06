//! Tests of the simulator itself, with a toy actor: what it does to time, disks, links and clients is exact.

mod clients;
mod delivery;
mod determinism;
mod durability;
mod faults;
mod folders;
mod runs;
mod toy;
