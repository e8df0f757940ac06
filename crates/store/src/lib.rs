//! Multi-version storage of Rhumb: an in-memory and an embedded engine.
