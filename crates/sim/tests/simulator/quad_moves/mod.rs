//! QuAD's changes of configuration, each one by itself: at every step of a transaction, joining, leaving, cores that are lost, loads that move.

mod following;
mod links;
mod members;
mod sizes;
mod stage;
mod steps;
mod stuck;
mod unsynced;
