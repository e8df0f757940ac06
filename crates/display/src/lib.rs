//! What the command line shows people, whatever was measured or planned: a [`Table`] of text, plots as SVG ([`plot`]), the [`Output`] files that they are
//! written to, and lengths of time as people write them ([`parse_duration`]).
//!
//! Knows nothing of clusters: every crate that prints can use it.

mod duration;
mod output;
pub mod plot;
mod table;

pub use duration::parse_duration;
pub use output::Output;
pub use table::Table;
