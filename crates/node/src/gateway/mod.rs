//! What clients in this process see of the services: SQL, the Redis protocol and HTTP are in front of it.
//!
//! [`interactive`] has the transactions of protocols that go on with their client (Replicated Commit, and [`quad`] with its quorums),
//! [`catenae`] those of epochs; both reach their actor through [`reach`], in this process or in the simulator. [`quotas`] and
//! [`placements`] are what their names say, and [`vitals`] asks every actor how it is. What an actor is asked is
//! a question that knows the kind of its answer: `question.rs`.

pub mod catenae;
mod fallible;
pub mod interactive;
pub mod placements;
pub mod quad;
mod question;
pub mod quotas;
pub mod reach;
pub mod vitals;
