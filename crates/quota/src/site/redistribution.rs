//! When tokens are redistributed (Samya, 4.2), and what follows for those who wait.
//!
//! *Reactive*: an operation lacks tokens. *Proactive*: few are left and more are forecast to be needed. Besides: tokens
//! are to be taken out of circulation, or back from clients that hold them no more.

use super::Site;
use super::pace::Calling;
use super::quota::{Moment, Quota, SiteAccountPort};
use super::waiting::{TRIES_MAX, Waiting};
use crate::avantan::{self, Cause, Ending, Protocol};
use crate::catalog::QuotaId;
use crate::info::SiteTokens;
use crate::list::{Entry, List};
use crate::message::{Note, Promise};
use crate::name::Name;
use crate::operation::{Action, Operation};
use crate::refusal::Refusal;
use crate::tokens::Tokens;
use rhumb_core::{Effects, SiteId, work};
use std::collections::{BTreeSet, VecDeque};

/// An operation takes part in as many redistributions and counts as it may, so it waits longer where answers take longer: by so many.
const ANSWERS_WAITED_FOR: u32 = 10;

/// After so many counts in a row that came to nothing, redistributions are led until the next count.
const COUNTS_VOID_MAX: u32 = 2;

/// What the end of a redistribution tells those for whom it brought too few tokens.
struct Verdict {
    /// All sites took part; together they seem to have that many left.
    left_at_most: Option<u64>,
    /// All sites took part; clients seem to hold that many.
    held: Option<u64>,
    /// And so many it is: all sites stood still.
    counted: bool,
    /// All sites took part, and either kept nothing back or want more than they have, kept tokens included: to repeat it with
    /// all on offer is of no use to an acquisition.
    hopeless: bool,
    /// Else: other sites want tokens too; if not, some could not be asked.
    contended: bool,
    /// Else: why not all tokens could be had.
    why: String,
    /// Else: after so many redistributions an operation is refused.
    tries_max: u32,
}

impl Verdict {
    fn unknown(why: String, tries_max: u32) -> Verdict {
        Verdict { left_at_most: None, held: None, counted: false, hopeless: false, contended: false, why, tries_max }
    }

    /// True if there seem to be fewer tokens than `action` needs. Sites reported theirs one after another: a token that was released at one site
    /// after its report, and acquired at another before that one's report, is in neither.
    fn lacks(&self, Operation { action, amount, .. }: &Operation) -> bool {
        let there = if *action == Action::Acquire { self.left_at_most } else { self.held };
        there.is_some_and(|there| *amount > there)
    }

    /// The refusal for an operation that had its say and still lacks tokens; none: it may wait for the next redistribution.
    fn refusal(&self, waiting: &mut Waiting, quota: &Name) -> Option<Refusal> {
        let Operation { action, amount, .. } = waiting.operation;
        let lacks = self.lacks(&waiting.operation);
        if lacks && self.counted {
            let quota = quota.clone();
            return Some(match action {
                Action::Acquire => Refusal::Exceeded { quota, wanted: amount },
                Action::Release | Action::Free => Refusal::NotHeld { quota, amount },
            });
        }
        waiting.tries += 1;
        let hopeless = self.hopeless && action == Action::Acquire && !lacks;
        if hopeless { Some(self.unreachable(quota)) } else { self.given_up(waiting, quota) }
    }

    /// The refusal for an operation for which enough was tried, whether it had its say or not.
    fn given_up(&self, waiting: &Waiting, quota: &Name) -> Option<Refusal> {
        (waiting.tries >= self.tries_max).then(|| self.unreachable(quota))
    }

    fn unreachable(&self, quota: &Name) -> Refusal {
        Refusal::Unreachable { quota: quota.clone(), why: self.why.clone() }
    }
}

