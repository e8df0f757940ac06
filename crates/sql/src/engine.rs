//! What the sessions of one site share: the key spaces of the protocols, the quotas, the query engine's functions and rules.

use crate::bounded::Folding;
use crate::environment::Environment;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::keyspaces::{Gateways, Keyspaces};
use crate::table::RowIds;
use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use rhumb_core::{SiteId, Timestamp};
use rhumb_quota::gateway::Quotas;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The memory that all queries of a site may use for sorting, grouping and joining, in bytes. A query that would go past it
/// fails; the server does not. Nothing spills to disk: the disk is for what was committed.
const QUERY_MEMORY_BYTES_MAX: usize = 1 << 30;
const QUERY_MEMORY_FRACTION: f64 = 1.0;
/// The rows of a batch in the query engine.
const BATCH_ROWS: usize = 1_024;

/// The shared part of all sessions.
pub struct Engine {
    /// Where transactions begin.
    pub keyspaces: Keyspaces,
    /// Ids for rows of tables without a primary key.
    pub row_ids: RowIds,
    /// Timers and randomness.
    pub environment: Arc<dyn Environment>,
    quotas: Option<Arc<dyn Quotas>>,
    state: SessionState,
    /// The same while constants are made that a plan keeps.
    planning: SessionState,
}

impl Engine {
    /// The engine of the site `site`; without `quotas` all statements about them are refused.
    pub fn new(gateways: Gateways, quotas: Option<Arc<dyn Quotas>>, site: SiteId, environment: Arc<dyn Environment>) -> SqlResult<Engine> {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_limit(QUERY_MEMORY_BYTES_MAX, QUERY_MEMORY_FRACTION)
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .build_arc()
            .map_err(|error| from_datafusion(&error))?;
        // Functions and planners alone: no files, no tables of the engine's own.
        let state = SessionStateBuilder::new()
            .with_config(config())
            .with_runtime_env(runtime)
            .with_expr_planners(SessionStateDefaults::default_expr_planners())
            .with_scalar_functions(SessionStateDefaults::default_scalar_functions())
            .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
            .with_window_functions(SessionStateDefaults::default_window_functions())
            .build();
        let mut planning = state.clone();
        planning.config_mut().options_mut().extensions.insert(Folding::default());
        Ok(Engine { keyspaces: Keyspaces::new(gateways), row_ids: RowIds::new(site), environment, quotas, state, planning })
    }

    /// A timestamp of now, by this site's clock.
    pub fn now(&self) -> Timestamp {
        self.keyspaces.system.gateway.now()
    }

    /// The quotas of the cluster. Error 0A000.
    pub fn quotas(&self) -> SqlResult<&dyn Quotas> {
        let none = || SqlError::unsupported("this site serves no quotas").with_hint("Ask a site that was started with quotas.");
        self.quotas.as_deref().ok_or_else(none)
    }

    /// The query engine as of now: `now()` is the moment of this call.
    pub fn state(&self) -> SessionState {
        let mut state = self.state.clone();
        state.mark_start_execution();
        state
    }

    /// A charge to the memory of the site's queries, of nothing yet; what it is for appears in the error when there is no more.
    pub fn query_memory(&self, what_for: &str) -> MemoryReservation {
        MemoryConsumer::new(what_for).register(&self.state.runtime_env().memory_pool)
    }

    /// The query engine as of now, for what is made of a plan before it runs.
    pub fn planning_state(&self) -> SessionState {
        let mut state = self.planning.clone();
        state.mark_start_execution();
        state
    }

    /// The options of the query engine while constants are made that a plan keeps.
    pub fn planning_options(&self) -> &Arc<ConfigOptions> {
        self.planning.config_options()
    }

    /// The query engine's functions and rules, for what does not depend on the time.
    pub fn timeless_state(&self) -> &SessionState {
        &self.state
    }
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(BATCH_ROWS).with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.enable_ident_normalization = true;
    options.execution.collect_statistics = false;
    config
}

/// Runs a step of the query engine; a panic in there is an error of the statement, not the end of the connection.
pub fn guarded<T>(step: impl FnOnce() -> datafusion::common::Result<T>) -> SqlResult<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|error| from_datafusion(&error)),
        Err(panic) => Err(from_panic(&panic)),
    }
}

