//! When load is offered: its pace, and the window of a run.

mod pace;
mod window;

pub use pace::{Arrivals, Pace, exponential};
pub use window::{Until, Window};
