//! What must hold of all accounts at every moment.

use super::NAME;
use crate::client::postgres::Session;
use crate::error::BenchError;
use crate::tables::ledger;
use crate::transactions::Verdict;

/// How many accounts there are, and how much is in all of them together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invariant {
    pub(super) accounts: i32,
    pub(super) total: i64,
}

impl Invariant {
    /// Reads from the server what was loaded.
    pub(super) async fn read(session: &mut Session) -> Result<Invariant, BenchError> {
        let parameters = ledger::read(session, NAME).await?;
        let accounts = ledger::parameter(&parameters, NAME, "accounts")?;
        let balance = ledger::parameter(&parameters, NAME, "balance")?;
        let accounts = i32::try_from(accounts).map_err(|error| BenchError::NotLoaded { workload: NAME, reason: error.to_string() })?;
        Ok(Invariant { accounts, total: i64::from(accounts) * balance })
    }

    /// What an audit that saw these figures says.
    pub(super) fn judge(&self, accounts: i64, total: i64) -> Verdict {
        if accounts == i64::from(self.accounts) && total == self.total {
            return Verdict::Committed;
        }
        Verdict::Violated(format!("an audit saw {accounts} accounts with {total} in all; there are {} with {}", self.accounts, self.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_accepts_the_exact_total_alone() {
        let invariant = Invariant { accounts: 2, total: 2_000 };
        assert_eq!(invariant.judge(2, 2_000), Verdict::Committed);
        assert!(matches!(invariant.judge(2, 1_999), Verdict::Violated(_)));
        assert!(matches!(invariant.judge(3, 2_000), Verdict::Violated(_)));
    }
}
