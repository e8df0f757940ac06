//! A gateway: takes clients' requests to the leader, again if need be, and answers each once.

use super::command::{Change, CommandId};
use super::message::Note;
use super::{Effects, GIVE_UP, REQUESTS_MAX, RESEND};
use rhumb_core::actor::RequestId;
use rhumb_core::{Ballot, SiteId, Time};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use std::collections::BTreeMap;

/// The requests of a site's clients that are under way.
pub(super) struct Gateway {
    me: SiteId,
    /// The next request's number. A later incarnation begins with a higher one, for it begins with the time.
    ticket: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// The highest ballot that anybody led in, as far as is known here.
    ballot: Option<Ballot>,
}

struct Waiting {
    client: RequestId,
    request: Request,
    asked: Time,
    sent: Time,
}

impl Gateway {
    pub(super) fn new(me: SiteId) -> Gateway {
        Gateway { me, ticket: 0, waiting: BTreeMap::new(), ballot: None }
    }

    pub(super) fn start(&mut self, now: Time) {
        self.ticket = now.as_micros();
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A client asks something.
    pub(super) fn ask(&mut self, now: Time, client: RequestId, request: Request, fx: &mut Effects) {
        if self.waiting.len() >= REQUESTS_MAX {
            return fx.answer(client, refused(&request, Refusal::Unavailable("too many requests are under way at this site".into())));
        }
        self.ticket += 1;
        self.forward(self.ticket, &request, fx);
        self.waiting.insert(self.ticket, Waiting { client, request, asked: now, sent: now });
    }

    /// Somebody leads: if it is another one than before, it is sent all that waits.
    pub(super) fn led_by(&mut self, now: Time, ballot: Ballot, fx: &mut Effects) {
        if self.ballot < Some(ballot) {
            self.ballot = Some(ballot);
            self.send_again(now, now, fx);
        }
    }

    /// The leader has answered; if for the first time, the client is told.
    pub(super) fn reply(&mut self, id: CommandId, answer: Answer, fx: &mut Effects) {
        if let Some(waiting) = self.waiting.remove(&id.ticket) {
            fx.answer(waiting.client, answer);
        }
    }

    /// Sends again what waits for long, and gives up what waits for too long.
    pub(super) fn tick(&mut self, now: Time, fx: &mut Effects) {
        let late: Vec<u64> = self.waiting.iter().filter(|(_, it)| now.since(it.asked) >= GIVE_UP).map(|(ticket, _)| *ticket).collect();
        for ticket in late {
            if let Some(it) = self.waiting.remove(&ticket) {
                fx.count("multipaxsys.gave_up");
                fx.answer(it.client, refused(&it.request, Refusal::UnknownOutcome("no leader answered in time".into())));
            }
        }
        self.send_again(now, now.minus(RESEND), fx);
    }

    /// Sends what was last sent at `before` or earlier.
    fn send_again(&mut self, now: Time, before: Time, fx: &mut Effects) {
        let due: Vec<u64> = self.waiting.iter().filter(|(_, it)| it.sent <= before).map(|(ticket, _)| *ticket).collect();
        for ticket in due {
            if let Some(it) = self.waiting.get_mut(&ticket) {
                it.sent = now;
            }
            if let Some(it) = self.waiting.get(&ticket) {
                self.forward(ticket, &it.request, fx);
            }
        }
    }

    fn forward(&self, ticket: u64, request: &Request, fx: &mut Effects) {
        if let Some(ballot) = self.ballot {
            fx.send(ballot.leader, Note::Forward { id: CommandId { gateway: self.me, ticket }, request: request.clone() });
        }
    }
}

/// The answer to `request` that says only why not.
fn refused(request: &Request, refusal: Refusal) -> Answer {
    match Change::of(request) {
        Some(change) => change.refused(refusal).into(),
        None => Answer::Got(Err(refusal)),
    }
}
