//! Plots as SVG: a [`LineChart`] of series over a common axis, a [`BarChart`] of groups of bars, a [`WorldMap`] of places.
//!
//! ```text
//!   title
//!   ── one  ── two  ▬ paper              the legend, above the plot: it covers no data
//!   │            ╭──╮
//! y │- - - - - - │- -╰─ - -  paper: 0.43 references are named in the margin
//!   │────────────╯
//!   └────────────────────────
//!               x
//! ```
//!
//! The same chart gives the same bytes. What cannot be shown (no data, a value that is no number, nothing above zero on a
//! logarithmic axis) is an error that names it: a plot never leaves anything out silently.
//!
//! | file | |
//! |---|---|
//! | `axis` | scales, and where their ticks stand |
//! | `canvas` | the page: title, legend, sizes and colours |
//! | `frame` | axes drawn |
//! | `line`, `bars` | the two charts |
//! | `map` | the map |

mod axis;
mod bars;
mod canvas;
mod error;
mod frame;
mod line;
mod map;
#[cfg(test)]
mod tests;

pub use axis::{Axis, Scale};
pub use bars::{Bar, BarChart, Bars};
pub use canvas::SERIES_MAX;
pub use error::PlotError;
pub use line::{Line, LineChart, Reference};
pub use map::{Links, Mark, Marks, Point, WorldMap};
