//! QuAD's change of configuration, checked exhaustively in a small cluster: whole sites of the product, while clients commit.
//!
//! A step of the search is one event at one site: an operator asks for a change, a client commits, a message arrives. The network is a set that only grows: what was once sent can arrive at any later time, again, or never. That covers delay,
//! reordering, duplication and loss, and a site that dies for good is one that nothing happens to any more.
//!
//! | file | what |
//! |---|---|
//! | `case.rs` | what is asked of a cluster, and what may happen to it |
//! | `machine.rs`, `disk.rs` | one site of the product on its disk |
//! | `message.rs` | what sites send to each other, and when it arrives |
//! | `atlas.rs`, `digest.rs` | each state of a site and what follows from it, found by running the site, once |
//! | `cluster.rs` | the state space |
//! | `facts.rs`, `properties.rs` | what the checks look at, and what must hold |
//!
//! Simplifications that leave no behaviour out: all confirmations of a commit arrive together, since a site does nothing before the last; a message that
//! changes nothing but the name of the next question is no event, nor is one of an epoch that all whom it reaches have left.
//!
//! Simplifications that leave some out: writes are durable at once; a site ticks at its start only; the first round of a commit, the answers to a
//! mover, and what a site asks its sources for arrive at once, if they can; where changes compete nobody commits; of two epochs only the second is
//! explored, after a first one that has ended in either of two ways; one site crashes in one case only, while it gets what it lacks, and until then
//! hears of one source only.
//!
//! Each broken rule of a change is refuted, most of them here (`tests.rs`):
//!
//! | rules | where |
//! |---|---|
//! | `ShownUnsettled`, `CommitsNotCarried`, `CarriedNotFetched`, `ActivatedUnreconciled`, `OldEpochServed` | one change at four sites, while a client commits |
//! | `LossUnbounded` | the same, with three sites declared lost |
//! | `PromiseForgotten`, `AcceptedIgnored`, `MinorityDecides` | two changes of three sites that compete |
//! | `PassedOverClaimed`, `PullsKeptOverEpochs` | two epochs of three sites |
//! | `QuestionsNamedAnew` | three sites of which one crashes |
//! | a source tells what is not on its disk | not here: `crates/sim/tests/simulator/quad_moves/unsynced.rs` |

// What is numbered has no order.
#![allow(clippy::disallowed_types)]

mod atlas;
mod case;
mod cluster;
mod digest;
mod disk;
mod facts;
mod machine;
mod message;
mod properties;
mod tests;
