//! Request ids and what was answered to them: what makes acquiring and releasing exactly-once.
//!
//! Bounded: the oldest answers are forgotten. A client must have given up by then: a site that carries out 5,000
//! operations a second under ids remembers each for 13 s with the default size.
//!
//! Invariant: an answer is written to disk in the same batch as the change it tells of.

use crate::catalog::QuotaId;
use crate::name::Name;
use crate::operation::{Action, Done, Operation, RequestKey};
use crate::refusal::Refusal;
use rhumb_core::actor::Space;
use rhumb_core::{Batch, record};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

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

/// The last operations that were done under an id.
#[derive(Debug)]
pub struct Window {
    space: Space,
    size: usize,
    next: u64,
    /// Sequence numbers by id.
    by_key: BTreeMap<RequestKey, u64>,
    /// Answers from the oldest on, with their sequence numbers.
    answers: VecDeque<(u64, Answered)>,
}

impl Window {
    /// An empty window of at most `size` answers, kept on disk in `space`.
    pub fn new(space: Space, size: usize) -> Window {
        Window { space, size, next: 0, by_key: BTreeMap::new(), answers: VecDeque::new() }
    }

    /// Takes up a record of an earlier life; in the order of their keys.
    pub fn recover(&mut self, key: &[u8], answered: Answered) {
        let sequence = u64::from_be_bytes(key.try_into().expect("written by this module"));
        self.by_key.insert(answered.key.clone(), sequence);
        self.answers.push_back((sequence, answered));
        self.next = sequence + 1;
    }

    /// What was answered to `operation` before, if it was done under its id. `quota_id`: what its quota's name means now.
    pub fn find(&self, operation: &Operation, quota_id: Option<QuotaId>) -> Option<Result<Done, Refusal>> {
        let key = operation.id.as_ref()?;
        let sequence = *self.by_key.get(key)?;
        let first = self.answers.front().expect("an id leads to an answer").0;
        let (_, answered) = &self.answers[(sequence - first) as usize];
        let known = quota_id.is_none_or(|id| id == answered.quota_id);
        let same = known && answered.action == operation.action && answered.quota == operation.quota && answered.amount == operation.amount;
        Some(if same { Ok(answered.done) } else { Err(Refusal::IdReused(format!("{key:?}"))) })
    }

    /// Remembers that `operation` was done, if it has an id.
    pub fn remember(&mut self, operation: &Operation, quota_id: QuotaId, done: Done, batch: &mut Batch) {
        let Some(key) = operation.id.clone() else { return };
        let answered = Answered {
            key: key.clone(),
            action: operation.action,
            quota: operation.quota.clone(),
            quota_id,
            amount: operation.amount,
            done,
        };
        let sequence = self.next;
        self.next += 1;
        batch.put_record(self.space, sequence.to_be_bytes().to_vec(), record::encode(&answered));
        self.by_key.insert(key, sequence);
        self.answers.push_back((sequence, answered));
        if self.answers.len() > self.size {
            let (sequence, oldest) = self.answers.pop_front().expect("it is longer than its size");
            self.by_key.remove(&oldest.key);
            batch.delete_record(self.space, sequence.to_be_bytes().to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::actor::Op;

    const SPACE: Space = Space(7);
    const VM: QuotaId = QuotaId(1);

    fn operation(amount: u64, id: &'static str) -> Operation {
        let id = (!id.is_empty()).then(|| RequestKey::new(id).expect("an id"));
        Operation::acquire(Name::new("vm").expect("a name"), amount, id).expect("an amount")
    }

    #[test]
    fn an_operation_is_answered_again_and_another_under_its_id_refused() {
        let mut window = Window::new(SPACE, 10);
        let mut batch = Batch::new();
        window.remember(&operation(5, "a"), VM, Done { left: 3 }, &mut batch);
        window.remember(&operation(5, ""), VM, Done { left: 2 }, &mut batch);
        assert_eq!(batch.ops.len(), 1);
        assert_eq!(window.find(&operation(5, "a"), Some(VM)), Some(Ok(Done { left: 3 })));
        assert_eq!(window.find(&operation(6, "a"), Some(VM)), Some(Err(Refusal::IdReused("a".into()))));
        assert_eq!(window.find(&operation(5, "a"), None), Some(Ok(Done { left: 3 })), "the quota is gone, what was done is done");
        assert_eq!(window.find(&operation(5, "a"), Some(QuotaId(2))), Some(Err(Refusal::IdReused("a".into()))));
        assert_eq!(window.find(&operation(5, "b"), Some(VM)), None);
        assert_eq!(window.find(&operation(5, ""), Some(VM)), None);
    }

    #[test]
    fn the_oldest_are_forgotten_here_and_on_disk_and_a_new_life_knows_the_others() {
        let mut window = Window::new(SPACE, 2);
        let mut batch = Batch::new();
        for id in ["a", "b", "c"] {
            window.remember(&operation(1, id), VM, Done { left: 1 }, &mut batch);
        }
        assert_eq!(window.find(&operation(1, "a"), Some(VM)), None);
        let mut disk = BTreeMap::new();
        for op in batch.ops {
            match op {
                Op::PutRecord { key, bytes, .. } => disk.insert(key, bytes),
                Op::DeleteRecord { key, .. } => disk.remove(&key),
                Op::PutVersion { .. } => unreachable!("there are no rows"),
            };
        }
        let mut again = Window::new(SPACE, 2);
        for (key, bytes) in &disk {
            again.recover(key, record::decode(bytes).expect("written above"));
        }
        for id in ["b", "c"] {
            assert_eq!(again.find(&operation(1, id), Some(VM)), Some(Ok(Done { left: 1 })));
        }
        let mut batch = Batch::new();
        again.remember(&operation(1, "d"), VM, Done { left: 1 }, &mut batch);
        assert_eq!((batch.ops.len(), again.find(&operation(1, "b"), Some(VM))), (2, None));
    }
}
