//! A site's part in a change of configuration: it seals its epoch, accepts what is proposed, and adopts what was decided.
//!
//! Consensus on the configuration of the next epoch is Paxos with one instance per epoch, whose acceptors are the members of this one. Its
//! first phase is the seal.
//!
//! ```text
//!   serving ── Seal, Accept ──▶ sealed ── Decided ──▶ serving the next epoch
//!      └─────────────────────── Decided ────────────────────▲
//! ```
//!
//! Invariants: nothing of a sealed epoch is served any more, over crashes too, so that what a site reports when it seals stays
//! all that it knows; a promise holds: no lower ballot is taken part in; whatever was prepared or decided in an epoch that is over
//! is dropped when the next one is adopted, but for what was carried.

use super::config::EPOCHS_KEPT_MAX;
use super::configuration::{Carried, Cause, Configuration, Epoch, Goal, carries};
use super::message::{Note, Promise, Report, TRANSACTION};
use super::planted::Planted;
use super::records::{ACCEPTOR, ASIDE, AcceptorRecord, BASE, Base, CONFIGURATION, PREPARED, put_versions, txn_key};
use super::replica::Replica;
use super::site::Site;
use rhumb_core::record::encode;
use rhumb_core::{Acceptor, Ballot, Batch, Effects, SiteId, Time};
use std::collections::BTreeSet;

/// A site's part in the change that ends its epoch.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) record: AcceptorRecord,
    /// The tick at which it last heard of an attempt.
    pub(super) since: u64,
    /// The tick since which it is sealed.
    pub(super) began: u64,
    /// How often it has tried to end this state itself.
    pub(super) tries: u64,
}

impl Site {
    pub(super) fn on_seal(&mut self, from: SiteId, ballot: Ballot, goal: Goal, fx: &mut Effects<Site>) {
        let mut acceptor = self.acceptor();
        let promised = acceptor.promise(ballot);
        if !self.takes_part(from, promised, fx) {
            return;
        }
        let unsettled = self.replica.unsettled();
        let unsettled = if self.rules.breaks(Planted::CommitsNotCarried) { Vec::new() } else { unsettled };
        let report = Report { accepted: acceptor.accepted().cloned(), holds: self.base.holds, clock: self.clock.last(), unsettled };
        let batch = self.seal(AcceptorRecord { acceptor, goal }, fx);
        fx.persist(batch).send(from, self.configuration.epoch.says(Promise::Sealed { ballot, report }));
    }

    pub(super) fn on_accept(&mut self, from: SiteId, ballot: Ballot, configuration: Box<Configuration>, fx: &mut Effects<Site>) {
        let goal = match &self.sealed {
            Some(sealed) => sealed.record.goal.clone(),
            None => {
                let (quorums, members, cores) = (configuration.quorums.clone(), configuration.members(), Some(configuration.cores));
                let (cause, why) = (configuration.cause, configuration.why.clone());
                Goal { quorums, members, lost: BTreeSet::new(), cores, cause, why }
            }
        };
        let mut acceptor = self.acceptor();
        let accepted = acceptor.accept(ballot, configuration);
        if !self.takes_part(from, accepted, fx) {
            return;
        }
        let batch = self.seal(AcceptorRecord { acceptor, goal }, fx);
        fx.persist(batch).send(from, self.configuration.epoch.says(Promise::Accepted { ballot }));
    }

    /// What it has promised and accepted of the next configuration.
    pub(super) fn acceptor(&self) -> Acceptor<Box<Configuration>> {
        self.sealed.as_ref().map(|sealed| sealed.record.acceptor.clone()).unwrap_or_default()
    }

    /// True if it takes part in a ballot of `from`; who is outbid is told. Only members do.
    fn takes_part(&self, from: SiteId, taken: Result<bool, Ballot>, fx: &mut Effects<Site>) -> bool {
        if let (true, Err(ballot)) = (self.is_member(), taken) {
            fx.send(from, self.configuration.epoch.says(Note::Outbid { ballot }));
        }
        self.is_member() && taken.is_ok()
    }

    /// Stops serving, if it has not stopped yet, and takes note of what is promised with that.
    fn seal(&mut self, record: AcceptorRecord, fx: &mut Effects<Site>) -> Batch {
        let mut batch = Batch::new();
        batch.put_record(ACCEPTOR, Vec::new(), encode(&record));
        let (began, tries) = self.sealed.as_ref().map_or((self.ticks, 0), |sealed| (sealed.began, sealed.tries));
        if self.sealed.is_none() {
            fx.count("quad.sealed");
            self.tally.sealed += 1;
            self.interrupt(fx);
        }
        self.sealed = Some(Sealed { record, since: self.ticks, began, tries });
        batch
    }

