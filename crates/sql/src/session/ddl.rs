//! CREATE, ALTER, DROP and TRUNCATE: from parsed statements to changes of the catalog, in the session's transaction.
//!
//! Outside BEGIN the statement is a transaction of its own, run again if another one was in its way.

use super::{Company, Outcome, Session, State};
use crate::catalog::Counter;
use crate::context::of_database;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::delete_all;
use crate::parser::{Create, ProcedureDefinition, SequenceCommand, StatementKind, fold, unqualified};
use crate::planner::{check_procedure, check_table, index_spec, procedure_name, procedure_spec, sequence_options, table_spec};
use crate::protocols::{PROTOCOLS, Protocol, SharedOption};
use crate::txn::{Active, TransactionHandle};
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast;
use rhumb_commit::transaction::ReadMode;
use std::collections::{BTreeMap, BTreeSet};

/// How often a statement outside BEGIN is run before its conflict is reported.
const DDL_ATTEMPTS_MAX: u32 = 50;

impl Session {
    pub(super) async fn run_ddl(&mut self, kind: &StatementKind, company: Company) -> SqlResult<Outcome> {
        let tag = Outcome::Done(kind.name().to_string());
        if self.begins_read_only() && matches!(self.state, State::Idle) {
            return Err(SqlError::read_only(kind.name()));
        }
        // Which databases there are is not kept where this session's transactions run.
        let is_elsewhere = is_about_databases(kind) && !self.home.is_system();
        if company == Company::Batch || !matches!(self.state, State::Idle) {
            if let Some(option) = shared_option(kind) {
                let message = format!("{} cannot be changed inside a transaction block: ROLLBACK could not undo it", option.meaning);
                return Err(SqlError::new(SqlState::ActiveSqlTransaction, message).with_hint("Run it by itself, outside BEGIN."));
            }
            if is_elsewhere {
                let (what, protocol) = (kind.name(), self.home.protocol());
                let message = format!("{what} cannot run inside a transaction of a database of protocol \"{protocol}\"");
                return Err(SqlError::new(SqlState::ActiveSqlTransaction, message).with_hint("Run it by itself, outside BEGIN."));
            }
            let (handle, mode) = self.transaction().await?;
            if mode.is_read_only() {
                return Err(SqlError::read_only(kind.name()));
            }
            return match self.interrupt.within(self.change_catalog(&handle, kind)).await {
                Ok(()) => Ok(tag),
                Err(error) => Err(self.validated(&handle, error).await),
            };
        }
        let home = if is_elsewhere { self.engine.keyspaces.system() } else { self.home.clone() };
        let mut attempt = 1;
        loop {
            let handle = self.interrupt.within(TransactionHandle::begin(&home, ReadMode::Locking)).await?;
            let result = match self.interrupt.within(self.change_catalog(&handle, kind)).await {
                Ok(()) => self.commit_transaction(&handle).await,
                Err(error) => {
                    handle.rollback(true).await;
                    Err(error)
                }
            };
            match result {
                Ok(()) => return Ok(tag),
                // A table that is written meanwhile has a moment without writers only by chance.
                Err(error) if error.is_retryable() && attempt < DDL_ATTEMPTS_MAX => {
                    self.back_off(attempt).await?;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn change_catalog(&self, handle: &TransactionHandle, kind: &StatementKind) -> SqlResult<()> {
        let mut active = handle.lock().await?;
        active.txn.bound_waits(self.longest_wait());
        // What is made of descriptors that do not fit together stays.
        active.catalog.distrust_cache(true);
        let changed = self.change_catalog_in(&mut active, kind).await;
        active.catalog.distrust_cache(false);
        changed
    }

    async fn change_catalog_in(&self, active: &mut Active, kind: &StatementKind) -> SqlResult<()> {
        match kind {
            StatementKind::Create(Create::Procedure(definition)) => return self.create_procedure(active, definition).await,
            StatementKind::AlterTable(alter) => return self.alter_table(active, alter).await,
            StatementKind::AlterIdentity { table, if_exists, column, change } => {
                return self.alter_identity(active, table, *if_exists, column, change).await;
            }
            StatementKind::RenameIndex { name, to } => return self.rename_index(active, name, to).await,
            StatementKind::Create(Create::Table(table)) => return self.create_table(active, table).await,
            StatementKind::Truncate { names, cascade, restart } => return self.truncate(active, names, *cascade, *restart).await,
            StatementKind::Sequence(command) => return self.change_sequence(active, command).await,
            StatementKind::Drop { object, if_exists, names, cascade } => {
                return self.drop_named(active, *object, *if_exists, names, *cascade).await;
            }
            _ => {}
        }
        let Active { txn, catalog, .. } = active;
        let (txn, database) = (txn.as_mut(), self.facts.database.as_str());
        match kind {
            StatementKind::Create(Create::Database { name, if_not_exists, options }) => {
                let Options { protocol, shared } = Options::of(options)?;
                match catalog.create_database(txn, name, protocol).await {
                    Err(error) if *if_not_exists && error.state() == SqlState::DuplicateDatabase => return Ok(()),
                    result => result?,
                }
                let Some((protocol, value)) = shared else { return Ok(()) };
                let databases = catalog.databases(txn).await?;
                let other = databases.iter().find(|other| other.name != *name && other.protocol == protocol.name());
                self.set_shared_option(protocol, Some(value), other.map(|other| other.name.as_str())).await
            }
            StatementKind::AlterDatabase { name, setting: Some(setting), value }
                if let Some((protocol, option)) = Protocol::with_option(setting) =>
            {
                if catalog.database(txn, name).await?.protocol()? != protocol {
                    return Err(protocol.option_misplaced(option));
                }
                value.as_deref().map(option.check).transpose()?;
                self.set_shared_option(protocol, value.as_deref(), None).await
            }
            StatementKind::AlterDatabase { name, setting: Some(setting), value } => {
                let (setting, value) = of_database(setting, value.as_deref())?;
                let change = |settings: &mut BTreeMap<String, String>| match value {
                    Some(value) => drop(settings.insert(setting.into(), value)),
                    None => drop(settings.remove(setting)),
                };
                catalog.alter_database(txn, name, change).await
            }
            StatementKind::AlterDatabase { name, setting: None, .. } => catalog.alter_database(txn, name, BTreeMap::clear).await,
            StatementKind::Create(Create::Index(index)) => {
                let spec = index_spec(index, database)?;
                catalog.create_index(txn, database, &spec, index.if_not_exists).await.map(drop)
            }
            StatementKind::DropProcedure { if_exists, procedures } => {
                for (name, types) in procedures {
                    let types =
                        types.as_ref().map(|types| types.iter().map(SqlType::from_ast).collect::<SqlResult<Vec<_>>>()).transpose()?;
                    let name = procedure_name(name, database)?;
                    catalog.drop_procedure(txn, database, &name, types.as_deref(), *if_exists).await?;
                }
                Ok(())
            }
            other => Err(SqlError::internal(format!("{} does not change the catalog", other.name()))),
        }
    }
}

impl Session {
    /// Has all databases of a protocol have this value of the option that they share.
    async fn set_shared_option(&self, protocol: Protocol, value: Option<&str>, other: Option<&str>) -> SqlResult<()> {
        let administration = self.engine.keyspaces.administration(protocol).ok_or_else(|| protocol.not_held())?;
        administration.set_option(value, other).await
    }

    /// DROP of databases, indexes or tables.
    async fn drop_named(
        &self,
        active: &mut Active,
        object: ast::ObjectType,
        if_exists: bool,
        names: &[ast::ObjectName],
        cascade: bool,
    ) -> SqlResult<()> {
        let (Active { txn, catalog, deferred, .. }, database) = (active, self.facts.database.as_str());
        let names = folded(names, database)?;
        let dropped: BTreeSet<String> = names.iter().cloned().collect();
        for name in names {
            match object {
                ast::ObjectType::Database if name == database => {
                    return Err(SqlError::new(SqlState::ObjectInUse, "cannot drop the currently open database"));
                }
                ast::ObjectType::Database => catalog.drop_database(txn.as_mut(), &name, if_exists).await?,
                ast::ObjectType::Index => {
                    if !deferred.is_settled()
                        && let Ok(table) = catalog.table_of_index(txn.as_mut(), database, &name).await
                    {
                        deferred.refuse_change("DROP INDEX", &table.name)?;
                    }
                    catalog.drop_index(txn.as_mut(), database, &name, if_exists, cascade).await?
                }
                ast::ObjectType::Sequence => catalog.drop_sequence(txn.as_mut(), database, &name, if_exists, cascade).await?,
                _ => {
                    deferred.refuse_change("DROP TABLE", &name)?;
                    catalog.drop_table(txn.as_mut(), database, &name, if_exists, &dropped, cascade).await?
                }
            };
        }
        Ok(())
    }

    /// CREATE and ALTER SEQUENCE.
    async fn change_sequence(&self, active: &mut Active, command: &SequenceCommand) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let (Active { txn, catalog, .. }, named) = (active, |name| SqlResult::Ok(fold(&unqualified(name, database)?)));
        let txn = txn.as_mut();
        let (SequenceCommand::Create { name, .. } | SequenceCommand::Alter { name, .. } | SequenceCommand::Rename { name, .. }) = command;
        let name = named(name)?;
        if let SequenceCommand::Create { if_not_exists, clauses, .. } = command {
            let options = sequence_options(clauses, database)?;
            if options.restart.is_some() {
                return Err(SqlError::syntax("a new sequence has nothing to RESTART: say START"));
            }
            return catalog.create_sequence(txn, database, &name, &options, *if_not_exists).await.map(drop);
        }
        let (SequenceCommand::Create { if_not_exists: if_exists, .. }
        | SequenceCommand::Alter { if_exists, .. }
        | SequenceCommand::Rename { if_exists, .. }) = command;
        let sequence = match catalog.sequence_to_alter(txn, database, &name).await {
            Err(error) if *if_exists && error.state() == SqlState::UndefinedTable => return Ok(()),
            found => found?,
        };
        match command {
            SequenceCommand::Rename { to, .. } => catalog.rename_sequence(txn, &sequence, &named(to)?).await,
            SequenceCommand::Alter { clauses, .. } if clauses.is_empty() => Ok(()),
            SequenceCommand::Create { clauses, .. } | SequenceCommand::Alter { clauses, .. } => {
                catalog.alter_sequence(txn, &sequence, &sequence_options(clauses, database)?).await
            }
        }
    }

    async fn create_table(&self, active: &mut Active, table: &ast::CreateTable) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let spec = table_spec(table, database)?;
        if !active.catalog.create_table(active.txn.as_mut(), database, &spec, table.if_not_exists).await? {
            return Ok(());
        }
        let table = active.catalog.table(active.txn.as_mut(), database, &spec.name).await?;
        active.catalog.settle_defaults(active.txn.as_mut(), None, Some(&table)).await?;
        check_table(self.planning(), active, &table).await
    }

    /// TRUNCATE: all rows of the tables, which no others may reference; with `cascade` these go, too. With `restart` sequences begin anew.
    async fn truncate(&self, active: &mut Active, names: &[ast::ObjectName], cascade: bool, restart: bool) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let mut names = folded(names, database)?;
        let mut at = 0;
        while let Some(name) = names.get(at).cloned() {
            at += 1;
            let table = active.catalog.table(active.txn.as_mut(), database, &name).await?;
            for reference in &table.referenced_by {
                if cascade && !names.contains(&reference.child) {
                    names.push(reference.child.clone());
                }
                if !names.contains(&reference.child) {
                    return Err(SqlError::unsupported("cannot truncate a table referenced in a foreign key constraint")
                        .with_detail(format!("Table \"{}\" references \"{name}\".", reference.child))
                        .with_hint(format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", reference.child)));
                }
            }
            for owned in table.sequences.iter().filter(|_| restart) {
                let (catalog, txn) = (&mut active.catalog, active.txn.as_mut());
                let sequence = catalog.sequence_to_alter(txn, database, &owned.name).await?;
                catalog.set_sequence(txn, &sequence, Counter::new(sequence.start))?;
            }
            delete_all(&self.engine, active.txn.as_mut(), table).await?;
        }
        Ok(())
    }

    /// CREATE PROCEDURE: its statements are planned once, so that what is wrong with them is told now.
    async fn create_procedure(&self, active: &mut Active, definition: &ProcedureDefinition) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let spec = procedure_spec(definition, database)?;
        let created = active.catalog.create_procedure(active.txn.as_mut(), database, spec, definition.or_replace).await?;
        let one_shot = self.home.gateway().takes_operations().then(|| self.home.protocol());
        check_procedure(self.planning(), active, &created, one_shot).await
    }
}

/// The names of tables, as the catalog has them.
fn folded(names: &[ast::ObjectName], database: &str) -> SqlResult<Vec<String>> {
    names.iter().map(|name| Ok(fold(&unqualified(name, database)?))).collect()
}

/// True for statements about databases, as opposed to what one of them holds.
fn is_about_databases(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Create(Create::Database { .. })
            | StatementKind::AlterDatabase { .. }
            | StatementKind::Drop { object: ast::ObjectType::Database, .. }
    )
}

/// The option that all databases of a protocol share, if the statement gives one.
fn shared_option(kind: &StatementKind) -> Option<&'static SharedOption> {
    let shared = |name: &str| Protocol::with_option(name).map(|(_, option)| option);
    match kind {
        StatementKind::Create(Create::Database { options, .. }) => options.iter().find_map(|(name, _)| shared(name)),
        StatementKind::AlterDatabase { setting, .. } => setting.as_deref().and_then(shared),
        _ => None,
    }
}

