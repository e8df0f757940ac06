//! Evaluations of published papers, repeated in virtual time.
//!
//! [`samya`], [`gplacer`], [`catenae`] and [`quad`] each repeat a paper's experiments on the sites of the product, run by the simulator; [`experiment`] is what
//! they share. [`mod@forecast`] trains models of demand and sets them side by side. Nothing here needs a running cluster.

pub mod catenae;
mod draft;
pub mod experiment;
pub mod forecast;
pub mod gplacer;
pub mod quad;
pub mod samya;
