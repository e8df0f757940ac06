//! One client's connection: messages in, answers out, in the order of the protocol.
//!
//! Answers gather in a buffer that is sent when it is full and whenever the client waits for it: before the next message
//! is awaited. What ends the connection is an [`Ending`]; what ends only a statement is a [`SqlError`](crate::error).

mod extended;
mod named;

use super::budget::Budget;
use super::frame::{FrameError, FrameReader};
use super::request::Request;
use crate::context::Timeout;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::{ResultColumn, RowStream};
use crate::session::{Company, CopyIn, Outcome, Prepared, Session, Status, Tag};
use crate::storage::Row;
use crate::types::wire::{Format, put_field};
use crate::wire::stop::Stop;
use bytes::BytesMut;
use extended::{Kept, Portal};
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::copy::CopyInResponse;
use pgwire::messages::data::{DataRow, FieldDescription, RowDescription};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ErrorResponse, NoticeResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use rhumb_security::tls::{HandshakeError, Reader, Writer};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio_io_timeout::TimeoutWriter;

/// The bytes of answers that are gathered before they are sent.
const OUTPUT_BYTES: usize = 64 << 10;

/// Why a connection ended before its client took leave.
#[derive(Debug, thiserror::Error)]
pub enum Ending {
    /// The network, or a client that does not speak the protocol.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// An answer that cannot be written as a message.
    #[error("cannot encode an answer: {0}")]
    Encode(String),
    /// The server ended the session.
    #[error(transparent)]
    Session(SqlError),
}

impl From<std::io::Error> for Ending {
    fn from(error: std::io::Error) -> Ending {
        Ending::Frame(error.into())
    }
}

impl From<HandshakeError> for Ending {
    fn from(error: HandshakeError) -> Ending {
        std::io::Error::other(error).into()
    }
}

/// A connection whose session is open.
pub struct Connection {
    pub(super) reader: FrameReader<Reader>,
    pub(super) output: Output,
    pub(super) session: Session,
    pub(super) budget: Budget,
    pub(super) statements: BTreeMap<String, Kept>,
    pub(super) portals: BTreeMap<String, Portal>,
    /// After an error in the extended protocol: what follows is skipped up to Sync.
    pub(super) skipping: bool,
    /// True from ReadyForQuery to the next message.
    at_rest: bool,
    stop: Stop,
}

/// The answers on their way out.
pub struct Output {
    stream: Pin<Box<TimeoutWriter<Writer>>>,
    buffer: BytesMut,
}

impl Output {
    /// Answers to `stream`, whose client may leave them unread for `stall_max`.
    pub fn new(stream: Writer, stall_max: Duration) -> Output {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(stall_max));
        Output { stream: Box::pin(stream), buffer: BytesMut::with_capacity(OUTPUT_BYTES) }
    }

    /// Appends an answer.
    pub fn put(&mut self, answer: Answer) -> Result<(), Ending> {
        answer.encode(&mut self.buffer).map_err(|error| Ending::Encode(error.to_string()))
    }

    /// Appends one byte, the answer to a wish to encrypt.
    pub fn put_byte(&mut self, byte: u8) {
        self.buffer.extend_from_slice(&[byte]);
    }

    /// Sends what has gathered.
    pub async fn flush(&mut self) -> Result<(), Ending> {
        if !self.buffer.is_empty() {
            self.stream.write_all(&self.buffer).await?;
            self.stream.flush().await?;
            self.buffer.clear();
        }
        Ok(())
    }

    async fn flush_if_full(&mut self) -> Result<(), Ending> {
        if self.buffer.len() >= OUTPUT_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Appends an error that ends the statement, or, if `fatal`, the connection.
    pub fn put_error(&mut self, error: &SqlError, fatal: bool) -> Result<(), Ending> {
        let severity = if fatal { "FATAL" } else { "ERROR" };
        self.put(Answer::ErrorResponse(ErrorResponse::new(report(severity, error.state().code(), error))))
    }
}

/// The fields of an error or a notice.
fn report(severity: &str, code: &str, error: &SqlError) -> Vec<(u8, String)> {
    let mut fields =
        vec![(b'S', severity.to_string()), (b'V', severity.to_string()), (b'C', code.to_string()), (b'M', error.message().to_string())];
    fields.extend(error.detail().map(|detail| (b'D', detail.to_string())));
    fields.extend(error.hint().map(|hint| (b'H', hint.to_string())));
    fields.extend(error.position().map(|position| (b'P', position.to_string())));
    fields.extend(error.constraint().map(|constraint| (b'n', constraint.to_string())));
    // A NUL would end the field early.
    fields.iter_mut().for_each(|(_, text)| text.retain(|character| character != '\0'));
    fields
}

/// How far the rows of a result went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// To the end.
    All(usize),
    /// To the limit of the client.
    Some,
}

/// Rows under way: those still to be sent of the last page, then the pages that follow.
pub(super) struct Rows {
    pub columns: Arc<[ResultColumn]>,
    pub pending: std::vec::IntoIter<Row>,
    pub stream: RowStream,
    pub tag: Tag,
}

