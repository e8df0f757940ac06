//! The rules of the driver that a test may break: the simulator must catch each. Otherwise all [rules](rhumb_core::rules) hold.

/// A way to break a rule of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Promises and answers leave when what they depend on is written, not when it is synced.
    AnswerBeforeSync,
    /// Any clock is believed: no message is refused for it, and no site waits for its own to be confirmed.
    ClocksBelieved,
    /// What is held in memory of the store stays as it is when the store is written.
    NewestNotNoted,
    /// A site goes on with any folder that it finds, and is believed by those who have heard of more.
    OldFoldersAccepted,
    /// What waited for a sync that failed leaves all the same before the process ends.
    SyncFailureIgnored,
}