/// What CREATE DATABASE … WITH says.
struct Options<'a> {
    protocol: Option<&'a str>,
    /// The value of the option that all databases of this protocol share.
    shared: Option<(Protocol, &'a str)>,
}

impl Options<'_> {
    fn of(options: &[(String, String)]) -> SqlResult<Options<'_>> {
        let (mut protocol, mut shared) = (None, None);
        for (position, (name, value)) in options.iter().enumerate() {
            if options[..position].iter().any(|(other, _)| other == name) {
                return Err(SqlError::syntax(format!("conflicting or redundant options: \"{name}\" is given twice")));
            }
            if name == "protocol" {
                protocol = Some(value.as_str());
                continue;
            }
            let Some((of, option)) = Protocol::with_option(name) else { return Err(unrecognized(name)) };
            (option.check)(value)?;
            shared = Some((of, option, value.as_str()));
        }
        match shared {
            Some((of, option, _)) if protocol != Some(of.name()) => Err(of.option_misplaced(option)),
            _ => Ok(Options { protocol, shared: shared.map(|(of, _, value)| (of, value)) }),
        }
    }
}

fn unrecognized(option: &str) -> SqlError {
    let known: Vec<String> = PROTOCOLS.iter().map(|(name, protocol)| described(name, *protocol)).collect();
    SqlError::new(SqlState::InvalidParameterValue, format!("unrecognized option of a database: \"{option}\""))
        .with_hint(format!("Options are {}.", known.join(", ")))
}

/// A protocol as an option, with the one that its databases share.
fn described(name: &str, protocol: Protocol) -> String {
    match protocol.option() {
        Some(option) => format!("protocol = '{name}', and with it {} or {}", option.example, option.other_example),
        None => format!("protocol = '{name}'"),
    }
}
