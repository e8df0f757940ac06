//! Invariant: at rest nothing is missing. All sites agree which quotas there are, nothing is frozen, left + held - owed over
//! all sites is the limit, and what the sites hold is what the clients know to hold. Then all that is left can be
//! acquired at one site, not one token more, and all that is held released at another.
//!
//! A site that owes tokens asks the others for them again and again, ever more rarely. So a redistribution may be under way at any moment,
//! and tokens that came back elsewhere are not taken out of circulation at once. At rest means: each such redistribution has ended, and
//! nobody owes while somebody has tokens left. That is waited for, but not for long.
//!
//! Then the quotas below others are dropped, and end: nothing is held above them any more on their account.
//!
//! If sites were lost, all that is said of sites is said of the others. They hold at least what the clients hold; an operator frees the
//! rest, and then it is as many, also of quotas that get back what clients held of those below.

use super::client::Churner;
use super::conservation::accounts;
use super::ledger::Ledger;
use crate::{SimError, World};
use rhumb_core::{SiteId, Span, Time};
use rhumb_quota::Site;
use rhumb_quota::catalog::{Definitions, QuotaId};
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use std::collections::BTreeMap;

/// A redistribution that finds all others idle ends within that.
const REDISTRIBUTED_WITHIN: Span = Span::from_secs(4);
/// A site that owes tokens has asked for them within that: [`Config::debt_ticks_max`](rhumb_quota::Config), and two redistributions.
const PAID_WITHIN: Span = Span::from_secs(40);
/// Sites that owe tokens which nobody has ask for them now and then, and an operation may meet that each time it is tried. So it is tried
/// that often,
const TRIES_MAX: u32 = 4;
/// so long one after another.
const TRIED_AGAIN_AFTER: Span = Span::from_secs(1);
/// How often it is looked whether that is so.
const LOOK_EVERY: Span = Span::from_millis(500);

/// Checks it on a world that is healed and quiet.
pub fn check(world: &mut World<Site>, ledger: &Ledger, deadline: Time) -> Result<(), SimError> {
    let now = world.now();
    let wrong = |what: String| SimError::Violation { at: now, what };
    if world.clients_left() > 0 || !ledger.is_settled() {
        return Err(wrong(format!("{} clients are not done long after the healing", world.clients_left())));
    }
    idle(world, ledger).map_err(wrong)?;
    drop_churned(world, ledger, deadline)?;
    wait_until(world, REDISTRIBUTED_WITHIN, |world| nothing_offered(world, ledger))?;
    let mut held = BTreeMap::new();
    for name in ledger.names() {
        held.insert(name, count(world, ledger, name).map_err(wrong)?);
    }
    for (name, counted) in &mut held {
        let surplus = counted.saturating_sub(ledger.held_at_most(name));
        free(world, ledger, name, surplus, deadline)?;
        *counted -= surplus;
    }
    // The heir may learn of what was freed after the site that was asked.
    wait_until(world, PAID_WITHIN, |world| {
        idle(world, ledger)?;
        nothing_offered(world, ledger)?;
        debts_paid(world, ledger)
    })?;
    drop_below(world, ledger, &mut held, deadline)?;
    for (name, held) in held.into_iter().filter(|(name, _)| ledger.parent(name).is_none()) {
        use_up(world, ledger, (name, held), deadline)?;
    }
    Ok(())
}

/// The sites that were not declared lost.
fn members(world: &World<Site>, ledger: &Ledger) -> Vec<SiteId> {
    world.topology().sites().filter(|site| !ledger.declared.contains(site)).collect()
}

/// Lets time pass until `holds`, but no more than that.
fn wait_until(world: &mut World<Site>, within: Span, holds: impl Fn(&World<Site>) -> Result<(), String>) -> Result<(), SimError> {
    let deadline = world.now() + within;
    while holds(world).is_err() && world.now() < deadline {
        world.run_for(LOOK_EVERY)?;
    }
    holds(world).map_err(|what| SimError::Violation { at: world.now(), what })
}

/// No tokens are frozen.
fn nothing_offered(world: &World<Site>, ledger: &Ledger) -> Result<(), String> {
    for site in members(world, ledger) {
        if let Some((id, account)) = accounts(world, site).into_iter().find(|(_, account)| !account.offered.is_none()) {
            return Err(format!("{site} still has {} tokens of {id} on offer", account.offered));
        }
    }
    Ok(())
}

/// Nobody owes tokens of a quota of which somebody has some left, or is to take some back.
fn debts_paid(world: &World<Site>, ledger: &Ledger) -> Result<(), String> {
    let mut sums: BTreeMap<QuotaId, (u64, u64)> = BTreeMap::new();
    for (id, account) in members(world, ledger).into_iter().flat_map(|site| accounts(world, site)) {
        let (left, owed) = sums.entry(id).or_default();
        *left += account.tokens.left;
        *owed += account.owed;
        if account.returning > 0 {
            return Err(format!("{} tokens of {id} are still to be taken back", account.returning));
        }
    }
    match sums.into_iter().find(|(_, (left, owed))| *left > 0 && *owed > 0) {
        Some((id, (left, owed))) => Err(format!("{owed} tokens of {id} are still owed while {left} are left")),
        None => Ok(()),
    }
}

