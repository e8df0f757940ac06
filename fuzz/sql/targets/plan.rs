//! SQL text to plans over two tables: nothing of ours panics. A panic of the query engine is an error of the statement in
//! the product, and so here.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_sql::fuzzing::{Session, plan, run, session};
use rhumb_sqltestkit::{LocalGateway, LocalQuotas};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

const TABLES: &str = "create table t (a int primary key, b text not null default 'x', c numeric(9, 2), d timestamptz, e bool);
    create index on t (b, c); create table u (k text, v double precision, primary key (k, v))";

thread_local! {
    static FIXTURE: RefCell<(Runtime, Session)> = RefCell::new({
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let session = runtime.block_on(async {
            let (gateways, quotas) = (Arc::new(LocalGateway::new()).into(), Arc::new(LocalQuotas::new()));
            let mut session = session(gateways, quotas).await?;
            run(&mut session, TABLES).await.map(|()| session)
        });
        (runtime, session.expect("a session"))
    });
}

fuzz_target!(
    init: {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_none_or(|location| location.file().contains("crates/sql/")) {
                abort(panic);
            }
        }));
    },
    |text: &str| {
        FIXTURE.with_borrow_mut(|(runtime, session)| {
            let _ = runtime.block_on(plan(session, text));
        });
    }
);
