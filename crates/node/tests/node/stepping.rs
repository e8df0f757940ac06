//! Who steps an actor: its clients, in place; its own thread what they leave; and nothing is left lying.

use crate::common::{Request, configure, start, until};
use futures::executor::block_on;
use rhumb_core::{Rng, SiteId};
use rhumb_store::MemoryEngine;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What is not answered by then never will be.
const NEVER: Duration = Duration::from_secs(20);

fn steps(times: usize) -> Request {
    Request::Steps { times, writes: false, made: Arc::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn what_many_ask_at_the_same_moment_is_answered_though_nobody_asks_again() {
    const CLIENTS: usize = 24;
    let (configs, mut ports) = configure(&["a"], None).await;
    let site = start(&configs[0], ports.remove(0), MemoryEngine::new());
    site.status().recovered().await;
    let together = Arc::new(Barrier::new(CLIENTS));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (handle, together) = (site.handle(), Arc::clone(&together));
        clients.spawn(async move {
            for round in 0..5_000 {
                together.wait().await;
                // In every fourth round some wait for the disk, whose thread steps as well.
                let (request, answer) = match (client + round) % 4 {
                    0 if round % 4 == 0 => (Request::Put { key: "k", value: "v" }, "put"),
                    1 => (Request::Tell { to: SiteId::new(0, 0), text: String::new() }, "told"),
                    2 => (Request::Echo { to: SiteId::new(0, 0), text: "echo".into() }, "echo"),
                    _ => (Request::Get { key: "none" }, "nothing"),
                };
                let answered = timeout(NEVER, handle.ask(request)).await;
                assert_eq!(answered, Ok(Ok(answer.into())), "round {round} of client {client}");
            }
        });
    }
    clients.join_all().await;
}

/// Two threads ask at the same moment, or nearly so, and then nobody until both are answered: whatever one of them adds while the other is
/// about to let go of the actor must not be left lying.
async fn none_of_two_is_left_lying(requests: [Request; 2]) {
    const ROUNDS: usize = 30_000;
    const TOGETHER: usize = 2;
    let (configs, mut ports) = configure(&["a"], None).await;
    let site = start(&configs[0], ports.remove(0), MemoryEngine::new());
    site.status().recovered().await;
    let (arrived, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for (client, request) in requests.into_iter().enumerate() {
        let (handle, arrived, answered) = (site.handle(), Arc::clone(&arrived), Arc::clone(&answered));
        std::thread::spawn(move || {
            let mut rng = Rng::seeded(client as u64);
            for round in 1..=ROUNDS {
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < TOGETHER * round {
                    std::thread::yield_now();
                }
                (0..rng.below(300)).for_each(|_| std::hint::spin_loop());
                block_on(handle.ask(request.clone())).expect("it is not rejected");
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let mut before = (0, Instant::now());
    until("all are answered", async || {
        let now = answered.load(Ordering::SeqCst);
        if now > before.0 {
            before = (now, Instant::now());
        }
        assert!(before.1.elapsed() < NEVER, "after {now} answers one was left lying");
        now == TOGETHER * ROUNDS
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_added_while_somebody_lets_go_of_the_actor_is_not_left_lying() {
    none_of_two_is_left_lying([Request::Heard, Request::Heard]).await;
    // The last steps of a round of this many are left to the actor's own thread.
    none_of_two_is_left_lying([steps(66), Request::Heard]).await;
}

/// Has a client ask for so many steps until the threads that made them are these, `own` for the client's. The threads of the store may be at
/// it still when a site has just begun.
async fn are_made_by(times: usize, expected: &str) {
    let (configs, mut ports) = configure(&["a"], None).await;
    let site = start(&configs[0], ports.remove(0), MemoryEngine::new());
    site.status().recovered().await;
    until(&format!("{times} steps are made by {expected}"), async || {
        let handle = site.handle();
        let client = tokio::spawn(async move {
            let own = std::thread::current().name().unwrap_or_default().to_owned();
            let threads = handle.ask(steps(times)).await.expect("it is not rejected");
            threads.replace(&own, "own")
        });
        client.await.expect("no panic") == expected
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_steps_the_actor_itself() {
    are_made_by(10, "own").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_would_hold_a_client_up_is_left_to_the_actors_own_thread() {
    are_made_by(5_000, "own commit-actor").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_a_client_has_set_is_served_also_if_the_actors_thread_sleeps_for_longer() {
    let (configs, mut ports) = configure(&["a"], None).await;
    let site = start(&configs[0], ports.remove(0), MemoryEngine::new());
    site.status().recovered().await;
    let (late, soon) = (site.handle(), site.handle());
    // The thread sleeps without an end, then until the end of the first, which is never reached.
    let late = tokio::spawn(async move { late.ask(Request::Later { ms: 3_600_000 }).await });
    until("the first is asked", async || site.status().metrics().contains("rhumb_requests_waiting{service=\"commit\"} 1\n")).await;
    for _ in 0..20 {
        assert_eq!(timeout(NEVER, soon.ask(Request::Later { ms: 2 })).await, Ok(Ok("later".into())));
    }
    assert!(!late.is_finished());
    late.abort();
}

/// What ends that which [`Request::Later`] begins.
fn undone(answer: &String) -> Option<Request> {
    (answer == "later").then(|| Request::Tell { to: SiteId::new(0, 0), text: "undone".into() })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_for_somebody_who_has_gone_is_ended() {
    let (configs, mut ports) = configure(&["a"], None).await;
    let site = start(&configs[0], ports.remove(0), MemoryEngine::new());
    site.status().recovered().await;
    let handle = site.handle();
    let heard = async || handle.ask(Request::Heard).await.expect("answered");
    assert_eq!(handle.begin(Request::Later { ms: 1 }, undone).await, Ok("later".into()));
    assert_eq!(heard().await, "", "its answer was heard");
    let gone = timeout(Duration::from_millis(1), handle.begin(Request::Later { ms: 50 }, undone)).await;
    assert!(gone.is_err(), "it takes longer");
    until("it is ended", async || heard().await == "undone").await;
}
