//! How many cores the quorums of databases of protocol `quad` have: `CREATE DATABASE … WITH (protocol = 'quad', cores = 3)` and
//! `ALTER DATABASE … SET cores = auto`.
//!
//! One number holds for all of them, since quorums are of sites and not of databases. So the first database may say it as it is
//! created, a further one may only say the same, and to alter it for one alters it for all. It is no part of the transaction: once the
//! cluster has decided, it is so, even if the statement fails later.

use crate::catalog::CatalogView;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{DatabaseDescriptor, Protocol};
use crate::txn::Keyspaces;
use rhumb_commit::transaction::{Transaction, TxnError};
use rhumb_quad::administration::Administration;
use rhumb_quad::{Cores, Role};
use std::time::Duration;

/// The name of the option, and of the setting.
pub const OPTION: &str = "cores";
/// The word for as many as are needed.
const AUTO: &str = "auto";
/// How often the cluster is asked, should it be changing its quorums just then.
const ATTEMPTS_MAX: u32 = 20;
/// The pause in between: about as long as a change takes.
const PAUSE: Duration = Duration::from_millis(500);

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// Whoever says it of a database of another protocol is told this.
pub fn of_quad_only() -> SqlError {
    invalid("cores is an option of protocol \"quad\" only").with_hint("Write WITH (protocol = 'quad', cores = 3).")
}

/// A number, or `auto`. Error 22023.
pub fn parse(value: &str) -> SqlResult<Cores> {
    if value.eq_ignore_ascii_case(AUTO) {
        return Ok(Cores::Auto);
    }
    match value.parse() {
        Ok(cores) if cores > 0 => Ok(Cores::Fixed(cores)),
        _ => Err(invalid(format!("invalid number of cores: \"{value}\"")).with_hint("Write cores = 3, or cores = auto.")),
    }
}

/// Has the quorums have so many, as the database `name` is created. Errors: 22023; 55006 if other databases say otherwise.
pub async fn create(
    keyspaces: &Keyspaces,
    catalog: &mut CatalogView,
    txn: &mut dyn Transaction,
    name: &str,
    cores: Cores,
) -> SqlResult<()> {
    let databases = catalog.databases(txn).await?;
    let other = databases.iter().find(|other| other.name != name && other.protocol == Protocol::Quad.name());
    change(keyspaces, cores, other.map(|other| other.name.as_str())).await
}

/// Has the quorums of `database`, and of all others of its protocol, have so many. Errors: 22023.
pub async fn alter(keyspaces: &Keyspaces, database: &DatabaseDescriptor, value: Option<&str>) -> SqlResult<()> {
    if database.protocol()? != Protocol::Quad {
        return Err(of_quad_only());
    }
    let cores = parse(value.ok_or_else(|| invalid("cores has no default").with_hint("Write SET cores = 3, or SET cores = auto."))?)?;
    change(keyspaces, cores, None).await
}

async fn change(keyspaces: &Keyspaces, cores: Cores, other: Option<&str>) -> SqlResult<()> {
    let quorums = keyspaces.quorums()?;
    let view = quorums.quorums().await?;
    let members = view.explanation.sites.iter().filter(|facts| facts.role != Role::NonMember).count();
    if let Some(error) = cores.validation_error(members) {
        return Err(invalid(error).with_hint("Write cores = 3, or cores = auto for as many as availability and load ask for."));
    }
    let there = view.explanation.cores;
    match other {
        _ if there == cores => Ok(()),
        Some(other) => {
            let message = format!("databases of protocol \"quad\" share their cores, and \"{other}\" is there with cores = {there}");
            let hint = format!("Leave cores out, or change them for all with ALTER DATABASE {other} SET cores = {cores}.");
            Err(SqlError::new(SqlState::ObjectInUse, message).with_hint(hint))
        }
        None => decide(quorums, cores).await,
    }
}

/// Asks for so many until it is decided.
async fn decide(quorums: &dyn Administration, cores: Cores) -> SqlResult<()> {
    let mut attempt = 1;
    loop {
        match quorums.set_cores(cores).await {
            Err(TxnError::Unavailable(_) | TxnError::Conflict(_)) if attempt < ATTEMPTS_MAX => attempt += 1,
            outcome => return Ok(outcome?),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_a_number_above_zero_or_auto() {
        assert_eq!((parse("3"), parse("AUTO")), (Ok(Cores::Fixed(3)), Ok(Cores::Auto)));
        for wrong in ["0", "-1", "2.5", "many", "", "99999999999999999999"] {
            let refused = parse(wrong).expect_err("no number of cores");
            assert_eq!((refused.state(), refused.hint()), (SqlState::InvalidParameterValue, Some("Write cores = 3, or cores = auto.")));
        }
    }
}
