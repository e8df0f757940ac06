//! The runtime of a Rhumb site: transport, timers, group commit, configuration.