impl Site {
    /// A step of the protocol of quota `id`, and what follows from it.
    pub(super) fn with_protocol(
        &mut self,
        id: QuotaId,
        fx: &mut Effects<Site>,
        step: impl FnOnce(&mut Protocol, &mut SiteAccountPort<'_>, &mut avantan::Out),
    ) {
        // A quota that this site does not know yet, or no more: the sender will ask again, or learn that it is gone.
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        let needs = quota.needs();
        let mut out = avantan::Out::default();
        let moment = Moment { now: self.now, tick: self.ticks };
        let (protocol, mut port) = quota.port(self.cluster.me, moment, needs, &self.config);
        port.rules = self.rules;
        step(protocol, &mut port, &mut out);
        if port.moved {
            self.outcome.accounts.insert(id);
            // Tokens may be on their way from now on.
            self.interrupt_count(id, fx);
        }
        self.carry_out_protocol(id, out, fx);
    }

    fn carry_out_protocol(&mut self, id: QuotaId, out: avantan::Out, fx: &mut Effects<Site>) {
        if out.changed {
            self.outcome.protocols.insert(id);
        }
        if out.called
            && let Some(quota) = self.quotas.get_mut(&id)
        {
            quota.calling = Some(Calling::new(self.ticks));
        }
        if out.remembered {
            self.outcome.lists.insert(id);
        }
        for (to, note) in out.notes {
            fx.send(to, Note::Avantan(id, note));
        }
        self.outcome.promises.extend(out.promises.into_iter().map(|(to, promise)| (to, Promise::Avantan(id, promise))));
        self.active.insert(id);
        for ending in out.endings {
            self.on_ending(id, ending, fx);
        }
    }

    /// Leads a redistribution of quota `id` if there is reason to and it can be done now.
    pub(super) fn maybe_redistribute(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        let rank = self.cluster.rank() as u32;
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        self.active.insert(id);
        if !quota.protocol.is_idle() || quota.rest > 0 || quota.count.is_under_way() {
            return;
        }
        let settles = quota.settling.as_ref().is_some_and(|settling| settling.is_due());
        if (quota.needs_recount || settles || !quota.readers.is_empty()) && quota.count.is_idle() {
            return self.lead_count(id, fx);
        }
        // Nobody needs its tokens, and it cannot be counted while they are moved.
        if quota.definition.closing {
            return;
        }
        // No redistribution replaces the recount, and it is due soon; unless some site is at something for long.
        if quota.needs_recount && quota.counts_void < COUNTS_VOID_MAX {
            return;
        }
        let reactive = !quota.account.tokens.covers(quota.needs());
        if reactive {
            fx.count("quota.redistribution.reactive");
        } else if quota.foresees {
            fx.count("quota.redistribution.proactive");
        } else if quota.shortage.asks_again() {
            fx.count("quota.redistribution.again");
        } else if quota.collects() && quota.debt_in == 0 {
            fx.count("quota.redistribution.debt");
            quota.collect_later(rank, &self.config);
        } else {
            return;
        }
        quota.foresees = false;
        quota.leads = true;
        let refused = quota.shortage.asks_for();
        let all = std::mem::take(&mut quota.urgent) || refused > 0;
        self.with_protocol(id, fx, |protocol, port, out| {
            port.need_at_least(refused);
            let call = port.call(all);
            protocol.start(call, port, out);
        });
    }

    /// After tokens of `id` were taken: looks ahead, and asks for more in time.
    pub(super) fn look_ahead(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        let quota = self.quotas.get_mut(&id).expect("a name leads to a quota");
        if quota.look_ahead(self.now) {
            self.maybe_redistribute(id, fx);
        }
    }

    fn on_ending(&mut self, id: QuotaId, ending: Ending, fx: &mut Effects<Site>) {
        let (me, rank) = (self.cluster.me, self.cluster.rank() as u32);
        let is_of_all = matches!(&ending, Ending::Decided { list, .. } if self.lacking_in(list).next().is_none());
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        match &ending {
            Ending::Decided { list, led } if list.entry(me).is_some() => {
                fx.count("quota.redistribution.applied");
                quota.granted(&self.config);
                // What all could spare has paid what each of them owes. So sites that owe do not ask one after another for what nobody has, and
                // no count that somebody leads now is interrupted.
                if !*led && is_of_all && quota.account.owed > 0 && quota.account.returning == 0 {
                    quota.collect_later(rank, &self.config);
                }
                // Before anybody is served: what is taken then is no longer left.
                self.learn(id, list, *led);
            }
            Ending::Decided { .. } => fx.count("quota.redistribution.without"),
            Ending::Dead(_) => {
                fx.count("quota.redistribution.dead");
                quota.rest = self.config.rest_ticks * (1 + rank);
            }
        }
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        let led = quota.protocol.is_idle() && std::mem::take(&mut quota.leads);
        let met_another = match &ending {
            Ending::Decided { list, .. } => list.entry(me).is_none(),
            Ending::Dead(cause) => *cause == Cause::Busy,
        };
        if led && met_another {
            quota.collect_soon(rank, &self.config);
        }
        self.on_more_tokens(id, fx);
        self.take_back_brought(id, &ending, fx);
        // That another's redistribution came to nothing says nothing of tokens.
        if matches!(ending, Ending::Decided { .. }) || led {
            self.judge(id, &ending, fx);
        }
        self.maybe_redistribute(id, fx);
    }

    /// Of the held tokens that a list has brought, takes back those that no client holds. Releases that wait here were served before.
    fn take_back_brought(&mut self, id: QuotaId, ending: &Ending, fx: &mut Effects<Site>) {
        let me = self.cluster.me;
        let Ending::Decided { list, led } = ending else { return };
        let Some(brought) = list.held_brought(me) else { return };
        let asked_all = *led && self.lacking_in(list).next().is_none();
        let Some(quota) = self.quotas.get_mut(&id).filter(|quota| quota.account.returning > 0) else { return };
        // What no other site holds is among what is held here.
        let is_here = asked_all && list.entries.iter().all(|entry| entry.site == me || entry.kept.held == 0);
        quota.account.find(if is_here { u64::MAX } else { brought });
        // All sites were asked for it, and it is not there: if it never will be is counted.
        quota.needs_recount |= asked_all && quota.account.returning > 0;
        self.outcome.accounts.insert(id);
        self.on_more_tokens(id, fx);
    }

    /// Serves what waits for tokens of `id` and of the quotas below it: first come, first served, but nobody waits behind
    /// somebody who needs more than there is.
    pub(super) fn on_more_tokens(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        self.let_go(id, &[Action::Release, Action::Acquire], fx);
    }

    /// Serves those of them who wait for these actions. True if somebody was served.
    pub(super) fn let_go(&mut self, id: QuotaId, actions: &[Action], fx: &mut Effects<Site>) -> bool {
        work::add(1);
        let mut served = false;
        let mut lacking = BTreeSet::new();
        for &action in actions {
            let mut index = 0;
            while let Some(operation) = self.waiting_at(id, action, index) {
                match self.carry_out(id, &operation) {
                    Ok(done) => {
                        let quota = self.quotas.get_mut(&id).expect("it has a queue");
                        let waiting = queue(quota, action).remove(index);
                        self.finish(id, waiting.expect("it was just looked at"), Ok(done));
                        served = true;
                    }
                    Err(quota) => {
                        lacking.insert(quota);
                        index += 1;
                    }
                }
            }
        }
        // What has enough of this quota may lack tokens of one above it.
        for quota in lacking.into_iter().filter(|quota| *quota != id) {
            self.maybe_redistribute(quota, fx);
        }
        let below = self.quotas.get(&id).map(|quota| quota.waiting_below(actions));
        for child in below.unwrap_or_default() {
            served |= self.let_go(child, actions, fx);
        }
        served
    }

    /// What waits at that place of a queue of `id`, if any of its tokens are there for it.
    fn waiting_at(&mut self, id: QuotaId, action: Action, index: usize) -> Option<Operation> {
        let quota = self.quotas.get_mut(&id)?;
        let there = quota.allows(action, 1);
        queue(quota, action).get(index).filter(|_| there).map(|waiting| waiting.operation.clone())
    }

    /// Refuses what still lacks tokens of `id`, if there are none or if enough was tried.
    fn judge(&mut self, id: QuotaId, ending: &Ending, fx: &mut Effects<Site>) {
        let verdict = match ending {
            Ending::Decided { list, .. } if list.entry(self.cluster.me).is_none() => return,
            Ending::Decided { list, led } => self.verdict(list, *led),
            Ending::Dead(Cause::Busy) => {
                Verdict { contended: true, ..Verdict::unknown("other sites are redistributing".into(), TRIES_MAX) }
            }
            Ending::Dead(Cause::Unanswered) => Verdict::unknown("too few other sites answer".into(), TRIES_MAX / 2),
        };
        let Some(offers) = self.quotas.get(&id).map(|quota| quota.offers) else { return };
        self.judge_all(id, offers, &verdict, fx);
    }

    /// Refuses what lacks tokens of `id` that are not there: all sites were counted.
    pub(super) fn judge_count(&mut self, id: QuotaId, counted: &[SiteTokens], asked_before: u64, settled: bool, fx: &mut Effects<Site>) {
        let sum = |part: fn(&SiteTokens) -> u64| counted.iter().map(part).sum::<u64>();
        let verdict = Verdict {
            left_at_most: Some(sum(|site| site.left).saturating_sub(sum(|site| site.owed))),
            // What clients hold of a lost site's tokens, nobody can say before it is booked.
            held: settled.then(|| sum(|site| site.held)),
            counted: true,
            contended: true,
            ..Verdict::unknown("other sites want what is left".into(), TRIES_MAX)
        };
        self.judge_all(id, asked_before, &verdict, fx);
    }

    /// Judges what lacks tokens of `id` and had its say in the verdict: what came when there were fewer than `offers`.
    fn judge_all(&mut self, id: QuotaId, offers: u64, verdict: &Verdict, fx: &mut Effects<Site>) {
        for link in self.subtree(id) {
            for action in [Action::Release, Action::Acquire] {
                self.judge_queue(id, link, action, offers, verdict, fx);
            }
        }
    }

    /// What a list says of how scarce tokens are. A member knows how old that is at the most: its own entry was made after
    /// the leader's call, and so were all others.
    fn learn(&mut self, id: QuotaId, list: &List, led: bool) {
        let (complete, rank) = (self.lacking_in(list).next().is_none(), self.cluster.rank() as u32);
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        let sum = |part: fn(&Entry) -> u64| list.entries.iter().map(part).sum::<u64>();
        let owed = sum(|entry| entry.owed);
        if sum(|entry| entry.offered.left) >= sum(|entry| entry.wanted.left).saturating_add(owed) {
            return quota.shortage.end();
        }
        let since = quota.offered_at.and_then(|at| u32::try_from(self.ticks - at + 1).ok());
        let age = since.zip(if led { Some(0) } else { list.gathered }).map(|(since, gathered)| since.saturating_add(gathered));
        let left = sum(|entry| entry.offered.left + entry.kept.left).saturating_sub(owed);
        quota.shortage.begin(age.filter(|_| complete).map(|_| left), age.unwrap_or(0), rank);
    }

    /// The sites, of those that are not lost, that are no members of `list`. Lost ones may be.
    fn lacking_in(&self, list: &List) -> impl Iterator<Item = SiteId> {
        self.cluster.members().filter(|site| list.entry(*site).is_none())
    }

    /// What a list tells of the tokens that there are. Only one that this site led tells for sure: in another's, entries may
    /// be older than an operation that waits here.
    fn verdict(&self, list: &List, led: bool) -> Verdict {
        let missing: Vec<String> = self.lacking_in(list).map(|site| site.to_string()).collect();
        if !missing.is_empty() {
            return Verdict::unknown(format!("these sites took no part in redistributing: {}", missing.join(", ")), TRIES_MAX);
        }
        let all: Tokens = list.entries.iter().map(|entry| entry.offered + entry.kept).sum();
        let owed: u64 = list.entries.iter().map(|entry| entry.owed).sum();
        let wanted: u64 = list.entries.iter().map(|entry| entry.wanted.left).sum();
        Verdict {
            left_at_most: led.then_some(all.left.saturating_sub(owed)),
            held: led.then_some(all.held),
            counted: false,
            hopeless: all.left < wanted.saturating_add(owed) || list.entries.iter().all(|entry| entry.kept.left == 0),
            contended: true,
            why: "other sites want what is left".into(),
            tries_max: TRIES_MAX,
        }
    }

    /// The quota `id` and those below it where something waits.
    fn subtree(&self, id: QuotaId) -> Vec<QuotaId> {
        let mut found = vec![id];
        let mut next = 0;
        while let Some(quota) = found.get(next).and_then(|id| self.quotas.get(id)) {
            found.extend(quota.waiting_below(&[Action::Release, Action::Acquire]));
            next += 1;
        }
        work::add(found.len());
        found
    }

    /// Judges what waits in quota `link` for tokens of `scarce`.
    fn judge_queue(&mut self, scarce: QuotaId, link: QuotaId, action: Action, offers: u64, verdict: &Verdict, fx: &mut Effects<Site>) {
        let rank = self.cluster.rank() as u32;
        let Some(quota) = self.quotas.get(&scarce) else { return };
        let (tokens, name) = (quota.account.tokens, quota.definition.name.clone());
        let Some(waiting) = self.quotas.get_mut(&link).map(|quota| std::mem::take(queue(quota, action))) else { return };
        work::add(waiting.len());
        for mut waiting in waiting {
            let amount = waiting.operation.amount;
            let lacks = amount > if action == Action::Acquire { tokens.left } else { tokens.held };
            // One that came after the offer was made had no say in what was wanted.
            let heard = waiting.lacking == scarce && waiting.offers < offers;
            let quota = self.quotas.get_mut(&scarce).expect("it was just there");
            if lacks && waiting.lacking != scarce {
                (waiting.lacking, waiting.offers) = (scarce, quota.offers);
                // What lacks tokens of two quotas has its say in neither: as often as it may, and not until it is overdue.
                waiting.tries += 1;
            }
            let refusal = match (lacks, heard) {
                (false, _) => None,
                (true, true) if verdict.counted => verdict.refusal(&mut waiting, &name),
                (true, true) => verdict.refusal(&mut waiting, &name).or_else(|| quota.shortage.refusal(&waiting.operation, &name)),
                (true, false) => verdict.given_up(&waiting, &name).or_else(|| quota.shortage.refusal(&waiting.operation, &name)),
            };
            match refusal {
                None => {
                    quota.urgent |= lacks && heard;
                    quota.needs_recount |= lacks && heard && !verdict.counted && verdict.lacks(&waiting.operation);
                    queue(self.quotas.get_mut(&link).expect("it was just there"), action).push_back(waiting);
                }
                Some(refusal) => {
                    fx.count(match refusal {
                        Refusal::Exceeded { .. } => "quota.refused.exceeded",
                        Refusal::NotHeld { .. } => "quota.refused.not_held",
                        _ if verdict.contended => "quota.refused.contended",
                        _ => "quota.refused.unreachable",
                    });
                    if let Refusal::Unreachable { why, .. } = &refusal
                        && action == Action::Acquire
                    {
                        quota.shortage.tried(verdict.contended.then_some(amount), why.clone(), rank);
                    }
                    self.finish(link, waiting, Err(refusal));
                }
            }
        }
    }

    pub(super) fn tick_quota(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        let patience = self.config.patience.for_answers_after(self.pace.slowest());
        if !self.quotas.get(&id).is_some_and(|quota| quota.protocol.is_idle()) {
            self.with_protocol(id, fx, |protocol, port, out| protocol.tick(&patience, port, out));
        }
        if self.quotas.get(&id).is_some_and(|quota| !quota.count.is_idle()) {
            self.with_count(id, fx, |count, _, out| count.tick(out));
        }
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        quota.shortage.tick(!quota.protocol.is_idle());
        quota.rest = quota.rest.saturating_sub(1);
        quota.debt_in = quota.debt_in.saturating_sub(1);
        quota.settling.iter_mut().for_each(|settling| settling.tick());
        self.expire(id, fx);
        self.on_more_tokens(id, fx);
        self.maybe_redistribute(id, fx);
        if self.quotas.get(&id).is_none_or(|quota| !quota.is_active() && quota.needs().is_none()) {
            self.active.remove(&id);
        }
    }

    /// Refuses what has waited too long.
    fn expire(&mut self, id: QuotaId, fx: &mut Effects<Site>) {
        let patience = self.config.patience;
        let later = patience.for_answers_after(self.pace.slowest()).gather - patience.gather;
        for action in [Action::Release, Action::Acquire] {
            let Some(quota) = self.quotas.get_mut(&id) else { return };
            let name = quota.definition.name.clone();
            let max = self.config.wait_ticks + ANSWERS_WAITED_FOR * later;
            work::add(queue(quota, action).len());
            queue(quota, action).iter_mut().for_each(|waiting| waiting.waited += 1);
            // First come, first overdue.
            while let Some(quota) = self.quotas.get_mut(&id)
                && queue(quota, action).front().is_some_and(|waiting| waiting.waited >= max)
            {
                let waiting = queue(quota, action).pop_front().expect("it was just looked at");
                let why = "redistributing takes too long".to_owned();
                fx.count("quota.refused.overdue");
                self.finish(id, waiting, Err(Refusal::Unreachable { quota: name.clone(), why }));
            }
        }
        self.expire_readers(id);
    }
}

fn queue(quota: &mut Quota, action: Action) -> &mut VecDeque<Waiting> {
    match action {
        Action::Acquire => &mut quota.acquires,
        Action::Release | Action::Free => &mut quota.releases,
    }
}
