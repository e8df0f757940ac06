//! A table of the current transaction, for the query engine.
//!
//! The plan of a query knows only the table's descriptor; the transaction that a scan reads in is found, when it runs, as
//! an extension of the task's configuration. So a plan outlives the transaction it was made in.

use super::access::Access;
use crate::engine::{batch_of, guarded};
use crate::error::SqlError;
use crate::schema::TableDescriptor;
use crate::storage::Row;
use crate::txn::TransactionHandle;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream::{self, TryStreamExt};
use std::sync::Arc;

/// A table as the query engine sees it.
#[derive(Debug)]
pub struct TableSource {
    table: Arc<TableDescriptor>,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl TableSource {
    /// The table, without its hidden column unless `with_hidden`.
    pub fn new(table: Arc<TableDescriptor>, with_hidden: bool) -> TableSource {
        let columns: Vec<usize> = if with_hidden { (0..table.columns.len()).collect() } else { table.visible_columns().collect() };
        let schema = schema_of(&table, &columns);
        TableSource { table, columns, schema }
    }

    /// The table.
    pub fn table(&self) -> &TableDescriptor {
        &self.table
    }
}

fn schema_of(table: &TableDescriptor, columns: &[usize]) -> SchemaRef {
    let all = table.arrow_schema();
    Arc::new(Schema::new(columns.iter().map(|&column| all.fields()[column].clone()).collect::<Vec<_>>()))
}

#[async_trait]
impl TableProvider for TableSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters narrow the range of keys; the query engine applies them again.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = match projection {
            Some(projection) => projection.iter().map(|&position| self.columns[position]).collect(),
            None => self.columns.clone(),
        };
        let schema = schema_of(&self.table, &columns);
        let access = Access::of(&self.table, filters);
        // With a filter, some of the rows read are dropped above: their number says nothing about the rows wanted.
        let limit = if filters.is_empty() { limit } else { None };
        let scan = TableScan { table: self.table.clone(), columns, schema: schema.clone(), access, limit };
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?))
    }
}

/// One scan of a plan.
#[derive(Debug)]
struct TableScan {
    table: Arc<TableDescriptor>,
    columns: Vec<usize>,
    schema: SchemaRef,
    access: Access,
    limit: Option<usize>,
}

impl PartitionStream for TableScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let handle = context.session_config().get_extension::<TransactionHandle>();
        let schema = self.schema.clone();
        let columns = self.columns.clone();
        let rows = match (handle, self.access.resolve(&self.table, &[])) {
            (None, _) => Err(SqlError::internal("a table is read outside a transaction")),
            (_, Err(error)) => Err(error),
            (Some(handle), Ok(resolved)) => Ok((handle, resolved.with_limit(self.limit).open(self.table.clone()))),
        };
        let pages = stream::once(async move { rows }).map_ok(|(handle, rows)| {
            stream::try_unfold((handle, rows), |(handle, mut rows)| async move {
                let mut active = handle.lock().await?;
                let page = rows.next_page(active.txn.as_mut()).await?;
                drop(active);
                Ok::<_, SqlError>((!page.is_empty()).then_some((page, (handle, rows))))
            })
        });
        let batch_schema = schema.clone();
        let batches = pages
            .try_flatten()
            .and_then(move |page: Vec<Row>| {
                let batch = guarded(|| batch_of(&batch_schema, page.len(), |row, position| page[row][columns[position]].clone()));
                std::future::ready(batch)
            })
            .map_err(|error| DataFusionError::External(Box::new(error)));
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}
