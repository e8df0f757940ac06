//! Quotas for clients in this process, over the site's actor: what every interface to quotas sees of them.

use crate::gateway::interactive::unexpected;
use crate::runtime::{Handle, Hosted, Rejected};
use async_trait::async_trait;
use rhumb_core::{Actor, SiteId};
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::{Info, Read};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Done, OPERATIONS_MAX, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::{Spec, check_limit};

/// An actor that keeps quotas.
pub trait KeepsQuotas: Hosted + Actor<Request = Request, Answer = Answer> {}
impl<A: Hosted + Actor<Request = Request, Answer = Answer>> KeepsQuotas for A {}

/// The quotas of this site.
pub struct Gateway<A: KeepsQuotas> {
    handle: Handle<A>,
}

impl<A: KeepsQuotas> Gateway<A> {
    /// The quotas of the site behind `handle`.
    pub fn new(handle: Handle<A>) -> Gateway<A> {
        Gateway { handle }
    }

    /// Asks for a change, and waits for it to be decided.
    async fn change(&self, request: Request) -> Result<(), Refusal> {
        match self.handle.ask(request).await {
            Ok(Answer::Changed(changed)) => changed,
            Ok(other) => unexpected(&other),
            Err(rejected) => Err(of_change(rejected)),
        }
    }
}

/// What a change comes to that was not answered.
fn of_change(rejected: Rejected) -> Refusal {
    match rejected {
        Rejected::Busy => Refusal::Unavailable(BUSY.into()),
        Rejected::Stopped => Refusal::UnknownOutcome("the site stopped before it could tell".into()),
    }
}

/// What a question comes to that was not answered: asking changes nothing, so nothing is unknown.
fn of_question(rejected: Rejected) -> Refusal {
    match rejected {
        Rejected::Busy => Refusal::Unavailable(BUSY.into()),
        Rejected::Stopped => Refusal::Unavailable("the site is stopping".into()),
    }
}

const BUSY: &str = "the site is busy: too many requests are waiting";

#[async_trait]
impl<A: KeepsQuotas> Quotas for Gateway<A> {
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
        let count = operations.len();
        if count == 0 {
            return Vec::new();
        }
        if count > OPERATIONS_MAX {
            return vec![Err(Refusal::Invalid(format!("{count} operations at once; at most {OPERATIONS_MAX} are allowed"))); count];
        }
        match self.handle.ask(Request::Run(operations)).await {
            Ok(Answer::Ran(outcomes)) => outcomes,
            Ok(other) => unexpected(&other),
            Err(rejected) => vec![Err(of_change(rejected)); count],
        }
    }

    async fn create(&self, name: Name, spec: Spec) -> Result<(), Refusal> {
        spec.check()?;
        self.change(Request::Create { name, spec }).await
    }

    async fn set_limit(&self, name: Name, limit: u64) -> Result<(), Refusal> {
        check_limit(limit)?;
        self.change(Request::SetLimit { name, limit }).await
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        self.change(Request::Drop { name }).await
    }

    async fn declare_lost(&self, site: SiteId) -> Result<(), Refusal> {
        self.change(Request::DeclareLost { site }).await
    }

    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal> {
        match self.handle.ask(Request::Status).await {
            Ok(Answer::Status(status)) => Ok((status.lost, status.unsettled)),
            Ok(other) => unexpected(&other),
            Err(rejected) => Err(of_question(rejected)),
        }
    }

    async fn get(&self, name: Name, read: Read) -> Result<Info, Refusal> {
        match self.handle.ask(Request::Get { name, read }).await {
            Ok(Answer::Got(got)) => got,
            Ok(other) => unexpected(&other),
            Err(rejected) => Err(of_question(rejected)),
        }
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        match self.handle.ask(Request::List).await {
            Ok(Answer::Listed(quotas)) => Ok(quotas),
            Ok(other) => unexpected(&other),
            Err(rejected) => Err(of_question(rejected)),
        }
    }
}
