//! What clients and operators ask a site, and what they are told. Clients speak as they do to every protocol of
//! [interactive transactions](rhumb_commit::interactive); besides, an operator may ask for a change.

use super::configuration::{Cores, Goal};
use super::explanation::Explanation;
use rhumb_commit::interactive;
use rhumb_core::{SiteId, Span};
use std::collections::BTreeSet;

/// What clients and operators ask a site.
pub type Request = interactive::Request<Admin>;

/// What they are told.
pub type Answer = interactive::Answer<Box<Explanation>>;

/// What operators ask a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// Another configuration. Answered by `Done` once it is decided.
    Change(Goal),
    /// Of a site that is no member: ask to become one. Answered by `Done` at once.
    Join,
    /// Some sites are no members any more. Answered by `Done` once a configuration without them is decided.
    Leave(Leave),
    /// So many cores from now on. Answered by `Done` once a configuration that says so is decided.
    Cores(Cores),
    /// Which quorums there are, what was measured, and what would change now. Answered by an [`Explanation`].
    Explain,
    /// To try the cluster out: this site behaves as if work of others kept it busy from now on. Answered by `Done`.
    InjectLoad(InjectedLoad),
}

/// Some sites are to be members no more: see `leaving.rs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leave {
    /// Which.
    pub sites: BTreeSet<SiteId>,
    /// They will not come back with what they had on their disks: nobody waits for their messages.
    pub lost: bool,
}

/// Work of others that keeps a site busy: see `injected_load.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedLoad {
    /// Percent of the site's capacity; zero ends it.
    pub percent: u64,
    /// How long it lasts; none: until it is ended.
    pub span: Option<Span>,
}
