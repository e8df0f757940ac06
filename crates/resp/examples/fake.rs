//! Serves one quota that is only counted in memory, to measure this crate without anything below it:
//! `cargo run --release --example fake -- ADDRESS [one]`, then `redis-benchmark -p PORT ACQUIRE vm 1`. With `one`, on
//! one thread.

use async_trait::async_trait;
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::{Info, Read};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{AMOUNT_MAX, Action, Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use rhumb_resp::{ServerOptions, serve};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

struct Counter(AtomicU64);

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = arguments.first().map_or("127.0.0.1:7400", String::as_str);
    let one = arguments.get(1).is_some_and(|word| word == "one");
    let mut builder = if one { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        serve(listener, Arc::new(Counter(AtomicU64::new(AMOUNT_MAX))), ServerOptions::default()).await
    })
}

#[async_trait]
impl Quotas for Counter {
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
        let run = |operation: Operation| match operation.action {
            Action::Acquire => Ok(Done { left: self.0.fetch_sub(operation.amount, Ordering::Relaxed) - operation.amount }),
            Action::Release => Ok(Done { left: self.0.fetch_add(operation.amount, Ordering::Relaxed) + operation.amount }),
        };
        operations.into_iter().map(run).collect()
    }

    async fn create(&self, name: Name, _: Spec) -> Result<(), Refusal> {
        Err(Refusal::Exists(name))
    }

    async fn set_limit(&self, name: Name, _: u64) -> Result<(), Refusal> {
        Err(Refusal::Unknown(name))
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        Err(Refusal::Unknown(name))
    }

    async fn get(&self, name: Name, _: Read) -> Result<Info, Refusal> {
        Err(Refusal::Unknown(name))
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        Ok(Vec::new())
    }
}
