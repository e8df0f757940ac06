//! CREATE, ALTER and DROP of a quota. What they do takes effect at once.

use super::definition::{limit, name, spec};
use crate::error::SqlResult;
use crate::parser::QuotaCommand;
use rhumb_quota::gateway::Quotas;
use rhumb_quota::refusal::Refusal;

/// Carries a statement about one quota out.
pub async fn change(quotas: &dyn Quotas, command: &QuotaCommand) -> SqlResult<()> {
    let changed = match command {
        QuotaCommand::Create(definition) => {
            let created = quotas.create(name(&definition.name)?, spec(definition)?).await;
            created.or_else(|refusal| pardon(refusal, definition.if_not_exists, |refusal| matches!(refusal, Refusal::Exists(_))))
        }
        QuotaCommand::SetLimit { name: quota, limit: wanted } => quotas.set_limit(name(quota)?, limit(wanted)?).await,
        QuotaCommand::Drop { name: quota, if_exists } => {
            let dropped = quotas.drop(name(quota)?).await;
            dropped.or_else(|refusal| pardon(refusal, *if_exists, |refusal| matches!(refusal, Refusal::Unknown(_))))
        }
    };
    Ok(changed?)
}

/// IF EXISTS and IF NOT EXISTS: what they ask for is so already.
fn pardon(refusal: Refusal, asked_for: bool, is_so: impl FnOnce(&Refusal) -> bool) -> Result<(), Refusal> {
    if asked_for && is_so(&refusal) { Ok(()) } else { Err(refusal) }
}
