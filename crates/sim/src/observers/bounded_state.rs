//! Invariant: every table and queue of a site stays within its bound, which follows from constants of the protocol and the shape of the
//! cluster ([`Inspect`]); once all is healed and quiet, each has come down to its size at rest.

use crate::error::SimError;
use crate::world::{Observer, World};
use rhumb_core::actor::Actor;
use rhumb_core::{Inspect, Span, Table};

/// Checks the bounds of the site that has stepped, after each event.
pub(crate) fn observer<A: Actor + Inspect>() -> Observer<A> {
    Box::new(|world| {
        let Some((site, actor)) = world.stepped().and_then(|site| Some((site, world.actor(site)?))) else { return Ok(()) };
        match first(actor, |table| table.size > table.bound) {
            None => Ok(()),
            Some(Table { name, size, bound, .. }) => Err(format!("{name} of {site} has {size} entries, and {bound} at the most")),
        }
    })
}

/// How long a world that is healed and quiet may take to come to rest.
const REST_WITHIN: Span = Span::from_secs(8);
/// How often that is looked at.
const LOOK_EVERY: Span = Span::from_millis(500);

/// Runs a world that is healed and quiet until all sites are at rest. As long as one is away others keep what it will ask for, and for ever
/// where it is lost for good.
pub(crate) fn come_to_rest<A: Actor + Inspect>(world: &mut World<A>) -> Result<(), SimError> {
    if world.sites_left().count() < world.topology().sites().count() {
        return Ok(());
    }
    let deadline = world.now() + REST_WITHIN;
    while at_rest(world).is_err() && world.now() < deadline {
        world.run_for(LOOK_EVERY)?;
    }
    at_rest(world)
}

/// Checks that all sites are up and at rest, on a world that is healed and quiet.
pub(crate) fn at_rest<A: Actor + Inspect>(world: &World<A>) -> Result<(), SimError> {
    let wrong = |what: String| Err(SimError::Violation { at: world.now(), what });
    for site in world.topology().sites() {
        let Some(actor) = world.actor(site) else { return wrong(format!("{site} is down at the end")) };
        if let Some(Table { name, size, resting, .. }) = first(actor, |table| table.size > table.resting) {
            return wrong(format!("{name} of {site} has {size} entries at rest, and {resting} at the most"));
        }
    }
    Ok(())
}

/// The first table that is like that.
fn first(actor: &impl Inspect, is: impl Fn(&Table) -> bool) -> Option<Table> {
    let mut found = None;
    actor.tables(&mut |table| {
        if found.is_none() && is(&table) {
            found = Some(table);
        }
    });
    found
}
