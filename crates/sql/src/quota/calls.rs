//! The calls of acquire() and release() in one statement. An error names those that were done before it: they stay done.

use crate::error::{SqlError, SqlResult};
use rhumb_quota::gateway::Quotas;
use rhumb_quota::operation::{Action, Operation};

/// The calls that an error names of those that were done before it. They are done from left to right, so their number says the rest.
const CALLS_SHOWN_MAX: usize = 20;

/// Carries calls out one after another, from left to right, up to the first that is refused. Before each, `check` says whether the
/// statement goes on. Returns how many tokens each left.
pub async fn run(quotas: &dyn Quotas, calls: &[Operation], check: impl Fn() -> SqlResult<()>) -> SqlResult<Vec<u64>> {
    let mut left = Vec::new();
    for call in calls {
        let before = &calls[..left.len()];
        check().map_err(|error| after(before, error))?;
        let outcome = quotas.run(vec![call.clone()]).await.pop().expect("an outcome for each operation");
        left.push(outcome.map_err(|refusal| after(before, refusal.into()))?.left);
    }
    Ok(left)
}

/// The error of a call before which these calls of the same statement were done.
fn after(done: &[Operation], error: SqlError) -> SqlError {
    let shown: Vec<String> = done.iter().take(CALLS_SHOWN_MAX).map(shown).collect();
    let (shown, rest) = (shown.join(", "), if done.len() > CALLS_SHOWN_MAX { ", …" } else { "" });
    match done.len() {
        0 => error,
        1 => error.with_detail(format!("The call before it in the same statement was done: {shown}.")),
        calls => error.with_detail(format!("The {calls} calls before it in the same statement were done: {shown}{rest}.")),
    }
}

fn shown(Operation { action, quota, amount, .. }: &Operation) -> String {
    let function = match action {
        Action::Acquire => "acquire",
        Action::Release => "release",
        Action::Free => "free",
    };
    format!("{function}('{}', {amount})", quota.as_str().replace('\'', "''"))
}
