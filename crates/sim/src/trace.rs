//! The trace of a run: one line per event, in the order they happened. Two runs of one seed have the same bytes.

use rhumb_core::Time;
use std::fmt;
use std::fmt::Write as _;

/// A trace that grows longer loses its older half: what leads up to a failure is at its end.
const TRACE_BYTES_MAX: usize = 64 << 20;

/// The lines shown of a run that does not end.
pub(crate) const TAIL_LINES: usize = 40;

/// The trace of a run.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    on: bool,
    text: String,
}

impl Trace {
    /// An empty trace, that takes lines only if `on`.
    pub(crate) fn new(on: bool) -> Trace {
        Trace { on, text: String::new() }
    }

    /// From here on it takes lines.
    pub(crate) fn turn_on(&mut self) {
        self.on = true;
    }

    /// True if it takes lines.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Adds a line. Its arguments are rendered only if the trace is on.
    pub(crate) fn line(&mut self, now: Time, line: fmt::Arguments<'_>) {
        if !self.on {
            return;
        }
        writeln!(self.text, "{now} {line}").expect("a string takes what is written");
        if self.text.len() > TRACE_BYTES_MAX {
            self.drop_older_half();
        }
    }

    /// All lines.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The last [`TAIL_LINES`] lines.
    pub(crate) fn tail(&self) -> &str {
        let start = self.text.trim_end_matches('\n').rmatch_indices('\n').nth(TAIL_LINES - 1).map_or(0, |(newline, _)| newline + 1);
        &self.text[start..]
    }

    fn drop_older_half(&mut self) {
        let half = self.text.ceil_char_boundary(self.text.len() / 2);
        let cut = self.text[half..].find('\n').map_or(self.text.len(), |newline| half + newline + 1);
        self.text.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_is_off_takes_nothing() {
        let mut trace = Trace::new(false);
        trace.line(Time::ZERO, format_args!("a"));
        assert_eq!(trace.text(), "");
        trace.turn_on();
        trace.line(Time::from_micros(12), format_args!("r0.0 ← {}", 1));
        assert_eq!(trace.text(), "0.000012 r0.0 ← 1\n");
        assert_eq!(trace.tail(), trace.text());
    }

    #[test]
    fn the_tail_and_the_younger_half_are_whole_lines() {
        let mut trace = Trace::new(true);
        for n in 0..100 {
            trace.line(Time::ZERO, format_args!("← {n}"));
        }
        assert_eq!(trace.tail().lines().count(), TAIL_LINES);
        assert!(trace.tail().starts_with("0.000000 ← 60\n") && trace.tail().ends_with("← 99\n"));
        trace.drop_older_half();
        let first = trace.text().lines().next().expect("half of it is left").to_owned();
        assert!(first.starts_with("0.000000 ← "), "{first}");
        assert!((45..=55).contains(&trace.text().lines().count()));
    }
}
