//! What a protocol says of itself, to have its scenarios driven and written down.

use rhumb_core::actor::Op;
use rhumb_core::{Actor, Body, SiteId, Topology};
use std::sync::Arc;

/// A message under way.
pub struct Envelope<A: Actor> {
    /// Who sent it.
    pub from: SiteId,
    /// To whom.
    pub to: SiteId,
    /// What it says.
    pub body: Body<A::Note, A::Promise>,
}

/// A protocol, with the settings of one cluster.
pub trait Protocol {
    /// Its sites.
    type Site: Actor;

    /// Makes the site `id`, at the beginning of the cluster and after each crash.
    fn site(&self, id: SiteId, topology: &Arc<Topology>) -> Self::Site;

    /// True for what sites send each other all the time; the transcript leaves it out.
    fn is_background(envelope: &Envelope<Self::Site>) -> bool;

    /// A request, as the transcript shows it.
    fn request(request: &<Self::Site as Actor>::Request) -> String;

    /// An answer, as the transcript shows it.
    fn answer(answer: &<Self::Site as Actor>::Answer) -> String;

    /// A write, as the transcript shows it; `None` if it leaves it out.
    fn write(op: &Op) -> Option<String>;

    /// Panics if no site may send this.
    fn assert_may_be_sent(_envelope: &Envelope<Self::Site>) {}
}
