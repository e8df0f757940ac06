//! Why the actor was not asked, or did not answer.

use thiserror::Error;

/// Why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejected {
    /// A bound on waiting requests is reached: nothing was done, trying again later may succeed.
    #[error("the site is busy: too many requests are waiting; try again")]
    Busy,
    /// The site stops or has failed. What was asked may or may not have been done.
    #[error("the site is stopping")]
    Stopped,
}
