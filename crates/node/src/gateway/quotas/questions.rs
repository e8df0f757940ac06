//! What the gateway asks an actor that keeps quotas.

use super::KeepsQuotas;
use crate::gateway::question::Question;
use rhumb_quota::info::{Info, Read};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request, Status};

/// Carry out operations.
pub(super) fn run<A: KeepsQuotas>(operations: Vec<Operation>) -> Question<A, Vec<Result<Done, Refusal>>> {
    Question::new(Request::Run(operations), |answer| if let Answer::Ran(outcomes) = answer { Ok(outcomes) } else { Err(answer) })
}

/// Have the sites decide on a change, of a quota or of what they know of a lost site.
pub(super) fn decide<A: KeepsQuotas>(request: Request) -> Question<A, ()> {
    Question::new(request, |answer| if let Answer::Changed(Ok(())) = answer { Ok(()) } else { Err(answer) })
}

/// Look at a quota.
pub(super) fn get<A: KeepsQuotas>(name: Name, read: Read) -> Question<A, Info> {
    Question::new(Request::Get { name, read }, |answer| if let Answer::Got(Ok(info)) = answer { Ok(info) } else { Err(answer) })
}

/// Look at all quotas at this site.
pub(super) fn list<A: KeepsQuotas>() -> Question<A, Vec<Info>> {
    Question::new(Request::List, |answer| if let Answer::Listed(quotas) = answer { Ok(quotas) } else { Err(answer) })
}

/// How is the site?
pub(crate) fn status<A: KeepsQuotas>() -> Question<A, Status> {
    Question::new(Request::Status, |answer| if let Answer::Status(status) = answer { Ok(status) } else { Err(answer) })
}