impl Rows {
    /// None of them sent yet.
    pub fn new(columns: Arc<[ResultColumn]>, stream: RowStream, tag: Tag) -> Rows {
        Rows { columns, pending: Vec::new().into_iter(), stream, tag }
    }
}

impl Connection {
    /// A connection whose client awaits the first statement to be asked for.
    pub(crate) fn new(reader: FrameReader<Reader>, output: Output, session: Session, budget: Budget, stop: Stop) -> Connection {
        let (statements, portals) = (BTreeMap::new(), BTreeMap::new());
        Connection { reader, output, session, budget, statements, portals, skipping: false, at_rest: true, stop }
    }

    /// Serves the client until it takes leave. One that does not speak the protocol, or whose session has to end, is told so.
    pub async fn run(mut self) -> Result<(), Ending> {
        let result = self.serve().await;
        let told = match &result {
            Err(Ending::Frame(FrameError::Protocol(reason))) => SqlError::new(SqlState::ProtocolViolation, reason.clone()),
            Err(Ending::Session(error)) => error.clone(),
            _ => return result,
        };
        self.session.fail(&told).await;
        self.output.put_error(&told, true)?;
        self.output.flush().await?;
        result
    }

    async fn serve(&mut self) -> Result<(), Ending> {
        self.ready()?;
        loop {
            if !self.reader.has_more() {
                self.output.flush().await?;
            }
            self.attend().await?;
            let Some(request) = self.reader.next().await? else { return Ok(()) };
            if std::mem::take(&mut self.at_rest) {
                self.session.rest();
            }
            match request {
                Request::Terminate => return Ok(()),
                // After an error in the extended protocol everything is skipped up to Sync.
                Request::Query(_) if self.skipping => {}
                Request::Query(sql) => self.query(&sql).await?,
                // Left over from a COPY that failed before its client knew.
                Request::CopyData(_) | Request::CopyDone | Request::CopyFail(_) => {}
                extended => self.extended(extended).await?,
            }
            self.output.flush_if_full().await?;
        }
    }

