//! Workloads and experiments of Rhumb.
