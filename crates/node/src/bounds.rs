//! How much may wait in the queues of a site. The metrics show each bound beside what waits.

/// So many messages of peers may wait for an actor.
pub const MAILBOX_PEERS_MAX: usize = 8_192;
/// So many requests of clients may wait for an actor.
pub const MAILBOX_CLIENTS_MAX: usize = 8_192;
/// So many messages may wait to leave for one peer, those that the emulated wide area delays among them. One more is
/// dropped.
pub const PEER_QUEUE_MESSAGES_MAX: usize = 65_536;
