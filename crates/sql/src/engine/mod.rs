//! What the sessions of one site share: the key spaces of the protocols, the quotas, the query engine's functions and rules.

mod aggregates;
pub mod analyze;
pub mod arithmetic;
pub mod arrays;
mod batch;
pub mod bounded;
mod casts;
mod decimals;
mod error;
pub mod functions;
pub mod limits;
mod multisets;
mod nullable;
mod prose;
mod ranks;
mod reading;
mod rounding;
pub mod row_function;
mod rules;
pub mod settling;
pub mod tree;

pub use batch::batch_of;
pub use error::{from_datafusion, from_panic, from_sql, guarded};

use crate::context::environment::Environment;
use crate::engine::limits::Folding;
use crate::error::{SqlError, SqlResult};
use crate::protocols::Gateways;
use crate::storage::RowIds;
use crate::txn::{Blocks, Keyspaces};
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use rhumb_core::{SiteId, Timestamp};
use rhumb_quota::gateway::Quotas;
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
    /// Numbers of sequences.
    pub blocks: Blocks,
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
            .with_optimizer_rules(rules::of_plans())
            .with_physical_optimizer_rules(rules::of_operators())
            .with_expr_planners(SessionStateDefaults::default_expr_planners())
            .with_scalar_functions(functions::with_functions(arrays::with_functions(SessionStateDefaults::default_scalar_functions())))
            .with_aggregate_functions(aggregates::with_functions(SessionStateDefaults::default_aggregate_functions()))
            .with_window_functions(ranks::with_functions(SessionStateDefaults::default_window_functions()))
            .with_table_function_list(SessionStateDefaults::default_table_functions())
            .build();
        let mut planning = state.clone();
        planning.config_mut().options_mut().extensions.insert(Folding::default());
        Ok(Engine {
            keyspaces: Keyspaces::new(gateways),
            row_ids: RowIds::new(site),
            blocks: Blocks::default(),
            environment,
            quotas,
            state,
            planning,
        })
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
    // The first rows of the parts of a UNION are one search: sorted apart, a part forgets the columns that are constant in it, and its bound on the
    // others drops rows of the other parts.
    options.optimizer.repartition_sorts = false;
    // A cast of a value that is never NULL may give one to the query engine's operators and not to its plans: the check would refuse `string_agg(id::text …)`.
    options.execution.skip_physical_aggregate_schema_check = true;
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::environment::System;
    use datafusion::common::DataFusionError;
    use rhumb_sqltestkit::LocalGateway;

    #[test]
    fn queries_use_no_disk_and_say_so_when_memory_is_short() {
        let gateways = Gateways::from(Arc::new(LocalGateway::new()));
        let engine = Engine::new(gateways, None, SiteId::new(0, 0), Arc::new(System::default())).expect("an engine");
        assert!(!engine.timeless_state().runtime_env().disk_manager.tmp_files_enabled());
        let error = from_datafusion(&DataFusionError::ResourcesExhausted("sort".into()));
        assert_eq!((error.state().code(), error.detail(), error.hint().is_some()), ("53200", Some("sort"), true));
    }
}
