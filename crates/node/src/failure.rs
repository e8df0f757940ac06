//! What ends a site for good: its disk fails, or a thread of it panics. The first reason stands.

use tokio::sync::watch;

/// Where a fatal reason is reported to and waited for. Clones share it.
#[derive(Clone, Debug)]
pub struct Failure {
    reason: watch::Sender<Option<String>>,
}

impl Default for Failure {
    fn default() -> Failure {
        Failure { reason: watch::Sender::new(None) }
    }
}

impl Failure {
    /// Reports that the site cannot go on.
    pub fn report(&self, reason: impl Into<String>) {
        self.reason.send_if_modified(|known| {
            let first = known.is_none();
            if first {
                *known = Some(reason.into());
            }
            first
        });
    }

    /// The reason, if there is one.
    pub fn reason(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// Waits for a reason.
    pub async fn wait(&self) -> String {
        let mut reason = self.reason.subscribe();
        match reason.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => unreachable!("this failure holds the sender"),
        }
    }

    /// Reports that `what` has panicked.
    pub fn report_panic(&self, what: &str) {
        self.report(format!("{what} panicked: an error in Rhumb, please report it with the log"));
    }

    /// Reports `what` if the thread that drops the guard panics.
    pub fn guard(&self, what: &'static str) -> PanicGuard {
        PanicGuard { failure: self.clone(), what }
    }
}

/// Reports a panic.
pub struct PanicGuard {
    failure: Failure,
    what: &'static str,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failure.report_panic(self.what);
        }
    }
}
