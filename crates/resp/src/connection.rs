//! One client's connection: commands in, replies out, in order.
//!
//! Whatever can be carried out of what has come is carried out before a reply leaves, and all replies leave in one
//! write. Operations are gathered into calls that may overlap ([`Calls`]); any other command waits until those are
//! answered, so it sees what they did and its reply follows theirs.

use crate::answer::{answer, answer_quota};
use crate::calls::{Calls, Outcomes};
use crate::code::Code;
use crate::decode::decode;
use crate::error::CommandError;
use crate::frame::{COMMAND_BYTES_MAX, Malformed};
use crate::parse::{Command, parse};
use crate::reply::Replies;
use crate::session::{Session, Vitals};
use bytes::{Buf, BufMut, BytesMut};
use rhumb_quota::gateway::Quotas;
use rhumb_security::tls::Stream;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Bytes taken from the network at a time.
const READ_BYTES: usize = 16 << 10;
/// Bytes of commands that are kept until they can be carried out: the longest command, and one more read.
const INPUT_BYTES_MAX: usize = COMMAND_BYTES_MAX + READ_BYTES;
/// While more bytes of replies than that are unsent, no further command is carried out, nor read.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// Memory that an idle connection keeps for replies.
const REPLY_BYTES_KEPT: usize = 16 << 10;
/// How long a client may leave replies unread before its connection is closed.
const UNREAD_MAX: Duration = Duration::from_secs(60);
/// How long a connection that is closed waits for the client to close it too, having read the last reply.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Why a connection ended other than by its client's leave.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum Ending {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("Protocol error: {0}")]
    Malformed(#[from] Malformed),
    #[error("the client left replies unread for {} seconds", UNREAD_MAX.as_secs())]
    Unread,
    #[error("a web browser's request, which may have been made to reach this port")]
    Browser,
}

/// What the connection is to do next.
enum Next {
    /// Read on: all that has come is carried out or under way.
    Read,
    /// Wait until calls are answered or replies are sent: what has come cannot be carried out before.
    Wait,
    /// Close: the client took leave, or broke the protocol.
    Close(Option<Ending>),
}

/// What was waited for.
enum Event {
    Outcomes(Outcomes),
    Sent(usize),
    Flushed,
    Read(usize),
    /// The server stops.
    Stop,
}

/// A connection and what is kept for it.
pub struct Connection<'a> {
    stream: Stream,
    /// Something was written that may not have left yet.
    unflushed: bool,
    input: BytesMut,
    replies: Replies,
    calls: Calls<'a>,
    session: Session,
    quotas: &'a dyn Quotas,
    vitals: &'a Vitals,
    /// The client sends nothing more.
    ended: bool,
    stopped: watch::Receiver<bool>,
}

impl<'a> Connection<'a> {
    /// A connection just made.
    pub fn new(
        stream: Stream,
        session: Session,
        quotas: &'a dyn Quotas,
        vitals: &'a Vitals,
        stopped: watch::Receiver<bool>,
    ) -> Connection<'a> {
        Connection {
            stream,
            unflushed: false,
            input: BytesMut::new(),
            replies: Replies::default(),
            calls: Calls::new(quotas),
            session,
            quotas,
            vitals,
            ended: false,
            stopped,
        }
    }

    /// Serves the client until it leaves.
    pub async fn run(mut self) -> Result<(), Ending> {
        loop {
            let next = self.carry_out().await;
            if let Next::Close(ending) = next {
                return self.close(ending).await;
            }
            self.send_at_once()?;
            let idle = self.calls.is_empty() && self.replies.unsent().is_empty() && !self.unflushed;
            let reads = matches!(next, Next::Read);
            if idle && !reads {
                // All replies could be sent at once; now it is others' turn, then that of the commands left.
                yield_now().await;
                continue;
            }
            if idle && self.ended {
                return Ok(());
            }
            match self.event(reads).await? {
                Event::Outcomes(outcomes) => self.put_outcomes(outcomes),
                Event::Sent(count) => {
                    self.replies.sent(count, REPLY_BYTES_KEPT);
                    self.unflushed = true;
                }
                Event::Flushed => self.unflushed = false,
                Event::Read(0) => self.ended = true,
                Event::Read(_) => {}
                Event::Stop => return self.close(None).await,
            }
        }
    }

    /// Carries out the commands that have come, as far as the order of replies allows.
    async fn carry_out(&mut self) -> Next {
        let (mut at, mut count) = (0, 0);
        let next = loop {
            if !self.calls.has_room() || self.replies.unsent().len() > UNSENT_BYTES_MAX {
                break Next::Wait;
            }
            let frame = match decode(&self.input[at..]) {
                Ok(Some(frame)) => frame,
                Ok(None) => break Next::Read,
                Err(malformed) if self.calls.is_empty() => break Next::Close(Some(malformed.into())),
                Err(_) => break Next::Wait,
            };
            if !frame.arguments.is_empty() {
                let command = match self.session.refuses(&frame.arguments[0]) {
                    Some(error) => Err(error),
                    None => parse(&frame.arguments, &mut self.session.names),
                };
                match command {
                    Ok(Command::Operation(operation)) => self.calls.gather(operation),
                    _ if !self.calls.is_empty() => break Next::Wait,
                    Ok(Command::Quit) => {
                        self.replies.simple("OK");
                        break Next::Close(None);
                    }
                    Ok(Command::Quota(command)) => answer_quota(self.quotas, command, self.vitals, &mut self.replies).await,
                    Ok(command) => answer(command, &mut self.session, self.vitals, &mut self.replies),
                    Err(_) if is_browser(&frame.arguments[0]) => break Next::Close(Some(Ending::Browser)),
                    Err(error) => {
                        self.session.in_transaction = matches!(error, CommandError::Transaction | CommandError::InTransaction);
                        self.replies.error(error.code(), error);
                    }
                }
            }
            at += frame.length;
            count += 1;
        };
        self.input.advance(at);
        self.calls.start();
        self.vitals.add_commands(count);
        next
    }
}

