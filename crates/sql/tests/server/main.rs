//! The server as its clients see it, over a database in memory: one file per subject.

mod alter;
mod arrays;
mod checks;
mod copy;
mod deep;
mod explain;
mod foreign_keys;
mod information;
mod limits;
mod one_shot;
mod procedures;
mod protocol;
mod protocols;
mod psql;
mod quotas;
mod retries;
mod rows;
mod savepoints;
mod sequences;
mod settings;
mod stop;
mod support;
mod transactions;
mod values;
