//! The searches of the planner under a clock, with a bar on standard error; nothing if that is no terminal.

use super::options::Method;
use indicatif::{ProgressBar, ProgressStyle};
use rhumb_plan::exhaustive::placements;
use rhumb_plan::{Bounds, Finding, Problem, Progress, branch_and_bound, exhaustive_while};
use std::time::{Duration, Instant};

/// How often the bar moves.
const REDRAW: Duration = Duration::from_millis(100);
/// How many placements pass between two looks at the clock.
const PLACEMENTS_PER_LOOK: u64 = 4_096;
/// How finely the bar shows the gap.
const STEPS: u64 = 1_000;

/// How to search, and until when.
pub struct Search {
    /// The method.
    pub method: Method,
    /// How long one search may take.
    pub limit: Option<Duration>,
    bar: ProgressBar,
}

/// A search that runs.
struct Watch<'s> {
    search: &'s Search,
    begun: Instant,
    drawn: Instant,
}

impl Search {
    /// A search by `method` of at most `limit`.
    pub fn new(method: Method, limit: Option<Duration>) -> Search {
        let style = ProgressStyle::with_template("{bar:30} {msg}, {elapsed}").expect("the template is well-formed");
        Search { method, limit, bar: ProgressBar::new(STEPS).with_style(style) }
    }

    /// The best placement of `problem`, or the best until the time is over.
    pub fn find(&self, problem: &Problem) -> Finding {
        let now = Instant::now();
        let mut watch = Watch { search: self, begun: now, drawn: now };
        let finding = match self.method {
            Method::Exact => Finding::of_exact(problem, branch_and_bound(problem, Bounds::ALL, |progress| watch.node(progress))),
            Method::Exhaustive => {
                let all = placements(problem);
                Finding::of_exhaustive(problem, exhaustive_while(problem, |seen| watch.placement(seen, all)))
            }
            Method::Greedy => Finding::of_greedy(problem),
            Method::Weighted => Finding::of_weighted(problem),
        };
        self.bar.finish_and_clear();
        finding
    }
}

impl Watch<'_> {
    fn node(&mut self, progress: &Progress) -> bool {
        self.look(|bar| {
            let Progress { nodes, incumbent, bound } = *progress;
            let gap = (incumbent.saturating_sub(bound)) as f64 / incumbent.max(1) as f64;
            bar.set_position(((1.0 - gap) * STEPS as f64) as u64);
            bar.set_message(format!("{nodes} nodes, the best found is within {:.1} % of the best there is", 100.0 * gap));
        })
    }

    fn placement(&mut self, seen: u64, all: Option<u64>) -> bool {
        if !seen.is_multiple_of(PLACEMENTS_PER_LOOK) {
            return true;
        }
        self.look(|bar| {
            let share = all.map_or(0.0, |all| seen as f64 / all as f64);
            bar.set_position((share * STEPS as f64) as u64);
            bar.set_message(all.map_or_else(|| format!("{seen} placements"), |all| format!("{seen} of {all} placements")));
        })
    }

    /// Draws the bar if it is time to. Whether to go on.
    fn look(&mut self, draw: impl FnOnce(&ProgressBar)) -> bool {
        let now = Instant::now();
        if now - self.drawn >= REDRAW {
            self.drawn = now;
            draw(&self.search.bar);
        }
        self.search.limit.is_none_or(|limit| now - self.begun < limit)
    }
}
