//! From disk to serving: a new life loads its numbers, its votes and what it is prepared for, takes its locks again, and
//! only then hears anybody.

use super::config::{PAGE_BYTES_MAX, RECOVERY_PAGE};
use super::context::Context;
use super::message::Attempt;
use super::records::{CARRIED, NUMBERS, Number, PLACEMENT, PREPARED, PlacementRecord, PreparedRecord, VOTES, VoteRecord};
use super::site::{Pending, Roles};
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Load, Loaded, Timestamp, record};

/// How far recovery has come.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The space being loaded, as an index into [`ORDER`].
    stage: usize,
    from: Bytes,
    attempts: Vec<Attempt>,
    placement: Option<PlacementRecord>,
}

/// What is carried comes last: it may want keys that this site is prepared to write.
const ORDER: [Space; 5] = [NUMBERS, PLACEMENT, VOTES, PREPARED, CARRIED];

impl Roles {
    /// Takes a page of records, if there is one, and asks for the next.
    pub(super) fn recover(&mut self, loaded: Option<Loaded>, cx: &mut Context<'_>) {
        if let Some(loaded) = loaded {
            let Loaded::Records { records, more } = loaded else { unreachable!("recovery loads records") };
            let stage = self.recovery().stage;
            for (key, bytes) in &records {
                self.recover_record(ORDER[stage], key, bytes, cx);
            }
            let recovery = self.recovery();
            match records.last() {
                Some((last, _)) if more => {
                    let mut next = last.to_vec();
                    next.push(0);
                    recovery.from = next.into();
                }
                _ => {
                    recovery.stage += 1;
                    recovery.from = Bytes::new();
                }
            }
        }
        let recovery = self.recovery();
        if recovery.stage == ORDER.len() {
            let attempts = std::mem::take(&mut recovery.attempts);
            let placement = recovery.placement.take();
            self.recover_placement(placement, cx);
            cx.fx.trace(|| format!("recovered {} prepared attempts", attempts.len()));
            return self.serve(cx);
        }
        let load = Load::Records { space: ORDER[recovery.stage], from: recovery.from.clone(), limit: RECOVERY_PAGE, bytes: PAGE_BYTES_MAX };
        cx.load(Pending::Recover, load);
    }

    fn recover_record(&mut self, space: Space, key: &[u8], bytes: &[u8], cx: &mut Context<'_>) {
        let damaged = "the store verifies checksums, and records are written by this format version only";
        match space {
            NUMBERS => match Number::decode(key, bytes).expect(damaged) {
                (Number::Ceiling, value) => cx.clock = cx.clock.recovered(Timestamp::from_bits(value)),
                (Number::Forgotten, value) => self.coordinator.recover_forgotten(Timestamp::from_bits(value)),
                (Number::LogEnd, value) => self.cohort.log_end = value,
                (Number::HistoryFloor, value) => self.cohort.history_floor = Timestamp::from_bits(value),
                (Number::Truncated, value) => self.catch_up.truncated = value,
                (Number::Collected, value) => self.catch_up.collected = Timestamp::from_bits(value),
                (Number::Highest, value) => self.cohort.recover_highest(Timestamp::from_bits(value)),
                (Number::Cursor(region), value) => self.catch_up.set_cursor(region, value),
            },
            PLACEMENT => self.recovery().placement = Some(record::decode(bytes).expect(damaged)),
            VOTES => {
                let record: VoteRecord = record::decode(bytes).expect(damaged);
                self.coordinator.recover_vote(record, cx);
            }
            CARRIED => self.cohort.recover_carried(cx, record::decode(bytes).expect(damaged)),
            _ => {
                let record: PreparedRecord = record::decode(bytes).expect(damaged);
                self.recovery().attempts.push(record.meta.attempt);
                self.cohort.recover_prepared(cx, record);
            }
        }
    }
}
