//! Clients: state machines connected to a site, one request outstanding at a time.
//!
//! A client knows true time, which its site does not, so that what it records can be checked against real-time order.
//! When its site crashes with a request outstanding it gets no answer but [`ClientEvent::GatewayLost`]: whether what it
//! asked has happened, or will yet, is unknown to it.

use rhumb_core::actor::{Actor, RequestId};
use rhumb_core::{SiteId, Span, Time};

/// What a client does next.
pub enum Next<R> {
    /// Send this to its site. The next event is the answer or the loss of the site.
    Request(R),
    /// Nothing for so long.
    Wait(Span),
    /// Nothing ever again.
    Done,
}

impl<R> Next<R> {
    /// The same with another request in place of its own.
    pub fn map<T>(self, into: impl FnOnce(R) -> T) -> Next<T> {
        match self {
            Next::Request(request) => Next::Request(into(request)),
            Next::Wait(span) => Next::Wait(span),
            Next::Done => Next::Done,
        }
    }
}

/// What happens to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent<T> {
    /// Its first event.
    Started,
    /// The wait is over.
    Woken,
    /// Its request is answered.
    Answered(T),
    /// Its site was down when it asked, or crashed before it answered.
    GatewayLost,
}

/// A client's program: told what happened, it says what it does next. To hand out what it learns, let it share a
/// `Rc<RefCell<…>>` with the scenario: a world lives on one thread.
pub trait ClientProgram<A: Actor> {
    /// Takes one event at the true time `now`.
    fn next(&mut self, now: Time, event: ClientEvent<A::Answer>) -> Next<A::Request>;
}

/// What became of a request sent with [`World::submit`](crate::World::submit).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<T> {
    /// The true time at which the client learnt it.
    pub at: Time,
    /// The site asked.
    pub site: SiteId,
    /// The request.
    pub id: RequestId,
    /// Its answer; `None` if the site was down or crashed first.
    pub answer: Option<T>,
}

/// A client and the site it is connected to.
pub(crate) struct Client<A: Actor> {
    pub(crate) site: SiteId,
    pub(crate) program: Box<dyn ClientProgram<A>>,
    pub(crate) done: bool,
}
