//! What functions may make of a batch of rows, and of a constant while a statement is planned.

use crate::error::SqlError;
use datafusion::common::config::ConfigExtension;
use datafusion::common::{DataFusionError, extensions_options};
use datafusion::logical_expr::ScalarFunctionArgs;

/// The bytes that a function may make of one batch of rows, and so of one value.
pub const MADE_BYTES_MAX: u64 = 64 << 20;
/// The bytes of a constant that is made while a statement is planned. The text of the call is taken to become more than that in a plan.
pub const FOLDED_BYTES_MAX: u64 = 256;

extensions_options! {
    /// Says that constants are made to be kept in a plan.
    pub struct Folding {}
}

impl ConfigExtension for Folding {
    const PREFIX: &'static str = "folding";
}

/// True if the planner asks.
pub fn is_folding(args: &ScalarFunctionArgs) -> bool {
    args.config_options.extensions.get::<Folding>().is_some()
}

/// 54000.
pub fn too_large(function: &str, bytes_max: u64) -> DataFusionError {
    let message = format!("{function} would make more than {} KiB of one batch of rows", bytes_max >> 10);
    let hint = "Make shorter values, fewer of them with LIMIT, or with fewer such calls in one statement.";
    DataFusionError::External(Box::new(SqlError::too_large(message).with_hint(hint)))
}

/// The planner takes it for a call that is no constant.
pub fn not_now() -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::internal("a constant is too large to be made while planning")))
}
