//! For how long the other end of a connection is who it has shown to be: until its certificate ends, or is no longer believed.
//!
//! New authorities are looked at as soon as their file is read, so that who is left out by `rhumb cert retire` is so everywhere, and not only where he has
//! to connect anew.

use super::Tls;
use crate::certificate::Certificate;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Clocks are set meanwhile: so often it is looked how much time is left.
const LOOK_EVERY: Duration = Duration::from_hours(1);

/// How long that is for one connection.
pub struct Lease(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Lease {
    /// That of an end that has shown no certificate, or to somebody who connects for a moment.
    pub fn unlimited() -> Lease {
        Lease(Some(Box::pin(pending())))
    }

    /// That of who has shown `chain`. `changes` tells of authorities since before that was believed.
    pub fn new(tls: Arc<Tls>, mut changes: watch::Receiver<()>, chain: Vec<CertificateDer<'static>>) -> Lease {
        Lease(Some(Box::pin(async move {
            loop {
                let Some(left) = left(&chain) else { return };
                tokio::select! {
                    () = tokio::time::sleep(left.min(LOOK_EVERY)) => {}
                    changed = changes.changed() => if changed.is_err() || !tls.believes(&chain) { return },
                }
            }
        })))
    }

    /// True once it has ended. The task is woken when it does.
    pub fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(lease) = &mut self.0
            && let Poll::Ready(()) = lease.as_mut().poll(context)
        {
            self.0 = None;
        }
        self.0.is_none()
    }
}

fn left(chain: &[CertificateDer<'_>]) -> Option<Duration> {
    let left = Certificate::read(chain.first()?).ok()?.until.duration_since(SystemTime::now()).ok()?;
    (left > Duration::ZERO).then_some(left)
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}
