//! The end of the server, as its connections wait for it.

use tokio::sync::watch;

/// Tells a connection that the server is to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(pub(crate) watch::Receiver<bool>);

impl Stop {
    /// Waits until then.
    pub(crate) async fn requested(&mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            // The server has gone, and this connection goes with it.
            std::future::pending().await
        }
    }
}
