//! Request ids and what was answered to them: what makes acquiring and releasing exactly-once.
//!
//! **By age.** An id is known for [`REMEMBERED_TICKS`] at least, however many operations come. A client that asks again must
//! do so before that: afterwards the same id does the same thing again. Age is counted in ticks of the site and not by its clock,
//! which may jump; a new incarnation counts all anew.
//!
//! **Bounded.** What is remembered takes [`WINDOW_BYTES_MAX`] at the most. A site at which more is done under ids within that time
//! refuses further ids until the oldest may be forgotten: to forget one early would do a retry twice, and a release that is done
//! twice frees tokens that another client holds.
//!
//! Invariant: an answer is written to disk in the same batch as the change it tells of.

use crate::catalog::QuotaId;
use crate::name::Name;
use crate::operation::{Action, Done, Operation, RequestKey};
use crate::refusal::Refusal;
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Batch, Table, record};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// An id is remembered for so many ticks: 60 s.
pub const REMEMBERED_TICKS: u64 = 1_200;
/// What is remembered takes so many bytes of memory at the most: 2 million operations under short ids, 35,000 in each second.
pub const WINDOW_BYTES_MAX: usize = 512 << 20;
/// What is remembered of an operation takes so many bytes besides its id and the name of its quota.
const ANSWER_BYTES: usize = 200;
/// So many answers are forgotten in one step at the most.
const FORGOTTEN_MAX: usize = 4_096;

/// An operation that was done under an id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    key: RequestKey,
    action: Action,
    quota: Name,
    /// A quota that was dropped and made again under its name is another.
    quota_id: QuotaId,
    amount: u64,
    done: Done,
}

/// An operation that is remembered.
#[derive(Debug)]
struct Remembered {
    sequence: u64,
    /// When, in ticks of this incarnation.
    tick: u64,
    answered: Answered,
}

/// The last operations that were done under an id.
#[derive(Debug)]
pub struct Window {
    space: Space,
    bytes_max: usize,
    bytes: usize,
    next: u64,
    /// Sequence numbers by id.
    by_key: BTreeMap<RequestKey, u64>,
    /// From the oldest on.
    answers: VecDeque<Remembered>,
}

impl Answered {
    fn bytes(&self) -> usize {
        ANSWER_BYTES + self.key.as_bytes().len() + self.quota.as_str().len()
    }
}

impl Window {
    /// An empty window of at most so many bytes, kept on disk in `space`.
    pub fn new(space: Space, bytes_max: usize) -> Window {
        Window { space, bytes_max, bytes: 0, next: 0, by_key: BTreeMap::new(), answers: VecDeque::new() }
    }

    /// Takes up a record of an earlier incarnation; in the order of their keys.
    pub fn recover(&mut self, key: &[u8], answered: Answered) {
        self.next = u64::from_be_bytes(key.try_into().expect("written by this module"));
        self.push(answered, 0);
    }

    fn push(&mut self, answered: Answered, tick: u64) {
        let sequence = self.next;
        self.next += 1;
        self.bytes += answered.bytes();
        self.by_key.insert(answered.key.clone(), sequence);
        self.answers.push_back(Remembered { sequence, tick, answered });
    }

