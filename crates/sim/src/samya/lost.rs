//! Sites that are lost in a run, and the invariant of it: what a lost site may still give out, or has given out, was booked as held
//! elsewhere.

use super::conservation::accounts;
use super::ledger::Ledger;
use crate::client::{ClientEvent, ClientProgram, Next};
use crate::world::{Observer, World};
use crate::{Fault, Links, Place};
use rhumb_core::{Rng, SiteId, Span, Time};
use rhumb_quota::Site;
use rhumb_quota::catalog::QuotaId;
use rhumb_quota::request::{Answer, Request};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The pause before a declaration is asked for again.
const AGAIN_AFTER: Span = Span::from_millis(400);

/// A site that others will declare lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Which.
    pub site: SiteId,
    /// From when on nobody hears it, or is heard by it, until the faults are over.
    pub at: Time,
    /// It crashes at that, too.
    pub crashes: bool,
    /// It is there again when the faults are over.
    pub returns: bool,
    /// It is declared lost after so long.
    pub declared_after: Span,
}

impl Lost {
    /// Draws as many as can be lost, or fewer, between these two moments.
    pub fn draw(sites: &[SiteId], begin: Time, end: Time, rng: &mut Rng) -> Vec<Lost> {
        let most = sites.len() - (sites.len() / 2 + 1);
        let mut left = sites.to_vec();
        let count = rng.between(1, 2).min(most as u64);
        let draw = |_| Lost {
            site: left.remove(rng.below(left.len() as u64) as usize),
            at: begin + Span::from_micros(rng.below(end.since(begin).as_micros())),
            crashes: rng.chance(0.5),
            returns: rng.chance(0.7),
            declared_after: Span::from_micros(rng.below(4_000_000)),
        };
        (0..count).map(draw).collect()
    }

    /// What strikes it.
    pub fn strike(&self, world: &mut World<Site>, until: Time) {
        let links = Links::new(Place::Site(self.site), Place::Everywhere);
        let span = Some(until.since(self.at));
        world.strike_at(self.at, Fault::Cut { links, span });
        world.strike_at(self.at, Fault::Cut { links: links.reversed(), span });
        if self.crashes {
            world.strike_at(self.at, Fault::Crash { place: Place::Site(self.site), down: None });
        }
    }
}

/// Declares a site lost, until that is known to be decided.
pub struct Declarer {
    lost: Lost,
    ledger: Rc<RefCell<Ledger>>,
}

impl Declarer {
    /// One that declares that site lost.
    pub fn new(lost: Lost, ledger: Rc<RefCell<Ledger>>) -> Declarer {
        Declarer { lost, ledger }
    }
}

impl ClientProgram<Site> for Declarer {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        let site = self.lost.site;
        match event {
            ClientEvent::Started => Next::Wait((self.lost.at + self.lost.declared_after).since(now)),
            ClientEvent::Answered(Answer::Changed(Ok(()))) => {
                self.ledger.borrow_mut().declared.insert(site);
                Next::Done
            }
            ClientEvent::Woken => {
                self.ledger.borrow_mut().declares = true;
                Next::Request(Request::DeclareLost { site })
            }
            ClientEvent::Answered(_) | ClientEvent::GatewayLost => Next::Wait(AGAIN_AFTER),
        }
    }
}

/// Checks the invariant after each event.
pub fn observer() -> Observer<Site> {
    // Bookings against which the disks of lost sites were looked at.
    let mut looked: BTreeSet<(QuotaId, u32)> = BTreeSet::new();
    Box::new(move |world| {
        let Some(actor) = world.topology().sites().filter_map(|site| world.actor(site)).find(|actor| knows_losses(actor)) else {
            return Ok(());
        };
        let definitions = actor.definitions();
        for (id, definition) in &definitions.quotas {
            let losses = definition.settled.losses;
            if definition.settled.booking.is_none() {
                continue;
            }
            let lost: Vec<SiteId> = definitions.lost().take(losses as usize).collect();
            if looked.insert((*id, losses)) || lost.iter().any(|site| world.is_up(*site)) {
                check(world, *id, &lost, definition.settled.booked)?;
            }
        }
        Ok(())
    })
}

fn knows_losses(actor: &Site) -> bool {
    actor.is_serving() && !actor.is_lost() && actor.definitions().lost().next().is_some()
}

fn check(world: &World<Site>, id: QuotaId, lost: &[SiteId], booked: u64) -> Result<(), String> {
    let accounts: Vec<_> = lost.iter().map(|site| accounts(world, *site).get(&id).cloned().unwrap_or_default()).collect();
    // What an heir that is lost itself took over, it has in the place of those before it.
    let inherited = accounts.iter().map(|account| account.settled as usize).max().unwrap_or(0);
    let have: u64 = accounts.iter().skip(inherited).map(|account| account.tokens.left + account.tokens.held).sum();
    if have > booked {
        return Err(format!("the lost sites {lost:?} have {have} tokens of {id}, and {booked} are booked for them"));
    }
    Ok(())
}
