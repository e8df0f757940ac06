//! One client of quotas: a connection, and what is sent over it.
//!
//! ```text
//! due ─▶ as many as the pipeline holds ─▶ sent together ─▶ answered one by one ─▶ due …
//! ```

use super::meter::Meter;
use super::trace::Want;
use super::wants::Wants;
use crate::client::redis::{Connection, Reply};
use crate::driver::{Client, Turn, Window};
use crate::error::BenchError;
use crate::lock::lock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long after a broken connection another is opened.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);

/// One connection.
pub(super) struct QuotaClient {
    pub(super) quota: String,
    /// What the ids of its operations begin with, if they have any.
    pub(super) id: Option<String>,
    /// What is wanted in its region.
    pub(super) wants: Arc<Mutex<Wants>>,
    pub(super) address: String,
    pub(super) connection: Option<Connection>,
    /// Operations sent.
    pub(super) sent: u64,
}

impl Client for QuotaClient {
    type Meter = Meter;

    /// Connects again if the connection broke, as long as the run lasts.
    async fn ready(&mut self, window: &Window) {
        while self.connection.is_none() && !window.is_over(Instant::now()) {
            match Connection::open(&self.address).await {
                Ok(connection) => self.connection = Some(connection),
                Err(_) => window.wait_until(Instant::now() + RECONNECT_AFTER).await,
            }
        }
    }

    /// Sends the operations together, and counts their answers as they come.
    async fn work(&mut self, turn: Turn<'_, Meter>) -> Result<(), BenchError> {
        let wants: Vec<Want> = {
            let mut wants = lock(&self.wants);
            turn.due.iter().map(|_| wants.next()).collect()
        };
        self.send(&wants).await;
        for (&due, &want) in turn.due.iter().zip(&wants) {
            let reply = self.receive().await;
            let now = Instant::now();
            // What was acquired is held from now on, and so still is what could not be released.
            if matches!((want, &reply), (Want::Acquire, Some(Reply::Integer(_))) | (Want::Release, Some(Reply::Refused(_)))) {
                lock(&self.wants).got(1);
            }
            turn.count(kind(want), due, now, |meter| match &reply {
                Some(reply) => meter.answer(reply.code(), now.saturating_duration_since(due)),
                None => meter.unknown += 1,
            });
        }
        Ok(())
    }
}

impl QuotaClient {
    async fn send(&mut self, wants: &[Want]) {
        let Some(connection) = &mut self.connection else { return };
        for want in wants {
            let command = if *want == Want::Acquire { "ACQUIRE" } else { "RELEASE" };
            self.sent += 1;
            match &self.id {
                Some(id) => connection.push(&[command, &self.quota, "1", "ID", &format!("{id}-{}", self.sent)]),
                None => connection.push(&[command, &self.quota, "1"]),
            }
        }
        if connection.send().await.is_err() {
            self.connection = None;
        }
    }

    /// The next reply; none if the connection broke before it came.
    async fn receive(&mut self) -> Option<Reply> {
        let reply = self.connection.as_mut()?.receive().await.ok();
        if reply.is_none() {
            self.connection = None;
        }
        reply
    }
}

/// The number of the kind of operation that this is.
pub(super) fn kind(want: Want) -> usize {
    match want {
        Want::Acquire => 0,
        Want::Release => 1,
    }
}