    /// Waits for the client, wherever it is its turn, until its next message is there to be peeked at or it has closed the connection.
    /// Ends the session if its client leaves a transaction open for too long, or has none open and the server stops.
    pub(super) async fn attend(&mut self) -> Result<(), Ending> {
        let limit = self.session.idle_limit();
        let idle = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            biased;
            request = self.reader.peek() => {
                request?;
                return Ok(());
            }
            () = self.stop.requested(), if self.session.is_at_rest() => {
                let error = SqlError::new(SqlState::AdminShutdown, "terminating connection due to administrator command");
                error.with_hint("This site stops. Connect to another, or to this one later.")
            }
            () = idle => Timeout::IdleInTransaction.error(),
        };
        Err(Ending::Session(error))
    }

    /// The same in the midst of a statement, which a cancel request and its deadline end.
    pub(super) async fn attend_within_statement(&mut self) -> Result<SqlResult<()>, Ending> {
        let ended = self.session.statement_ended();
        let error = tokio::select! {
            biased;
            error = ended => error,
            waited = self.attend() => return waited.map(Ok),
        };
        self.session.fail(&error).await;
        Ok(Err(error))
    }

    /// A text of the simple protocol.
    async fn query(&mut self, sql: &str) -> Result<(), Ending> {
        // A text of the simple protocol takes the place of the unnamed statement and its portal.
        self.statements.remove("");
        self.portals.remove("");
        if let Err(error) = self.query_statements(sql).await? {
            self.session.fail(&error).await;
            self.output.put_error(&error, false)?;
        } else if let Err(error) = self.session.finish().await {
            self.output.put_error(&error, false)?;
        }
        self.ready()
    }

    async fn query_statements(&mut self, sql: &str) -> Result<SqlResult<()>, Ending> {
        let statements = match self.session.parse(sql) {
            Ok(statements) => statements,
            Err(error) => return Ok(Err(error)),
        };
        if statements.is_empty() {
            self.output.put(Answer::EmptyQueryResponse(EmptyQueryResponse::new()))?;
        }
        let company = if statements.len() == 1 { Company::Alone } else { Company::Batch };
        match self.session.one_shot(&statements).await {
            Ok(None) => {}
            Ok(Some(outcomes)) => return self.answer_all(&statements, outcomes).await,
            Err(error) => return Ok(Err(error)),
        }
        for statement in statements.iter() {
            match self.run_statement(statement, &[], company).await {
                Ok(outcome) => {
                    if let Err(error) = self.answer(statement, outcome, company).await? {
                        return Ok(Err(error));
                    }
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    /// Sends what statements did that ran as one.
    async fn answer_all(&mut self, statements: &[Arc<Prepared>], outcomes: Vec<Outcome>) -> Result<SqlResult<()>, Ending> {
        for (statement, outcome) in statements.iter().zip(outcomes) {
            if let Err(error) = self.answer(statement, outcome, Company::Batch).await? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// Sends what a statement of the simple protocol did.
    async fn answer(&mut self, statement: &Prepared, outcome: Outcome, company: Company) -> Result<SqlResult<()>, Ending> {
        self.forget_deallocated(statement);
        let tag = match outcome {
            Outcome::Done(tag) => tag,
            Outcome::Rows { columns, rows, tag } => {
                self.output.put(row_description(&columns, &[]))?;
                let mut rows = Rows::new(columns, rows, tag);
                match self.send_rows(&mut rows, &[], 0).await? {
                    Ok(Sent::All(count)) => rows.tag.text(count),
                    Ok(Sent::Some) => rows.tag.text(0),
                    Err(error) => return Ok(Err(error)),
                }
            }
            Outcome::Copy(copy) => match self.copy_in(copy).await? {
                Ok(tag) => tag,
                Err(error) => return Ok(Err(error)),
            },
        };
        // The only statement of its transaction is done when that is committed.
        if company == Company::Alone
            && let Err(error) = self.session.finish().await
        {
            return Ok(Err(error));
        }
        self.complete(tag)?;
        Ok(Ok(()))
    }

    /// Sends rows, all or up to `rows_max` of them if that is not zero.
    pub(super) async fn send_rows(&mut self, rows: &mut Rows, formats: &[i16], rows_max: usize) -> Result<SqlResult<Sent>, Ending> {
        let mut sent = 0;
        loop {
            for row in rows.pending.by_ref() {
                let mut data = BytesMut::new();
                for (position, (column, value)) in rows.columns.iter().zip(&row).enumerate() {
                    if let Err(error) = put_field(&mut data, &column.ty, value, Format::of(formats, position)) {
                        self.session.fail(&error).await;
                        return Ok(Err(error));
                    }
                }
                self.output.put(Answer::DataRow(DataRow::new(data, row.len() as i16)))?;
                self.output.flush_if_full().await?;
                sent += 1;
                if sent == rows_max {
                    return Ok(Ok(Sent::Some));
                }
            }
            match self.session.next_page(&mut rows.stream).await {
                Ok(Some(page)) => rows.pending = page.into_iter(),
                Ok(None) => return Ok(Ok(Sent::All(sent))),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Takes the rows of a COPY. The tag if it went well.
    pub(super) async fn copy_in(&mut self, mut copy: Box<CopyIn>) -> Result<SqlResult<String>, Ending> {
        let columns = copy.columns();
        let format = i16::from(copy.is_binary());
        self.output.put(Answer::CopyInResponse(CopyInResponse::new(format as i8, columns as i16, vec![format; columns])))?;
        self.output.flush().await?;
        loop {
            if let Err(error) = self.attend_within_statement().await? {
                return Ok(Err(error));
            }
            match self.reader.next().await? {
                Some(Request::CopyData(data)) => {
                    if let Err(error) = self.session.copy_data(&mut copy, &data).await {
                        return Ok(Err(error));
                    }
                }
                Some(Request::CopyDone) => {
                    return Ok(match self.session.copy_done(copy).await {
                        Ok(Outcome::Done(tag)) => Ok(tag),
                        Ok(_) => Err(SqlError::internal("a COPY ended without its tag")),
                        Err(error) => Err(error),
                    });
                }
                Some(Request::CopyFail(reason)) => return Ok(Err(self.session.copy_fail(&reason).await)),
                Some(Request::Flush | Request::Sync) => {}
                Some(_) => return Err(FrameError::Protocol("unexpected message during COPY from stdin".into()).into()),
                None => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            }
        }
    }

    /// Sends the end of a statement, with what it warned of and what it changed.
    pub(super) fn complete(&mut self, tag: String) -> Result<(), Ending> {
        self.put_notices()?;
        self.output.put(Answer::CommandComplete(CommandComplete::new(tag)))
    }

    fn put_notices(&mut self) -> Result<(), Ending> {
        for notice in self.session.take_notices() {
            let fields = report("WARNING", notice.state().code(), &notice);
            self.output.put(Answer::NoticeResponse(NoticeResponse::new(fields)))?;
        }
        for (name, value) in self.session.take_reports() {
            self.output.put(Answer::ParameterStatus(ParameterStatus::new(name.to_string(), value)))?;
        }
        Ok(())
    }

    /// Says that the next statement may come.
    pub(super) fn ready(&mut self) -> Result<(), Ending> {
        self.put_notices()?;
        self.at_rest = true;
        let status = match self.session.status() {
            Status::Idle => TransactionStatus::Idle,
            Status::InTransaction => TransactionStatus::Transaction,
            Status::Failed => TransactionStatus::Error,
        };
        self.output.put(Answer::ReadyForQuery(ReadyForQuery::new(status)))
    }
}

/// The message that names the columns of a result.
pub(super) fn row_description(columns: &[ResultColumn], formats: &[i16]) -> Answer {
    let fields = columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let ty = &column.ty;
            let format = Format::of(formats, position).code();
            FieldDescription::new(column.name.clone(), 0, 0, ty.oid(), ty.type_length(), ty.type_modifier(), format)
        })
        .collect();
    Answer::RowDescription(RowDescription::new(fields))
}
