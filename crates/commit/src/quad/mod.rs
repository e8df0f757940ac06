//! QuAD: quorums that follow load and distance.
//!
//! Source: Fetai, Stiemer and Schuldt, "QuAD: A Quorum Protocol for Adaptive Data Management in the Cloud". Here are the quorums: who
//! asks whom, and when that should change. See [`quorums`].

pub mod quorums;
