//! Refusals of quotas as SQL errors, with advice on what to do.

use crate::error::{SqlError, SqlState};
use rhumb_quota::refusal::Refusal;

impl From<Refusal> for SqlError {
    fn from(refusal: Refusal) -> SqlError {
        let (state, hint) = match &refusal {
            Refusal::Invalid(_) => (SqlState::InvalidParameterValue, None),
            Refusal::Unknown(_) => (
                SqlState::UndefinedObject,
                Some("SHOW QUOTAS lists those there are. CREATE QUOTA puts names that are not quoted into lower case.".to_owned()),
            ),
            Refusal::Exists(_) => {
                (SqlState::DuplicateObject, Some("CREATE QUOTA IF NOT EXISTS keeps it as it is; ALTER QUOTA changes its limit.".to_owned()))
            }
            Refusal::Exceeded { .. } => (
                SqlState::ConfigurationLimitExceeded,
                Some("Acquire fewer, wait until others release, or raise the limit with ALTER QUOTA.".to_owned()),
            ),
            Refusal::NotHeld { .. } => (
                SqlState::ObjectNotInPrerequisiteState,
                Some("Release what was acquired, and once only: a request id makes retries harmless.".to_owned()),
            ),
            Refusal::NotBooked { .. } => (SqlState::ObjectNotInPrerequisiteState, None),
            Refusal::DeclaredLost => (SqlState::CannotConnectNow, Some("Connect to another site.".to_owned())),
            Refusal::Unreachable { .. } | Refusal::Unavailable(_) => {
                (SqlState::CannotConnectNow, Some("SHOW REGIONS says which regions can be reached.".to_owned()))
            }
            Refusal::IdReused(_) => (SqlState::InvalidParameterValue, Some("Give every operation a request id of its own.".to_owned())),
            Refusal::HasChildren(quota) => (
                SqlState::DependentObjectsStillExist,
                Some(format!("SELECT name FROM rhumb.quotas WHERE parent = '{}' finds them.", quota.as_str().replace('\'', "''"))),
            ),
            Refusal::UnknownOutcome(_) => (
                SqlState::StatementCompletionUnknown,
                Some(
                    "Ask again under the same request id: what was done is not done twice. Without one, look at rhumb.quotas first."
                        .to_owned(),
                ),
            ),
        };
        let error = SqlError::new(state, refusal.to_string());
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_quota::name::Name;

    #[test]
    fn every_refusal_has_its_sqlstate() {
        let quota = Name::new("o'reilly").expect("a name");
        for (refusal, code) in [
            (Refusal::Invalid("bad".into()), "22023"),
            (Refusal::Unknown(quota.clone()), "42704"),
            (Refusal::Exists(quota.clone()), "42710"),
            (Refusal::Exceeded { quota: quota.clone(), wanted: 1 }, "53400"),
            (Refusal::NotHeld { quota: quota.clone(), amount: 1 }, "55000"),
            (Refusal::Unreachable { quota: quota.clone(), why: "two regions are away".into() }, "57P03"),
            (Refusal::IdReused("a".into()), "22023"),
            (Refusal::HasChildren(quota), "2BP01"),
            (Refusal::Unavailable("no majority".into()), "57P03"),
            (Refusal::UnknownOutcome("it was stopped".into()), "40003"),
        ] {
            let error = SqlError::from(refusal.clone());
            assert_eq!((error.state().code(), error.message()), (code, refusal.to_string().as_str()));
            assert!(!error.is_retryable(), "no statement is run again for {refusal:?}");
            if code == "2BP01" {
                assert_eq!(error.hint(), Some("SELECT name FROM rhumb.quotas WHERE parent = 'o''reilly' finds them."));
            }
        }
    }
}
