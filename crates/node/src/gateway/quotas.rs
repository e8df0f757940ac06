//! Quotas for clients in this process, over the site's actor: what every interface to quotas sees of them.

pub(crate) mod questions;

use super::question::Question;
use crate::runtime::{Handle, Hosted, Rejected};
use async_trait::async_trait;
use questions::{decide, get, list, run, status};
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

    /// Asks for something that changes nothing.
    async fn ask<T>(&self, question: Question<A, T>) -> Result<T, Refusal> {
        let answered = question.put(|request| self.handle.ask(request)).await;
        answered.unwrap_or_else(|rejected| Err(of_question(rejected)))
    }

    /// Asks for a change, and waits for it to be decided.
    async fn change<T>(&self, question: Question<A, T>) -> Result<T, Refusal> {
        let answered = question.put(|request| self.handle.ask(request)).await;
        answered.unwrap_or_else(|rejected| Err(of_change(rejected)))
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
        self.change(run(operations)).await.unwrap_or_else(|refusal| vec![Err(refusal); count])
    }

    async fn create(&self, name: Name, spec: Spec) -> Result<(), Refusal> {
        spec.check()?;
        self.change(decide(Request::Create { name, spec })).await
    }

    async fn set_limit(&self, name: Name, limit: u64) -> Result<(), Refusal> {
        check_limit(limit)?;
        self.change(decide(Request::SetLimit { name, limit })).await
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        self.change(decide(Request::Drop { name })).await
    }

    async fn declare_lost(&self, site: SiteId) -> Result<(), Refusal> {
        self.change(decide(Request::DeclareLost { site })).await
    }

    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal> {
        let status = self.ask(status()).await?;
        Ok((status.lost, status.unsettled))
    }

    async fn get(&self, name: Name, read: Read) -> Result<Info, Refusal> {
        self.ask(get(name, read)).await
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        self.ask(list()).await
    }
}
