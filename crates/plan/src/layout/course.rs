//! The way from one layout to another while clients run.
//!
//! A region votes only once it has copied all rows, and a copy is dropped only once those that take over vote:
//!
//! ```text
//!   now ──▶ copy: whoever is to hold one   ──▶ vote: the new active regions and     ──▶ leave: copies that
//!           becomes passive                    coordinators; all copies stay            nobody needs go
//!                                              (refused until they are whole)
//! ```
//!
//! Steps that change nothing are left out. Every stop on the way is a layout that serves, and tells which step comes next:
//! whoever is interrupted looks where the cluster stands and goes on from there.
//!
//! Invariants: a region that is active in a layout holds a copy in the one before it; no copy is made or dropped with a vote.

use super::Layout;

/// The layouts that a cluster goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// The first is where it begins, the last where it ends.
    stops: Vec<Layout>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'c> {
    /// Nothing: the cluster is there.
    Arrived,
    /// Wait: the last step has not come into effect yet at the site that is asked.
    Wait,
    /// The step of this number, from 1, to this layout.
    Go(usize, &'c Layout),
    /// Nothing: the cluster is in a layout that is not on the way, so somebody else has changed it.
    Stray,
}

/// Where a cluster stands, as one of its sites tells.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'s> {
    /// The layout in force.
    pub layout: &'s Layout,
    /// Its number; every change makes it higher.
    pub epoch: u64,
    /// False as long as the site still moves into it.
    pub settled: bool,
}

impl Course {
    /// The way from `now` to `proposed`.
    pub fn new(now: &Layout, proposed: &Layout) -> Course {
        let mut stops = vec![now.clone()];
        if !proposed.copies().is_subset(&now.copies()) {
            let passive = &(&now.passive | &proposed.copies()) - &now.active;
            stops.push(Layout { passive, ..now.clone() });
        }
        let held = stops[stops.len() - 1].copies();
        stops.push(Layout { passive: &held - &proposed.active, ..proposed.clone() });
        stops.push(proposed.clone());
        stops.dedup();
        Course { stops }
    }

    /// How many steps it takes.
    pub fn steps(&self) -> usize {
        self.stops.len() - 1
    }

    /// How many of them are done in `layout`; none if that is not on the way.
    pub fn done(&self, layout: &Layout) -> Option<usize> {
        self.stops.iter().rposition(|stop| stop == layout)
    }

    /// The layouts before and after each step.
    pub fn legs(&self) -> impl Iterator<Item = (&Layout, &Layout)> {
        self.stops.iter().zip(&self.stops[1..])
    }

    /// What is to be done where the cluster stands so. `decided` is the epoch of the last step that was decided, as far as
    /// known: a site that does not know of it yet is not to be asked for the next.
    pub fn next(&self, standing: Standing<'_>, decided: u64) -> Next<'_> {
        if standing.epoch < decided {
            return Next::Wait;
        }
        match self.done(standing.layout) {
            None => Next::Stray,
            Some(_) if !standing.settled => Next::Wait,
            Some(done) if done == self.steps() => Next::Arrived,
            Some(done) => Next::Go(done + 1, &self.stops[done + 1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Coordinators;
    use super::super::tests::layout;
    use super::*;

    fn stops(now: &Layout, proposed: &Layout) -> Vec<String> {
        Course::new(now, proposed).stops.iter().map(Layout::to_string).collect()
    }

    fn handed(mut layout: Layout, of: &str, to: &str) -> Layout {
        layout.coordinators.insert(of.to_owned(), Coordinators { read: to.to_owned(), commit: to.to_owned() });
        layout
    }

    #[test]
    fn a_region_without_a_copy_gets_one_then_votes_and_then_the_old_ones_leave() {
        let way = stops(&layout("a b c", "x"), &layout("a d e", "x y"));
        let expected = [
            "active a, b, c; passive x",
            "active a, b, c; passive d, e, x, y",
            "active a, d, e; passive b, c, x, y",
            "active a, d, e; passive x, y",
        ];
        assert_eq!(way, expected);
    }

    #[test]
    fn steps_that_change_nothing_are_left_out() {
        let now = layout("a b c", "d");
        assert_eq!(Course::new(&now, &now).steps(), 0);
        assert_eq!(stops(&now, &layout("a b d", "c")), ["active a, b, c; passive d", "active a, b, d; passive c"]);
        assert_eq!(stops(&now, &layout("a b c", "")), ["active a, b, c; passive d", "active a, b, c"]);
        assert_eq!(stops(&now, &layout("a b c", "d e")), ["active a, b, c; passive d", "active a, b, c; passive d, e"]);
        assert_eq!(Course::new(&now, &handed(now.clone(), "z", "a")).steps(), 1);
    }

    #[test]
    fn coordinators_move_with_the_vote() {
        let (now, proposed) = (handed(layout("a b c", ""), "z", "b"), handed(layout("a c d", ""), "z", "d"));
        let course = Course::new(&now, &proposed);
        let of_z: Vec<&str> = course.stops.iter().map(|stop| stop.coordinators["z"].commit.as_str()).collect();
        assert_eq!(of_z, ["b", "b", "d", "d"]);
    }

    #[test]
    fn whoever_votes_had_a_copy_before_and_no_copy_goes_with_a_vote() {
        let names = ["a", "b", "c", "d"];
        // Every region in every role: 3 to the power of 4 layouts, those with an active region.
        let all: Vec<Layout> = (0..81_usize)
            .map(|number| {
                let role = move |index: usize| number / 3_usize.pow(index as u32) % 3;
                let of =
                    |wanted| names.iter().enumerate().filter(move |(index, _)| role(*index) == wanted).map(|(_, name)| (*name).to_owned());
                Layout { active: of(0).collect(), passive: of(1).collect(), ..Layout::default() }
            })
            .filter(|layout| !layout.active.is_empty())
            .collect();
        for (now, proposed) in all.iter().flat_map(|now| all.iter().map(move |proposed| (now, proposed))) {
            let course = Course::new(now, proposed);
            assert_eq!((course.stops.first(), course.stops.last()), (Some(now), Some(proposed)));
            assert!(course.steps() <= 3);
            for (before, after) in course.legs() {
                assert!(after.active.is_subset(&before.copies()), "{before} to {after}");
                assert!(before.active == after.active || before.copies() == after.copies(), "{before} to {after}");
            }
        }
    }

    #[test]
    fn every_stop_tells_the_step_that_comes_next() {
        let (now, proposed) = (layout("a b c", ""), layout("a b d", ""));
        let course = Course::new(&now, &proposed);
        let next = |layout: &Layout, epoch, settled, decided| course.next(Standing { layout, epoch, settled }, decided);
        let (copied, voted) = (layout("a b c", "d"), layout("a b d", "c"));
        assert_eq!(next(&now, 7, true, 0), Next::Go(1, &copied));
        assert_eq!(next(&copied, 8, true, 8), Next::Go(2, &voted));
        assert_eq!(next(&voted, 9, true, 0), Next::Go(3, &proposed));
        assert_eq!(next(&proposed, 10, true, 10), Next::Arrived);
        assert_eq!(next(&proposed, 10, false, 10), Next::Wait, "the site still moves");
        assert_eq!(next(&now, 7, true, 8), Next::Wait, "it has not heard of the step that was decided");
        assert_eq!(next(&layout("a b", "c"), 11, true, 8), Next::Stray);
        assert_eq!((course.done(&now), course.done(&voted), course.done(&layout("a", ""))), (Some(0), Some(2), None));
    }
}
