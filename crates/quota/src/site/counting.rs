//! Counts: when a site leads one, and what follows from it for readers and for those who wait.

use super::Site;
use super::quota::Reader;
use super::settling::Settling;
use crate::catalog::QuotaId;
use crate::count::{Count, Ended, Here, Out, Tally, Word};
use crate::info::{Read, SiteTokens};
use crate::message::{Note, Promise};
use crate::refusal::Refusal;
use crate::request::Answer;
use rhumb_core::Effects;

impl Site {
    /// A step in a count of quota `id`, and what follows from it.
    pub(super) fn with_count(&mut self, id: QuotaId, fx: &mut Effects<Site>, step: impl FnOnce(&mut Count, Here, &mut Out)) {
        let me = self.cluster.me;
        // A quota that this site does not know: the leader will lose patience.
        let terms = self.terms(id);
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        // Above those of earlier incarnations.
        self.last_read = (self.last_read + 1).max(self.now.as_micros());
        let here = Here {
            name: self.last_read,
            word: Word { tokens: quota.tokens(me), in_doubt: quota.account.in_doubt, returning: quota.account.returning, terms },
            idle: quota.protocol.is_idle(),
            asked_before: quota.offers + 1,
        };
        let mut out = Out::default();
        step(&mut quota.count, here, &mut out);
        if out.stands {
            quota.offers += 1;
        }
        self.active.insert(id);
        for (to, note) in out.notes {
            fx.send(to, Note::Count(id, note));
        }
        self.outcome.promises.extend(out.promises.into_iter().map(|(to, promise)| (to, Promise::Count(id, promise))));
        match out.ended {
            Some(Ended::Counted { tally, asked_before, led }) => {
                fx.count("quota.count.done");
                let settled = self.was_settled(id, tally.terms);
                self.take_count(id, &tally, fx);
                self.answer_readers(id, &tally.tokens, asked_before, settled);
                self.on_more_tokens(id, fx);
                // Another's count says it as well: sites that come first may lead all counts.
                self.end_recount(id);
                // The outcome of another's may be late, and what this site has counted since is bounded already.
                if led && settled {
                    self.bound_returning(id, &tally);
                }
                self.judge_count(id, &tally.tokens, asked_before, settled, fx);
            }
            Some(Ended::Void) => {
                fx.count("quota.count.void");
                self.settling(id, Settling::void);
                self.quotas.get_mut(&id).expect("it was counted").counts_void += 1;
                self.on_more_tokens(id, fx);
            }
            Some(Ended::Unanswered) => {
                fx.count("quota.count.unanswered");
                self.settling(id, Settling::unanswered);
                self.end_recount(id);
                self.refuse_readers(id);
                self.on_more_tokens(id, fx);
            }
            None if out.goes_on => self.on_more_tokens(id, fx),
            None => return,
        }
        self.maybe_redistribute(id, fx);
    }

    /// Tells when what lost sites have of quota `id` is counted again, if this site is to do that.
    fn settling(&mut self, id: QuotaId, tell: impl FnOnce(&mut Settling)) {
        if let Some(settling) = self.quotas.get_mut(&id).and_then(|quota| quota.settling.as_mut()) {
            tell(settling);
        }
    }

    /// What a count could say of quota `id` has been said.
    fn end_recount(&mut self, id: QuotaId) {
        if let Some(quota) = self.quotas.get_mut(&id) {
            (quota.needs_recount, quota.counts_void) = (false, 0);
        }
    }

    /// Of what was to be taken back of quota `id` when all stood still, no more can be than they held. What has come to it since is no part of that.
    fn bound_returning(&mut self, id: QuotaId, tally: &Tally) {
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        let excess = tally.returning.saturating_sub(tally.held());
        if excess > 0 {
            quota.account.returning = quota.account.returning.saturating_sub(excess);
            self.outcome.accounts.insert(id);
        }
    }

    /// Leads a count of quota `id`.
    pub(super) fn lead_count(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        self.settling(id, Settling::begin);
        self.with_count(id, fx, |count, here, out| count.lead(here, out));
    }

    /// The tokens of quota `id` are about to change, or have: this site stands still no more.
    pub(super) fn interrupt_count(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        if self.quotas.get(&id).is_some_and(|quota| quota.count.is_standing()) {
            self.with_count(id, fx, |count, _, out| count.interrupt(out));
        }
    }

    /// All sites were counted: it is the answer for those who asked before this site stood still. If it was booked since what lost sites have,
    /// the next count is.
    fn answer_readers(&mut self, id: QuotaId, tokens: &[SiteTokens], asked_before: u64, settled: bool) {
        let is_settled = self.is_settled(id);
        let Some(quota) = self.quotas.get_mut(&id).filter(|_| settled || !is_settled) else { return };
        let readers = std::mem::take(&mut quota.readers);
        let (answered, others): (Vec<Reader>, _) = readers.into_iter().partition(|reader| reader.offers < asked_before);
        quota.readers = others.into();
        for reader in answered {
            let got = if settled { Ok(self.info(id, Read::Exact, tokens.to_vec())) } else { Err(unsettled()) };
            self.outcome.answers.push((reader.client, Answer::Got(got)));
        }
    }

    /// Not all sites could be counted.
    fn refuse_readers(&mut self, id: QuotaId) {
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        for reader in std::mem::take(&mut quota.readers) {
            let why = "not every site could be counted in time; a global read does without";
            self.outcome.answers.push((reader.client, Answer::Got(Err(Refusal::Unavailable(why.into())))));
        }
    }
}

/// Why nothing exact can be said of a quota.
fn unsettled() -> Refusal {
    Refusal::Unavailable("it is not booked yet what lost sites have; that takes all other sites".into())
}
