//! However a stream of bytes is cut into packets, the replies are the same, to the byte.

mod support;

use proptest::prelude::*;
use support::{Server, command};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;

/// Commands of every kind: answered by quotas, by the connection, refused, inline, empty.
fn a_command() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (prop::sample::select(vec!["ACQUIRE", "RELEASE"]), prop::sample::select(vec!["vm", "disk"]), 0..6_u64)
            .prop_map(|(verb, name, amount)| command(&format!("{verb} {name} {amount}"))),
        1 => Just(command("QUOTA.GET vm")),
        1 => Just(command("QUOTA.LIMIT vm 12")),
        1 => Just(command("NOTHING at all")),
        1 => prop::sample::select(vec![2, 3]).prop_map(|version| command(&format!("HELLO {version}"))),
        1 => Just(b"ACQUIRE 'vm' \"\\x31\"\r\n".to_vec()),
        1 => Just(b"\r\n*0\r\n".to_vec()),
        1 => any::<u16>().prop_map(|size| command(&format!("ECHO {}", "x".repeat(usize::from(size) / 8 + 1)))),
    ]
}

/// The replies to `bytes`, sent in pieces that end at `cuts`. It is the first client of its server.
async fn replies(bytes: &[u8], cuts: &[usize]) -> (String, Vec<String>) {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.0.set_nodelay(true).expect("connected");
    let mut at = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        client.send(&bytes[at..cut]).await;
        client.0.flush().await.expect("connected");
        // Lets the server read this piece before the next one comes, mostly.
        tokio::task::yield_now().await;
        at = cut;
    }
    client.0.shutdown().await.expect("connected");
    let asked =
        |server: &Server| server.book.asked().iter().flat_map(|call| call.split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    (client.rest().await, asked(&server))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replies_do_not_depend_on_packets(
        commands in prop::collection::vec(a_command(), 1..30),
        broken in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut bytes = commands.concat();
        if broken {
            bytes.extend_from_slice(b"*1\r\n*\r\n");
        }
        let mut cuts: Vec<usize> = places.iter().map(|place| place.index(bytes.len())).collect();
        cuts.sort_unstable();
        let runtime = Runtime::new().expect("threads");
        let whole = runtime.block_on(replies(&bytes, &[]));
        prop_assert_eq!(runtime.block_on(replies(&bytes, &cuts)), whole);
    }
}
