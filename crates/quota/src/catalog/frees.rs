//! The last requests to free tokens of lost sites, so that none is done twice, whichever sites it is sent to.
//!
//! Kept for all quotas together: every site keeps them, and a site that is behind is sent all of them in one message.

use super::QuotaId;
use crate::operation::RequestKey;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Requests that are known at the most.
pub const FREES_MAX: usize = 1_024;

/// A request to free tokens that was done.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Freed {
    /// Its id.
    pub id: RequestKey,
    /// Of which quota.
    pub quota: QuotaId,
    /// How many tokens.
    pub amount: u64,
}

/// The last of them, from the oldest on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frees(VecDeque<Freed>);

impl Frees {
    /// True if `request` was done; refused if its id was used for another one.
    pub fn knows(&self, request: &Freed) -> Result<bool, Refusal> {
        match self.0.iter().find(|done| done.id == request.id) {
            Some(done) if done != request => Err(Refusal::IdReused(format!("{:?}", request.id))),
            done => Ok(done.is_some()),
        }
    }

    /// Remembers that `request` was done, in place of the oldest if there are enough.
    pub fn remember(&mut self, request: Freed) {
        if self.0.len() == FREES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: usize, amount: u64) -> Freed {
        Freed { id: RequestKey::new(number.to_string()).expect("an id"), quota: QuotaId(1), amount }
    }

    #[test]
    fn a_request_to_free_is_known_until_there_were_many_others() {
        let mut frees = Frees::default();
        frees.remember(request(0, 3));
        assert_eq!(frees.knows(&request(0, 3)), Ok(true));
        (1..FREES_MAX).for_each(|number| frees.remember(request(number, 1)));
        assert_eq!(frees.knows(&request(0, 3)), Ok(true));
        frees.remember(request(FREES_MAX, 1));
        assert_eq!([request(0, 3), request(1, 1)].map(|request| frees.knows(&request)), [Ok(false), Ok(true)]);
    }

    #[test]
    fn an_id_stands_for_one_quota_and_amount() {
        let mut frees = Frees::default();
        frees.remember(request(0, 3));
        let others = [request(0, 4), Freed { quota: QuotaId(2), ..request(0, 3) }];
        others.iter().for_each(|other| assert!(matches!(frees.knows(other), Err(Refusal::IdReused(_))), "{other:?}"));
    }
}
