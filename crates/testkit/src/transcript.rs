//! What happens in a scenario, one line each.
//!
//! ```text
//!   client → r0.0   asks            r0.0 → r1.0   a message, when it is delivered (or lost)
//!   r1.0 writes     to its disk     r0.0 → client is told
//! ```

use super::golden;
use std::fmt::{Display, Write};

/// Where a line's second column begins.
const COLUMN: usize = 16;

pub(crate) struct Transcript {
    text: String,
}

impl Transcript {
    pub(crate) fn new(goal: &str) -> Transcript {
        Transcript { text: goal.lines().map(|line| format!("{}\n", format!("# {}", line.trim()).trim_end())).collect() }
    }

    pub(crate) fn narrate(&mut self, text: &str) {
        write!(self.text, "\n-- {text}\n").expect("a string takes all");
    }

    /// Adds that `who` does `what`, unless the story has not begun.
    pub(crate) fn line(&mut self, who: impl Display, what: impl Display) {
        if self.text.contains("\n-- ") {
            let line = format!("{:COLUMN$}{what}", who.to_string());
            writeln!(self.text, "{}", line.trim_end()).expect("a string takes all");
        }
    }

    /// Panics unless this is what is recorded under `name`.
    pub(crate) fn check(&self, name: &str) {
        golden::check(name, &self.text);
    }
}
