//! Sessions in this process, without a wire: texts of statements in, tags and rows as text out, as the simple protocol has them.

use crate::context::environment::Environment;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::executor::{ResultColumn, RowStream};
use crate::protocols::Gateways;
use crate::session::{Company, Outcome, Session, Status};
use crate::types::to_text;
use rhumb_core::{SiteId, Timestamp};
use std::sync::Arc;

/// What the sessions of a site share.
#[derive(Clone)]
pub struct Embedded(Arc<Engine>);

/// What a statement did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The command tag, such as `UPDATE 1`.
    pub tag: String,
    /// The rows that it returned, each value as text; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Embedded {
    /// The site `site`, whose transactions begin at `gateways`; it serves no quotas.
    pub fn new(gateways: Gateways, site: SiteId, environment: Arc<dyn Environment>) -> SqlResult<Embedded> {
        Ok(Embedded(Arc::new(Engine::new(gateways, None, site, environment)?)))
    }

    /// A session in `database`. Error 3D000.
    pub async fn connect(&self, database: &str) -> SqlResult<Client> {
        Ok(Client(Session::open(self.0.clone(), "embedded".into(), database.into(), 0).await?))
    }
}

/// A session. Dropped, it rolls back what it had not committed.
pub struct Client(Session);

impl Client {
    /// Runs the statements of a text, and returns what each did. An error fails the transaction that they ran in.
    pub async fn query(&mut self, sql: &str) -> SqlResult<Vec<Reply>> {
        self.0.rest();
        let result = match self.statements(sql).await {
            Ok(replies) => self.0.finish().await.map(|()| replies),
            Err(error) => {
                self.0.fail(&error).await;
                Err(error)
            }
        };
        self.0.take_notices();
        self.0.take_reports();
        result
    }

    async fn statements(&mut self, sql: &str) -> SqlResult<Vec<Reply>> {
        let statements = self.0.parse(sql)?;
        let company = if statements.len() == 1 { Company::Alone } else { Company::Batch };
        let mut replies = Vec::with_capacity(statements.len());
        if let Some(outcomes) = self.0.one_shot(&statements).await? {
            for outcome in outcomes {
                replies.push(self.reply(outcome).await?);
            }
            return Ok(replies);
        }
        for statement in statements.iter() {
            let outcome = self.0.execute(statement, &[], company).await?;
            let reply = self.reply(outcome).await?;
            // The only statement of its transaction is done when that is committed.
            if company == Company::Alone {
                self.0.finish().await?;
            }
            replies.push(reply);
        }
        Ok(replies)
    }

    async fn reply(&mut self, outcome: Outcome) -> SqlResult<Reply> {
        match outcome {
            Outcome::Done(tag) => Ok(Reply { tag, rows: Vec::new() }),
            Outcome::Rows { columns, rows, tag } => {
                let rows = self.rows(&columns, rows).await?;
                Ok(Reply { tag: tag.text(rows.len()), rows })
            }
            Outcome::Copy(_) => Err(SqlError::unsupported("COPY takes a client with a connection")),
        }
    }

    async fn rows(&mut self, columns: &[ResultColumn], mut stream: RowStream) -> SqlResult<Vec<Vec<Option<String>>>> {
        let mut rows = Vec::new();
        while let Some(page) = self.0.next_page(&mut stream).await? {
            rows.extend(page.iter().map(|row| columns.iter().zip(row).map(|(column, value)| to_text(&column.ty, value)).collect()));
        }
        Ok(rows)
    }

    /// True within BEGIN, be it that its transaction has failed.
    pub fn is_in_transaction(&self) -> bool {
        self.0.status() != Status::Idle
    }

    /// The timestamp of the last transaction of this session that is known to have committed: that of its versions, or, if it wrote
    /// nothing, the one it read at.
    pub fn last_commit(&self) -> Timestamp {
        self.0.last_commit()
    }
}