    /// What was decided is heard of.
    pub(super) fn on_decided(&mut self, now: Time, configuration: Configuration, fx: &mut Effects<Site>) {
        if configuration.epoch <= self.configuration.epoch {
            return;
        }
        fx.trace(|| format!("adopts {configuration}"));
        fx.count("quad.adopted");
        let mut batch = Batch::new();
        for txn in self.replica.prepared_transactions() {
            batch.delete_record(PREPARED, txn_key(txn));
        }
        let mut aside = std::mem::take(&mut self.aside);
        for txn in aside.keys() {
            batch.delete_record(ASIDE, txn_key(*txn));
        }
        for Carried { txn, at } in &configuration.carried {
            self.observe(*at, &mut batch);
            // Who was not reconciled for it catches up with these rows as with all others.
            if let Some(writes) = aside.remove(txn).map(|commit| commit.writes).or_else(|| self.replica.take_commit(*txn)) {
                fx.agree(TRANSACTION, txn, &Some(*at));
                fx.count("quad.carried");
                put_versions(&mut batch, Epoch(configuration.epoch.0 - 1), *at, writes);
            }
        }
        self.end_epoch(&configuration, &mut batch, fx);
        self.replica = Replica::default();
        self.observe(configuration.floor, &mut batch);
        // What was told of this site in an epoch that it passed over, with the commits carried into that, does not count.
        let reconciled = configuration.bases.get(&self.me) == Some(&configuration.epoch);
        let reconciled = reconciled || self.rules.breaks(Planted::PassedOverClaimed);
        let holds = if reconciled { configuration.epoch } else { self.base.holds };
        // A site that is gone for long does not make the others keep what it has missed for ever.
        let oldest = configuration.oldest_base().max(Epoch(configuration.epoch.0.saturating_sub(EPOCHS_KEPT_MAX)));
        self.base = Base { holds, kept: self.base.kept.max(oldest) };
        batch.put_record(BASE, Vec::new(), encode(&self.base));
        batch.put_record(CONFIGURATION, Vec::new(), encode(&configuration));
        batch.delete_record(ACCEPTOR, Vec::new());
        self.sealed = None;
        self.told.clear();
        self.configuration = configuration;
        self.tally.adopted(now, self.configuration.cause);
        self.monitor.begin_epoch();
        fx.persist(batch);
        self.end_attempt(fx);
        self.prune(fx);
        self.end_reconciliation();
        self.catch_up(fx);
        for waiting in std::mem::take(&mut self.waiting) {
            self.on_request(now, waiting.id, waiting.request, fx);
        }
    }

    /// Whoever is sealed for long without news attempts a change itself.
    pub(super) fn tick_sealed(&mut self, fx: &mut Effects<Site>) {
        let before_me = self.up().iter().take_while(|site| **site < self.me).count() as u64;
        let patience = self.config.sealed_ticks + before_me;
        let Some(sealed) = &mut self.sealed else { return };
        if self.attempt.is_some() || self.ticks < sealed.since + patience {
            return;
        }
        sealed.since = self.ticks;
        sealed.tries += 1;
        let (tries, asked) = (sealed.tries, sealed.record.goal.clone());
        fx.count("quad.taken_over");
        let goal = self.way_out(asked, tries);
        self.attempt(goal, None, fx);
    }

    /// What to attempt in the try with this number: what was last asked for, what there is, or the same with whoever is in reach; in
    /// turns those that those in reach can bring about, as far as this site knows. What was asked for, if they can do nothing.
    fn way_out(&self, asked: Goal, tries: u64) -> Goal {
        let (old, up) = (&self.configuration, self.reachable());
        let goal = |quorums, members, lost| {
            let why = "an attempt to change was given up".into();
            Goal { quorums, members, lost, cores: None, cause: Cause::Resumed, why }
        };
        let as_before = goal(old.quorums.clone(), old.members(), BTreeSet::new());
        let among = |lost: BTreeSet<SiteId>| {
            let members: BTreeSet<SiteId> = old.members().difference(&lost).copied().collect();
            goal(old.quorums.among(&members, &up), members, lost)
        };
        let ways = [asked.clone(), as_before, among(BTreeSet::new()), among(asked.lost.clone())];
        let can = |goal: &Goal| goal.flaw(old).is_none() && old.may_be_left(&up, &goal.lost) && carries(&goal.quorums, &up);
        let mut ways: Vec<Goal> = ways.into_iter().filter(can).collect();
        ways.dedup_by(|one, other| one.quorums == other.quorums && one.lost == other.lost);
        if ways.is_empty() { asked } else { ways.swap_remove((tries - 1) as usize % ways.len()) }
    }
}