/// An operator frees, at any site, what no client holds of the tokens of lost sites.
fn free(world: &mut World<Site>, ledger: &Ledger, name: &Name, surplus: u64, deadline: Time) -> Result<(), SimError> {
    if surplus == 0 {
        return Ok(());
    }
    let sites = members(world, ledger);
    let site = sites[surplus as usize % sites.len()];
    run(world, site, Operation::free(name.clone(), surplus, None), deadline)?.map(drop).map_err(|refusal| SimError::Violation {
        at: world.now(),
        what: format!("{surplus} tokens of {name} that no client holds were not freed at {site}: {refusal}"),
    })
}

/// Drops the quota that came and went, if it is there, so that what clients hold is in the books.
fn drop_churned(world: &mut World<Site>, ledger: &Ledger, deadline: Time) -> Result<(), SimError> {
    if ledger.churned.is_none() {
        return Ok(());
    }
    ask(world, members(world, ledger)[0], Request::Drop { name: Churner::name() }, deadline)?;
    wait_until(world, PAID_WITHIN, |world| idle(world, ledger).and_then(|()| debts_paid(world, ledger)))
}

/// Drops the quotas below others: what clients held of them they hold above them no more, at whichever sites that is `held`.
fn drop_below(world: &mut World<Site>, ledger: &Ledger, held: &mut BTreeMap<&Name, u64>, deadline: Time) -> Result<(), SimError> {
    let sites = members(world, ledger);
    for name in ledger.names().filter(|name| ledger.parent(name).is_some()) {
        let dropped = ask(world, sites[0], Request::Drop { name: name.clone() }, deadline)?;
        if dropped != Answer::Changed(Ok(())) {
            return Err(SimError::Violation { at: world.now(), what: format!("{name} was not dropped at rest: {dropped:?}") });
        }
    }
    wait_until(world, PAID_WITHIN, |world| {
        let ended = |definitions: &Definitions| {
            let mut below = ledger.names().filter(|name| ledger.parent(name).is_some());
            below.all(|name| definitions.id(name).is_err()) && !definitions.quotas.values().any(|definition| definition.closing)
        };
        let knows = |site: &SiteId| world.actor(*site).is_some_and(|actor| ended(actor.definitions()));
        match sites.iter().find(|site| !knows(site)) {
            Some(site) => Err(format!("{site} does not know that quotas have ended that were dropped")),
            None => nothing_offered(world, ledger).and_then(|()| debts_paid(world, ledger)),
        }
    })?;
    for name in ledger.names().filter(|name| ledger.parent(name).is_none()) {
        let counted = held_at_sites(world, ledger, name).map_err(|what| SimError::Violation { at: world.now(), what })?;
        let (least, most) = (ledger.held_directly(name), ledger.held_directly_at_most(name));
        if counted < least || (counted > most && ledger.declared.is_empty()) {
            let what = format!("once all below it has ended, the sites count {counted} tokens of {name} as held, the clients {least}");
            return Err(SimError::Violation { at: world.now(), what });
        }
        let surplus = counted.saturating_sub(most);
        free(world, ledger, name, surplus, deadline)?;
        *held.get_mut(name).expect("it was counted") = counted - surplus;
    }
    wait_until(world, PAID_WITHIN, |world| nothing_offered(world, ledger).and_then(|()| debts_paid(world, ledger)))
}

/// How many tokens of `name` count as held.
fn held_at_sites(world: &World<Site>, ledger: &Ledger, name: &Name) -> Result<u64, String> {
    let held = members(world, ledger).into_iter().map(|site| {
        let actor = world.actor(site).ok_or_else(|| format!("{site} is down"))?;
        let id = actor.definitions().id(name).map_err(|refusal| format!("{site}: {refusal}"))?;
        Ok(accounts(world, site)[&id].tokens.held)
    });
    held.sum()
}

/// All sites know the same quotas, and nothing is under way.
fn idle(world: &World<Site>, ledger: &Ledger) -> Result<(), String> {
    let mut first = None;
    for site in &ledger.declared {
        if world.actor(*site).is_some_and(|actor| !actor.is_lost()) {
            return Err(format!("{site} was declared lost and does not know it"));
        }
    }
    for site in members(world, ledger) {
        let actor = world.actor(site).ok_or_else(|| format!("{site} is down"))?;
        let status = actor.status();
        if status.unsettled > 0 {
            return Err(format!("{site} knows {} quotas in which it is not settled what lost sites have", status.unsettled));
        }
        if status.waiting > 0 {
            return Err(format!("{} operations still wait at {site}", status.waiting));
        }
        let definitions = actor.definitions();
        if *first.get_or_insert(definitions) != definitions {
            return Err(format!("{site} knows other quotas than the first site: {definitions:?}"));
        }
        if let Some(closing) = definitions.quotas.values().find(|definition| definition.closing) {
            return Err(format!("{} was dropped and has not ended: {site} knows it still", closing.name));
        }
    }
    Ok(())
}

