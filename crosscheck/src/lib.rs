//! Nothing but a place for tests that need more to build than the rest of the repository does.
