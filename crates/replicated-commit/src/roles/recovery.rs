//! From disk to serving.

use super::Roles;
use crate::context::Context;
use crate::job::Job;
use crate::records::{CARRIED, NUMBERS, Number, PLACEMENT, VOTES};
use crate::views::CohortView;
use rhumb_core::actor::Space;
use rhumb_core::{Loaded, Timestamp, record};

impl Roles {
    /// Asks for what earlier incarnations have left, page by page; once all is read, serves.
    pub(crate) fn recover(&mut self, cx: &mut Context<'_>) {
        let Some(recovery) = &mut self.recovery else { unreachable!("an incarnation recovers once") };
        match recovery.pages.next_load() {
            Some(load) => {
                cx.load(Job::Recover, load);
            }
            None => {
                let placement = recovery.placement.take();
                self.mover.recover(placement, cx);
                cx.fx.trace(|| format!("recovered {} prepared attempts", self.cohort.prepared()));
                self.serve(cx);
            }
        }
    }

    /// A page of that.
    pub(super) fn on_recovered(&mut self, loaded: Loaded, cx: &mut Context<'_>) {
        let Some(recovery) = &mut self.recovery else { unreachable!("nothing else is read before") };
        let (space, records) = recovery.pages.take(loaded);
        for (key, bytes) in &records {
            self.recover_record(space, key, bytes, cx);
        }
        self.recover(cx);
    }

    pub(super) fn recover_record(&mut self, space: Space, key: &[u8], bytes: &[u8], cx: &mut Context<'_>) {
        let damaged = "the store verifies checksums, and records are written by this format version only";
        match space {
            NUMBERS => match Number::decode(key, bytes).expect(damaged) {
                (Number::ClockBound, value) => cx.clock = cx.clock.recovered(Timestamp::from_bits(value)),
                (Number::Forgotten, value) => self.coordinator.recover_forgotten(Timestamp::from_bits(value)),
                (Number::Truncated, value) => self.catch_up.recover_truncated(value),
                (Number::Cursor(region), value) => self.catch_up.set_cursor(region, value),
                (number, value) => self.cohort.recover_number(number, value),
            },
            PLACEMENT => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.placement = Some(record::decode(bytes).expect(damaged));
                }
            }
            VOTES => self.coordinator.recover_vote(record::decode(bytes).expect(damaged), cx),
            CARRIED => self.cohort.recover_carried(cx, record::decode(bytes).expect(damaged)),
            _ => self.cohort.recover_prepared(cx, record::decode(bytes).expect(damaged)),
        }
    }

    /// Begins to serve, once recovered.
    pub(super) fn serve(&mut self, cx: &mut Context<'_>) {
        self.recovery = None;
        let bound = cx.clock.bound();
        // An incarnation that begins anything puts a higher bound on disk first, so the next incarnation has another name.
        cx.incarnation = bound;
        self.cohort.refuse_below(bound.max(self.cohort.collected()));
        self.coordinator.begin_above(bound, self.cohort.highest());
        cx.fx.trace(|| format!("serves above {bound}"));
        self.replicate(|cohort, near| cohort.drop_orphans(near, cx));
        self.coordinate(|coordinator, near| coordinator.settle_copied(near, near.mover.since()));
        self.on_tick(cx);
    }
}