/// How many tokens of `name` the sites count as held.
fn count(world: &World<Site>, ledger: &Ledger, name: &Name) -> Result<u64, String> {
    let (mut left, mut held, mut owed) = (0, 0, 0);
    for site in members(world, ledger) {
        let actor = world.actor(site).ok_or_else(|| format!("{site} is down"))?;
        let id = actor.definitions().id(name).map_err(|refusal| format!("{site}: {refusal}"))?;
        let limit = actor.definitions().get(id).map(|definition| definition.spec.limit);
        if limit != Some(ledger.limit(name)) {
            return Err(format!("{site} takes {limit:?} for the limit of {name}, which is {}", ledger.limit(name)));
        }
        let account = &accounts(world, site)[&id];
        left += account.tokens.left;
        held += account.tokens.held;
        owed += account.owed;
    }
    let known = ledger.held(name);
    if held < known || (held > known && ledger.declared.is_empty()) {
        return Err(format!("the sites count {held} tokens of {name} as held, the clients {known}"));
    }
    if left + held != ledger.limit(name) + owed {
        return Err(format!("{left} left + {held} held - {owed} owed of {name} is not its limit of {}", ledger.limit(name)));
    }
    Ok(held)
}

/// Acquires all that is left at one site, one more at another, and releases all at yet another, if there are as many.
fn use_up(world: &mut World<Site>, ledger: &Ledger, (name, held): (&Name, u64), deadline: Time) -> Result<(), SimError> {
    let sites = members(world, ledger);
    let limit = ledger.limit(name);
    let read = ask(world, sites[0], Request::Get { name: name.clone(), read: Read::Exact }, deadline)?;
    let at = world.now();
    let wrong = |what: String| Err(SimError::Violation { at, what });
    match read {
        Answer::Got(Ok(info)) if info.held() == held => {}
        other => return wrong(format!("an exact read of {name} at rest, {held} held, was answered with {other:?}")),
    }
    if limit > held {
        if let Err(refusal) = run(world, sites[0], Operation::acquire(name.clone(), limit - held, None), deadline)? {
            return wrong(format!("the {} tokens of {name} that are left at rest were refused: {refusal}", limit - held));
        }
        match run(world, sites[1], Operation::acquire(name.clone(), 1, None), deadline)? {
            Err(Refusal::Exceeded { .. }) => {}
            other => return wrong(format!("one token of {name} more than there are: {other:?}")),
        }
    }
    let all = limit.max(held);
    match run(world, sites[sites.len() - 1], Operation::release(name.clone(), all + 1, None), deadline)? {
        Err(Refusal::NotHeld { .. }) => {}
        other => return wrong(format!("the release of one token of {name} more than are held: {other:?}")),
    }
    match run(world, sites[sites.len() - 1], Operation::release(name.clone(), all, None), deadline)? {
        Ok(_) => Ok(()),
        Err(refusal) => wrong(format!("the release of all {all} tokens of {name} was refused: {refusal}")),
    }
}

/// Runs one operation at `site`, and again like any client if it is told that others are at something.
fn run(
    world: &mut World<Site>,
    site: SiteId,
    operation: Result<Operation, Refusal>,
    deadline: Time,
) -> Result<Result<Done, Refusal>, SimError> {
    let operation = operation.expect("amounts are small");
    for _ in 1..TRIES_MAX {
        match run_once(world, site, operation.clone(), deadline)? {
            Err(Refusal::Unreachable { .. }) => world.run_for(TRIED_AGAIN_AFTER)?,
            result => return Ok(result),
        }
    }
    run_once(world, site, operation, deadline)
}

fn run_once(world: &mut World<Site>, site: SiteId, operation: Operation, deadline: Time) -> Result<Result<Done, Refusal>, SimError> {
    match ask(world, site, Request::Run(vec![operation]), deadline)? {
        Answer::Ran(mut results) => Ok(results.pop().expect("one operation, one outcome")),
        other => unreachable!("operations are answered with outcomes: {other:?}"),
    }
}

fn ask(world: &mut World<Site>, site: SiteId, request: Request, deadline: Time) -> Result<Answer, SimError> {
    world.take_replies();
    let id = world.submit(site, request);
    while world.now() < deadline && world.tick()? {
        if let Some(reply) = world.take_replies().into_iter().find(|reply| reply.id == id) {
            let lost = SimError::Violation { at: world.now(), what: format!("{site} was lost in a world that is healed") };
            return reply.answer.ok_or(lost);
        }
    }
    Err(SimError::Violation { at: world.now(), what: format!("{site} has not answered request {id} in time") })
}