impl Connection<'_> {
    /// Sends what the network takes without waiting.
    fn send_at_once(&mut self) -> io::Result<()> {
        if self.replies.unsent().is_empty() {
            return Ok(());
        }
        match self.stream.try_write(self.replies.unsent()) {
            Ok(count) => self.replies.sent(count, REPLY_BYTES_KEPT),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Waits for the oldest call, for the network to take replies, or for more commands, if those are welcome.
    async fn event(&mut self, reads: bool) -> Result<Event, Ending> {
        let Connection { stream, unflushed, input, replies, calls, ended, stopped, .. } = self;
        let reads = reads && !*ended && calls.has_room() && input.len() < INPUT_BYTES_MAX;
        if reads {
            input.reserve(READ_BYTES);
        }
        let unsent = replies.unsent();
        let unflushed = *unflushed;
        let at_rest = calls.is_empty();
        let event = poll_fn(|context| {
            if let Poll::Ready(outcomes) = calls.poll_oldest(context) {
                return Poll::Ready(Ok(Event::Outcomes(outcomes)));
            }
            if !unsent.is_empty()
                && let Poll::Ready(count) = pin!(stream.write(unsent)).poll(context)
            {
                return Poll::Ready(count.map(Event::Sent));
            }
            if unsent.is_empty()
                && unflushed
                && let Poll::Ready(flushed) = pin!(stream.flush()).poll(context)
            {
                return Poll::Ready(flushed.map(|()| Event::Flushed));
            }
            if reads && let Poll::Ready(count) = pin!(stream.read_buf(&mut (&mut *input).limit(READ_BYTES))).poll(context) {
                return Poll::Ready(count.map(Event::Read));
            }
            Poll::Pending
        });
        if !unsent.is_empty() || unflushed {
            return Ok(timeout(UNREAD_MAX, event).await.map_err(|_| Ending::Unread)??);
        }
        if !at_rest {
            return Ok(event.await?);
        }
        tokio::select! {
            biased;
            event = event => Ok(event?),
            // Without its sender the connection goes as well.
            _ = stopped.wait_for(|stopped| *stopped) => Ok(Event::Stop),
        }
    }

    fn put_outcomes(&mut self, outcomes: Outcomes) {
        for outcome in outcomes {
            match outcome {
                Ok(done) => self.replies.integer(done.left),
                Err(refusal) => self.replies.refusal(&refusal),
            }
        }
    }

    /// Sends the last replies and closes. What the client still sends is passed over until it has read them: closed at
    /// once, the connection would be reset, and the replies lost.
    async fn close(mut self, ending: Option<Ending>) -> Result<(), Ending> {
        match &ending {
            // It would show a reply to whoever made it send the request.
            Some(Ending::Browser) | None => {}
            Some(error) => self.replies.error(Code::Err, error),
        }
        timeout(UNREAD_MAX, self.stream.write_all(self.replies.unsent())).await.map_err(|_| Ending::Unread)??;
        self.stream.shutdown().await?;
        let mut rest = [0; 4 << 10];
        let reading = async { while self.stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
        if timeout(LINGER_MAX, reading).await.is_err() {
            tracing::debug!("a client went on sending after its connection was closed");
        }
        ending.map_or(Ok(()), Err)
    }
}

/// True for the words that a request of a web browser begins with, or soon holds, and no client of Redis sends.
fn is_browser(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}