    /// Lists it; as much again may come of operations that wait.
    pub fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("window.bytes", self.bytes, 2 * self.bytes_max).stays());
        visit(Table::new("window.keys", self.by_key.len(), self.answers.len()).stays());
    }

    /// True if no further id is to be used for now. Operations that wait already are remembered all the same: they are few.
    pub fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// What was answered to `operation` before, if it was done under its id. `quota_id`: what its quota's name means now.
    pub fn find(&self, operation: &Operation, quota_id: Option<QuotaId>) -> Option<Result<Done, Refusal>> {
        let key = operation.id.as_ref()?;
        let sequence = *self.by_key.get(key)?;
        let first = self.answers.front().expect("an id leads to an answer").sequence;
        let answered = &self.answers[(sequence - first) as usize].answered;
        let known = quota_id.is_none_or(|id| id == answered.quota_id);
        let same = known && answered.action == operation.action && answered.quota == operation.quota && answered.amount == operation.amount;
        Some(if same { Ok(answered.done) } else { Err(Refusal::IdReused(format!("{key:?}"))) })
    }

    /// Remembers that `operation` was done at `tick`, if it has an id.
    pub fn remember(&mut self, operation: &Operation, quota_id: QuotaId, done: Done, tick: u64, batch: &mut Batch) {
        let Some(key) = &operation.id else { return };
        let answered = Answered {
            // A copy: a part of what the network brought would keep all of that.
            key: RequestKey::new(Bytes::copy_from_slice(key.as_bytes())).expect("it is one"),
            action: operation.action,
            quota: operation.quota.clone(),
            quota_id,
            amount: operation.amount,
            done,
        };
        batch.put_record(self.space, self.next.to_be_bytes().to_vec(), record::encode(&answered));
        self.push(answered, tick);
    }

    /// Forgets what has been remembered long enough at `tick`, so much of it as one step may write.
    pub fn forget(&mut self, tick: u64, batch: &mut Batch) {
        for _ in 0..FORGOTTEN_MAX {
            let Some(oldest) = self.answers.pop_front_if(|oldest| oldest.tick + REMEMBERED_TICKS <= tick) else { return };
            self.by_key.remove(&oldest.answered.key);
            self.bytes -= oldest.answered.bytes();
            batch.delete_record(self.space, oldest.sequence.to_be_bytes().to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::actor::Op;

    const SPACE: Space = Space(7);
    const VM: QuotaId = QuotaId(1);
    const DONE: Done = Done { left: 1 };

    fn operation(amount: u64, id: &'static str) -> Operation {
        let id = (!id.is_empty()).then(|| RequestKey::new(id).expect("an id"));
        Operation::acquire(Name::new("vm").expect("a name"), amount, id).expect("an amount")
    }

    fn window() -> Window {
        Window::new(SPACE, WINDOW_BYTES_MAX)
    }

    #[test]
    fn an_operation_is_answered_again_and_another_under_its_id_refused() {
        let mut window = window();
        let mut batch = Batch::new();
        window.remember(&operation(5, "a"), VM, Done { left: 3 }, 0, &mut batch);
        window.remember(&operation(5, ""), VM, Done { left: 2 }, 0, &mut batch);
        assert_eq!(batch.ops.len(), 1);
        assert_eq!(window.find(&operation(5, "a"), Some(VM)), Some(Ok(Done { left: 3 })));
        assert_eq!(window.find(&operation(6, "a"), Some(VM)), Some(Err(Refusal::IdReused("a".into()))));
        assert_eq!(window.find(&operation(5, "a"), None), Some(Ok(Done { left: 3 })), "the quota is gone, what was done is done");
        assert_eq!(window.find(&operation(5, "a"), Some(QuotaId(2))), Some(Err(Refusal::IdReused("a".into()))));
        assert_eq!(window.find(&operation(5, "b"), Some(VM)), None);
        assert_eq!(window.find(&operation(5, ""), Some(VM)), None);
    }

    #[test]
    fn an_id_is_forgotten_once_it_is_old_and_no_matter_how_many_there_are() {
        let mut window = window();
        let mut batch = Batch::new();
        window.remember(&operation(1, "a"), VM, DONE, 5, &mut batch);
        for n in 0..100_000 {
            let id = Some(RequestKey::new(format!("order-{n}")).expect("an id"));
            window.remember(&Operation { id, ..operation(1, "") }, VM, DONE, 6, &mut Batch::new());
        }
        window.forget(REMEMBERED_TICKS + 4, &mut batch);
        assert_eq!((batch.ops.len(), window.find(&operation(1, "a"), Some(VM))), (1, Some(Ok(DONE))));
        window.forget(REMEMBERED_TICKS + 5, &mut batch);
        assert_eq!((batch.ops.len(), window.find(&operation(1, "a"), Some(VM))), (2, None));
        window.forget(REMEMBERED_TICKS + 6, &mut batch);
        assert_eq!(batch.ops.len(), 2 + FORGOTTEN_MAX, "not all in one step");
        assert_eq!(window.find(&operation(1, "order-4095"), Some(VM)), None);
        assert_eq!(window.find(&operation(1, "order-4096"), Some(VM)), Some(Ok(DONE)));
    }

    #[test]
    fn it_is_full_by_bytes_and_has_room_again_once_the_oldest_are_forgotten() {
        let mut batch = Batch::new();
        let mut window = Window::new(SPACE, 2 * (ANSWER_BYTES + 3));
        window.remember(&operation(1, "a"), VM, DONE, 0, &mut batch);
        assert!(!window.is_full());
        window.remember(&operation(1, "b"), VM, DONE, 1, &mut batch);
        assert!(window.is_full());
        window.forget(REMEMBERED_TICKS, &mut batch);
        assert!(!window.is_full());
        window.forget(REMEMBERED_TICKS + 1, &mut batch);
        assert_eq!(window.bytes, 0);
    }

    #[test]
    fn a_new_incarnation_knows_what_was_not_forgotten_and_for_as_long_again() {
        let mut window = window();
        let mut batch = Batch::new();
        for (tick, id) in ["a", "b", "c"].into_iter().enumerate() {
            window.remember(&operation(1, id), VM, DONE, tick as u64, &mut batch);
        }
        window.forget(REMEMBERED_TICKS, &mut batch);
        let mut disk = BTreeMap::new();
        for op in batch.ops {
            match op {
                Op::PutRecord { key, bytes, .. } => disk.insert(key, bytes),
                Op::DeleteRecord { key, .. } => disk.remove(&key),
                Op::PutVersion { .. } => unreachable!("there are no rows"),
            };
        }
        let mut again = Window::new(SPACE, WINDOW_BYTES_MAX);
        for (key, bytes) in &disk {
            again.recover(key, record::decode(bytes).expect("written above"));
        }
        let mut batch = Batch::new();
        again.remember(&operation(1, "d"), VM, DONE, 1, &mut batch);
        again.forget(REMEMBERED_TICKS - 1, &mut batch);
        assert_eq!((batch.ops.len(), again.find(&operation(1, "a"), Some(VM))), (1, None));
        for id in ["b", "c", "d"] {
            assert_eq!(again.find(&operation(1, id), Some(VM)), Some(Ok(DONE)));
        }
        again.forget(REMEMBERED_TICKS, &mut batch);
        assert_eq!((batch.ops.len(), again.find(&operation(1, "d"), Some(VM))), (3, Some(Ok(DONE))));
    }
}
