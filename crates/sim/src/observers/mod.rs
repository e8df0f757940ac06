//! Observers: invariants that hold after every event, whatever clients see. Unlike a checker, which judges the history once a run is over,
//! an observer looks at the sites themselves.
//!
//! | invariant | where | scenarios |
//! |---|---|---|
//! | what two sites record as agreed on is the same: the outcome of an attempt or a transaction, an entry of a stream, a placement | `../world/agreement.rs` | all |
//! | every table and queue of a role stays within its bound, and comes to rest | `bounded_state.rs` | all |
//! | no step keeps its site busy for long | `../cost.rs` | all |
//! | replicas are identical at every settled epoch | `../catenae/same_states.rs` | Catenae |
//! | sites agree on configurations, whose quorums intersect | `../quad/configurations.rs` | QuAD |
//! | a site holds what it says that it holds | `../quad/holders.rs` | QuAD |
//! | one list is decided per instance | `../samya/agreement.rs` | Samya |
//! | no token is minted or lost | `../samya/conservation.rs` | Samya |
//! | sites that have applied as many changes know the same quotas | `../samya/same_quotas.rs` | Samya |

pub(crate) mod bounded_state;

#[cfg(test)]
mod tests;
