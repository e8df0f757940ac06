//! One client of a run: a connection, and what is sent over it.
//!
//! ```text
//! due ─▶ as many as the pipeline holds ─▶ sent together ─▶ answered one by one ─▶ due …
//! ```

use super::meter::Meter;
use super::mix::Wants;
use super::trace::Want;
use crate::client::redis::{Connection, Reply};
use crate::driver::{Arrivals, Window};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long after a broken connection another is opened.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);

/// A region's sites, what is wanted there, and what is measured.
pub struct Region {
    pub name: String,
    pub addresses: Vec<String>,
    pub arrivals: Option<Mutex<Arrivals>>,
    pub wants: Mutex<Wants>,
    pub acquire: Mutex<Meter>,
    pub release: Mutex<Meter>,
}

impl Region {
    /// The meter of operations of this kind.
    pub fn meter(&self, want: Want) -> &Mutex<Meter> {
        match want {
            Want::Acquire => &self.acquire,
            Want::Release => &self.release,
        }
    }
}

/// What the clients of a run share.
pub struct Course {
    pub quota: String,
    pub window: Window,
    pub pipeline: usize,
    /// What the ids of operations begin with, if they have any.
    pub ids: Option<String>,
    pub regions: Vec<Region>,
}

impl Course {
    /// The moments from which the next operations of a client count, at most as many as the pipeline holds. Empty when the
    /// run is over.
    async fn next_due(&self, region: &Region) -> Vec<Instant> {
        let window = &self.window;
        let mut due = Vec::with_capacity(self.pipeline);
        if let Some(arrivals) = &region.arrivals {
            let Some(first) = lock(arrivals).next_before(window.deadline()) else { return due };
            window.wait_until(first).await;
            due.push(first);
            let now = Instant::now();
            let mut arrivals = lock(arrivals);
            due.extend(std::iter::from_fn(|| arrivals.next_before(Some(now))).take(self.pipeline - 1));
        } else {
            due.resize(self.pipeline, Instant::now());
        }
        let now = Instant::now();
        due.retain(|_| window.admit(now));
        due
    }
}

/// One connection.
pub struct Client {
    pub course: Arc<Course>,
    pub region: usize,
    pub address: String,
    /// Which client of all.
    pub number: usize,
    pub connection: Option<Connection>,
    /// Operations sent.
    pub sent: u64,
}

impl Client {
    /// Works until the run is over.
    pub async fn work(mut self) {
        let course = Arc::clone(&self.course);
        let region = &course.regions[self.region];
        while let Some(mut connection) = self.connected().await {
            let due = course.next_due(region).await;
            if due.is_empty() {
                return;
            }
            let wants: Vec<Want> = {
                let mut wants = lock(&region.wants);
                due.iter().map(|_| wants.next()).collect()
            };
            let mut answered = 0;
            match self.carry_out(&mut connection, region, &due, &wants, &mut answered).await {
                Ok(()) => self.connection = Some(connection),
                Err(_) => lost(&course.window, region, &due[answered..], &wants[answered..]),
            }
        }
    }

    /// Its connection, opened again as long as the run lasts; none once it is over.
    async fn connected(&mut self) -> Option<Connection> {
        while self.connection.is_none() && !self.course.window.is_over(Instant::now()) {
            match Connection::open(&self.address).await {
                Ok(connection) => self.connection = Some(connection),
                Err(_) => self.course.window.wait_until(Instant::now() + RECONNECT_AFTER).await,
            }
        }
        self.connection.take()
    }

    /// Sends the operations together, and counts their answers as they come.
    async fn carry_out(
        &mut self,
        connection: &mut Connection,
        region: &Region,
        due: &[Instant],
        wants: &[Want],
        answered: &mut usize,
    ) -> io::Result<()> {
        let course = Arc::clone(&self.course);
        for want in wants {
            let command = if *want == Want::Acquire { "ACQUIRE" } else { "RELEASE" };
            self.sent += 1;
            match &course.ids {
                Some(run) => connection.push(&[command, &course.quota, "1", "ID", &format!("{run}-{}-{}", self.number, self.sent)]),
                None => connection.push(&[command, &course.quota, "1"]),
            }
        }
        connection.send().await?;
        for (due, want) in due.iter().zip(wants) {
            let reply = connection.receive().await?;
            let now = Instant::now();
            *answered += 1;
            // What was acquired is held from now on, and so still is what could not be released.
            if matches!((want, &reply), (Want::Acquire, Reply::Integer(_)) | (Want::Release, Reply::Refused(_))) {
                lock(&region.wants).got(1);
            }
            if course.window.measures(*due, now) {
                lock(region.meter(*want)).answer(reply.code(), now.saturating_duration_since(*due));
            }
        }
        Ok(())
    }
}

/// Counts operations that nobody will answer.
fn lost(window: &Window, region: &Region, due: &[Instant], wants: &[Want]) {
    let now = Instant::now();
    let measured = due.iter().zip(wants).filter(|(due, _)| window.measures(**due, now));
    measured.for_each(|(_, want)| lock(region.meter(*want)).unknown += 1);
}

/// What a mutex guards; a client that panicked has left it whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