/// What a panic of the query engine is to the client.
pub fn from_panic(panic: &Box<dyn std::any::Any + Send>) -> SqlError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    SqlError::internal(format!("the query engine failed: {}", text.unwrap_or("no reason given")))
        .with_hint("Nothing was changed by this statement. Try to write it differently, and report it.")
}

/// An error of the query engine with its SQLSTATE.
pub fn from_datafusion(error: &DataFusionError) -> SqlError {
    use datafusion::common::SchemaError;
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<SqlError>() {
            Some(error) => error.clone(),
            None => match inner.downcast_ref::<DataFusionError>() {
                Some(inner) => from_datafusion(inner),
                None => SqlError::internal(inner.to_string()),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(inner),
        DataFusionError::Shared(inner) => from_datafusion(inner),
        DataFusionError::ArrowError(inner, _) => from_arrow(inner),
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::FieldNotFound { field, .. } => SqlError::undefined_column(&field.name),
            SchemaError::AmbiguousReference { field } => {
                SqlError::new(SqlState::AmbiguousColumn, format!("column reference \"{}\" is ambiguous", field.name))
            }
            other => SqlError::new(SqlState::DuplicateColumn, other.to_string()),
        },
        DataFusionError::NotImplemented(text) => SqlError::unsupported(text.clone()),
        DataFusionError::Plan(text) => from_plan_text(text),
        DataFusionError::ResourcesExhausted(text) => {
            let message = format!("the queries of this site need more than {} MiB together", QUERY_MEMORY_BYTES_MAX >> 20);
            let hint = "Sort, group or join fewer rows, or try again when others have ended.";
            SqlError::new(SqlState::OutOfMemory, message).with_detail(text.clone()).with_hint(hint)
        }
        DataFusionError::Execution(text) if text.contains("out of range") || text.contains("verflow") => {
            SqlError::new(SqlState::NumericValueOutOfRange, text.clone())
        }
        DataFusionError::Execution(text) => SqlError::new(SqlState::InvalidParameterValue, text.clone()),
        other => SqlError::internal(other.strip_backtrace()),
    }
}

fn from_arrow(error: &datafusion::arrow::error::ArrowError) -> SqlError {
    use datafusion::arrow::error::ArrowError;
    match error {
        ArrowError::DivideByZero => SqlError::new(SqlState::DivisionByZero, "division by zero"),
        ArrowError::ArithmeticOverflow(text) => SqlError::new(SqlState::NumericValueOutOfRange, text.clone()),
        ArrowError::CastError(text) | ArrowError::ParseError(text) => SqlError::new(SqlState::InvalidTextRepresentation, text.clone()),
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<SqlError>() {
            Some(error) => error.clone(),
            None => inner.downcast_ref::<DataFusionError>().map_or_else(|| SqlError::internal(inner.to_string()), from_datafusion),
        },
        other => SqlError::internal(other.to_string()),
    }
}

/// The planner reports most mistakes as text; the common ones are told apart by it.
fn from_plan_text(text: &str) -> SqlError {
    let state = if text.starts_with("Invalid function") {
        SqlState::UndefinedFunction
    } else if text.contains("ambiguous") {
        SqlState::AmbiguousColumn
    } else if text.contains("Cannot coerce") || text.contains("coercion") || text.contains("Cannot infer common") || text.contains("type") {
        SqlState::DatatypeMismatch
    } else {
        SqlState::SyntaxError
    };
    SqlError::new(state, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::System;
    use crate::testing::LocalGateway;

    #[test]
    fn queries_use_no_disk_and_say_so_when_memory_is_short() {
        let gateway: Arc<dyn rhumb_commit::transaction::Gateway> = Arc::new(LocalGateway::new());
        let gateways = Gateways { replicated_commit: gateway, catenae: None, quad: None, epochs: None, quorums: None };
        let engine = Engine::new(gateways, None, SiteId::new(0, 0), Arc::new(System::default())).expect("an engine");
        assert!(!engine.timeless_state().runtime_env().disk_manager.tmp_files_enabled());
        let error = from_datafusion(&DataFusionError::ResourcesExhausted("sort".into()));
        assert_eq!((error.state().code(), error.detail(), error.hint().is_some()), ("53200", Some("sort"), true));
    }
}
