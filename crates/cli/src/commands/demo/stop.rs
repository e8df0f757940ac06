//! When the user wants the demo to stop: Ctrl-C, SIGTERM, or a terminal that is closed.

use super::error::DemoError;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the demo to stop.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Stop {
    /// Listens for them from now on.
    pub fn listen() -> Result<Stop, DemoError> {
        let listen = |kind| signal(kind).map_err(|reason| DemoError::System { doing: "cannot listen for signals", reason });
        Ok(Stop {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next of them.
    pub async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
