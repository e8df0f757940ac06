//! Sites of five regions are killed under TPC-C, as `kill -9` does: one, another, two at once, three at once.
//!
//! ```text
//!            TPC-C, closed loop, in every region ───────────────────────────────────────────────▶ its conditions hold
//!            a probe in every region ────────────────────────────────────────────────────────────▶
//!   demo ──▶ kill one ──▶ restart ──▶ kill another ──▶ restart ──▶ kill two ──▶ restart ──▶ kill three ──▶ restart
//!              │ commits go on       │ everything acknowledged is     …           …            │ writes fail, clearly
//!              │ in the other four   │ there, all replicas agree                               │ and soon; stale reads serve
//! ```
//!
//! How long the survivors pause is printed (`--nocapture` shows it); what is asserted is only that nobody waited for an
//! election or for a lease to expire, since a busy machine makes anything finer fail now and then. Which sites die is
//! fixed; `RHUMB_FAULTS_TURN=1` to `4` gives the fates to the next regions in turn.

mod cluster;
mod majority;
mod minority;
mod probe;
mod replicas;

use crate::load;
use cluster::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn sites_die_under_tpcc_and_nothing_acknowledged_is_lost() {
    let cluster = Cluster::start().await;
    let load = load::start(cluster.endpoints());
    minority::dies(&cluster, &load, &[0]).await;
    minority::dies(&cluster, &load, &[3]).await;
    minority::dies(&cluster, &load, &[1, 4]).await;
    majority::dies(&cluster, &[0, 2, 4]).await;
    println!("\n{}", load.stop());
    load::check(cluster.endpoints()).await;
}
