//! How a gateway of transactions reaches its actor, and what it learns of the site around it.
//!
//! The gateways ([`client`](crate::gateway::interactive), [`catenae`](crate::gateway::catenae)) are generic over that: a site of the node is [`Here`]; the
//! simulator has sites in virtual time.

use super::fallible::Fallible;
use super::question::Question;
use crate::runtime::{Handle, Rejected, Undo};
use crate::status::Status;
use rhumb_commit::transaction::{RegionStatus, TxnError};
use rhumb_core::{Actor, RegionId, SiteId, Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A site as the gateway in front of its actor sees it. Cheap to clone.
pub trait Reach<A: Actor>: Clone + Send + Sync + 'static {
    /// Asks the actor, and waits for the answer. Dropped before that, the request is carried out all the same.
    fn ask(&self, request: A::Request) -> impl Future<Output = Result<A::Answer, Rejected>> + Send;

    /// Asks for what has to be ended. If nobody hears the answer, what `undo` makes of it ends what was begun.
    fn begin(&self, request: A::Request, undo: Undo<A>) -> impl Future<Output = Result<A::Answer, Rejected>> + Send;

    /// Ends what was begun, without waiting for an answer. The actor hears it unless the site stops.
    fn end(&self, request: A::Request);

    /// What the site's clock shows.
    fn now(&self) -> Time;

    /// Waits for so long.
    fn sleep(&self, span: Span) -> impl Future<Output = ()> + Send;

    /// All regions, in the order of the cluster.
    fn regions(&self) -> Vec<RegionStatus>;

    /// The name of a region.
    fn region_name(&self, region: RegionId) -> String;

    /// An error that the actor has answered, with the names of sites.
    fn told(&self, error: TxnError) -> TxnError {
        error
    }

    /// The names of all sites.
    fn site_names(&self) -> BTreeMap<SiteId, String>;

    /// Where it is counted what becomes of transactions, if it is.
    fn status(&self) -> Option<&Status> {
        None
    }
}

/// An actor that runs transactions.
pub(crate) trait Transacts: Actor<Answer: Fallible<Failure = TxnError>> {}
impl<A: Actor<Answer: Fallible<Failure = TxnError>>> Transacts for A {}

/// Asks the actor; a failure speaks of sites by their names.
pub(crate) async fn put<A: Transacts, T>(reach: &impl Reach<A>, question: Question<A, T>) -> Result<Result<T, TxnError>, Rejected> {
    let answered = question.put(|request| reach.ask(request)).await?;
    Ok(answered.map_err(|error| reach.told(error)))
}

/// Asks what may be asked once more if it is not answered.
pub(crate) async fn ask<A: Transacts, T>(reach: &impl Reach<A>, question: Question<A, T>) -> Result<T, TxnError> {
    put(reach, question).await.unwrap_or_else(|rejected| Err(of_question(rejected)))
}

/// Asks for what has to be ended, as `undo` does if nobody hears the answer.
pub(crate) async fn begun<A: Transacts, T>(reach: &impl Reach<A>, question: Question<A, T>, undo: Undo<A>) -> Result<T, TxnError> {
    let answered = question.put(|request| reach.begin(request, undo)).await.map_err(of_question)?;
    answered.map_err(|error| reach.told(error))
}

/// Asks for a change that must not be taken for undone if it is not answered.
pub(crate) async fn change<A: Transacts, T>(reach: &impl Reach<A>, question: Question<A, T>) -> Result<T, TxnError> {
    put(reach, question).await.unwrap_or_else(|rejected| Err(of_change(rejected)))
}

/// What a question comes to that was not answered, and may be asked once more.
pub(crate) fn of_question(rejected: Rejected) -> TxnError {
    TxnError::Unavailable(rejected.to_string().into())
}

/// What a change comes to that was not answered: once it was asked for, it may have been made.
pub(crate) fn of_change(rejected: Rejected) -> TxnError {
    match rejected {
        Rejected::Busy => of_question(rejected),
        Rejected::Stopped => TxnError::Unknown("the site stopped before it could tell".into()),
    }
}

/// The site of this process.
pub struct Here<A: Actor> {
    handle: Handle<A>,
    status: Arc<Status>,
}

impl<A: Actor> Here<A> {
    /// The site whose actor is behind `handle`.
    pub fn new(handle: Handle<A>, status: Arc<Status>) -> Here<A> {
        Here { handle, status }
    }

    /// What is known of the site.
    pub(crate) fn site(&self) -> &Status {
        &self.status
    }
}

impl<A: Actor> Clone for Here<A> {
    fn clone(&self) -> Here<A> {
        Here { handle: self.handle.clone(), status: Arc::clone(&self.status) }
    }
}

impl<A> Reach<A> for Here<A>
where
    A: Actor<Note: Send, Promise: Send, Timer: Send, Request: Send, Answer: Send> + 'static,
    Handle<A>: Send + Sync,
{
    async fn ask(&self, request: A::Request) -> Result<A::Answer, Rejected> {
        self.handle.ask(request).await
    }

    async fn begin(&self, request: A::Request, undo: Undo<A>) -> Result<A::Answer, Rejected> {
        self.handle.begin(request, undo).await
    }

    fn end(&self, request: A::Request) {
        // A site that cannot hear it is stopping, and what was begun ends with it.
        let _ = self.handle.end(request);
    }

    fn now(&self) -> Time {
        self.status.now()
    }

    async fn sleep(&self, span: Span) {
        tokio::time::sleep(Duration::from_micros(span.as_micros())).await;
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.status.regions()
    }

    fn region_name(&self, region: RegionId) -> String {
        self.status.setup().topology.name(region).to_owned()
    }

    fn told(&self, error: TxnError) -> TxnError {
        self.status.told(error)
    }

    fn site_names(&self) -> BTreeMap<SiteId, String> {
        self.status.names()
    }

    fn status(&self) -> Option<&Status> {
        Some(&self.status)
    }
}
