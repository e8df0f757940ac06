//! Asks the actors how they are, through the same mailboxes as clients.

use super::catenae;
use super::fallible::Fallible;
use super::interactive::Gateway;
use super::interactive::questions::inquire;
use super::placements::Placements;
use super::question::Question;
use super::quotas::{self, KeepsQuotas};
use crate::metrics::vitals::Vitals;
use crate::runtime::{Handle, Hosted, Rejected};
use crate::status::Status;
use rhumb_catenae::{Site as Catenae, Status as CatenaeVitals};
use rhumb_core::Actor;
use rhumb_quad::{self as quad, Explanation, Site as Quad};
use rhumb_quota::request::Status as QuotaVitals;
use rhumb_replicated_commit::{Admin, Answer, Request, Site};
use std::sync::Arc;
use std::time::Duration;

/// An actor that does not answer within this time is shown as saying nothing.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// An actor that commits transactions and says how it is.
pub trait Commits: Hosted {
    /// The request for its vitals.
    fn inquiry() -> Self::Request;
    /// What the answer to that request says; `None` if it is the answer to another.
    fn vitals(answer: Self::Answer) -> Option<Vitals>;
    /// The actor as whoever plans placements sees it.
    fn placements(handle: Handle<Self>, status: Arc<Status>) -> Arc<dyn Placements>;
}

impl Commits for Site {
    fn inquiry() -> Request {
        Request::Admin(Admin::Status)
    }

    fn vitals(answer: Answer) -> Option<Vitals> {
        let Answer::Admin(status) = answer else { return None };
        Some(Vitals {
            open: status.open_transactions,
            prepared: status.prepared,
            in_doubt: status.in_doubt,
            safe: status.safe,
            reachable: status.reachable,
            placement: Some(status.placement),
            tables: status.tables,
        })
    }

    fn placements(handle: Handle<Site>, status: Arc<Status>) -> Arc<dyn Placements> {
        Arc::new(Gateway::new(handle, status))
    }
}

/// Asks the actor that commits transactions. `None` if it does not answer.
pub async fn of_commits<A: Commits>(handle: &Handle<A>, status: &Status) -> Option<Vitals> {
    let vitals = within(status, handle.ask(A::inquiry())).await.and_then(A::vitals)?;
    if let Some(placement) = &vitals.placement {
        status.saw_placement(placement);
    }
    Some(vitals)
}

/// Asks the actor that keeps quotas. `None` if it does not answer.
pub async fn of_quotas<A: KeepsQuotas>(handle: &Handle<A>, status: &Status) -> Option<QuotaVitals> {
    ask(handle, status, quotas::questions::status()).await
}

/// Asks the actor of Catenae. `None` if it does not answer.
pub async fn of_catenae(handle: &Handle<Catenae>, status: &Status) -> Option<CatenaeVitals> {
    ask(handle, status, catenae::questions::status()).await
}

/// Asks the actor of QuAD. `None` if it does not answer.
pub async fn of_quad(handle: &Handle<Quad>, status: &Status) -> Option<Explanation> {
    ask(handle, status, inquire(quad::Admin::Explain)).await.map(|explanation| *explanation)
}

async fn ask<A: Actor<Answer: Fallible>, T>(handle: &Handle<A>, status: &Status, question: Question<A, T>) -> Option<T> {
    within(status, question.put(|request| handle.ask(request))).await?.ok()
}

async fn within<T>(status: &Status, answer: impl Future<Output = Result<T, Rejected>>) -> Option<T> {
    // What is asked of a site that recovers would wait until it has.
    if !status.is_recovered() {
        return None;
    }
    tokio::time::timeout(ANSWER_WITHIN, answer).await.ok()?.ok()
}
