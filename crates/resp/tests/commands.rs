//! Every command and the exact bytes of its reply, in RESP2 and RESP3.

mod support;

use rhumb_core::SiteId;
use rhumb_resp::ServerOptions;
use std::collections::BTreeMap;
use support::Server;

#[tokio::test]
async fn tokens_are_acquired_and_released() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.check("ACQUIRE vm 3", ":7\r\n").await;
    client.check("acquire vm 2 id order-7", ":5\r\n").await;
    client.check("Release vm 4 ID \u{fc}", ":9\r\n").await;
    client.check("ACQUIRE vm 10", "-EXCEEDED the limit of quota vm does not allow 10 more\r\n").await;
    client.check("RELEASE vm 2", "-NOTHELD fewer than 2 tokens of quota vm are acquired, so as many cannot be released\r\n").await;
    client.check("ACQUIRE disk 1", "-NOQUOTA there is no quota disk; create it first\r\n").await;
    let asked = ["Acquire vm 3", "Acquire vm 2 order-7", "Release vm 4 \\xc3\\xbc", "Acquire vm 10", "Release vm 2", "Acquire disk 1"];
    assert_eq!(server.book.asked(), asked);
}

#[tokio::test]
async fn what_cannot_be_an_operation_reaches_no_quota() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for amount in ["0", "-1", "+1", "1.5", "9007199254740992", "18446744073709551617", "many"] {
        let expected = format!("-INVALID an amount of `{amount}` tokens; allowed are whole numbers from 1 to 9007199254740991\r\n");
        client.check(&format!("ACQUIRE vm {amount}"), &expected).await;
        client.check(&format!("RELEASE vm {amount}"), &expected).await;
    }
    client.send(b"*3\r\n$7\r\nACQUIRE\r\n$0\r\n\r\n$1\r\n1\r\n").await;
    client.expect("-INVALID the name of a quota is empty; give it 1 to 200 bytes\r\n", "an empty name").await;
    let long = format!("ACQUIRE {} 1", "x".repeat(10_000));
    client.check(&long, "-INVALID the name of a quota has 10000 bytes; at most 200 are allowed\r\n").await;
    client.send(b"*3\r\n$7\r\nACQUIRE\r\n$1\r\n\xff\r\n$1\r\n1\r\n").await;
    client.expect("-INVALID the name of a quota is not UTF-8\r\n", "bytes that are no text").await;
    client.send(b"*3\r\n$7\r\nACQUIRE\r\n$3\r\nv\0m\r\n$1\r\n1\r\n").await;
    client.expect("-INVALID the name of a quota holds white space or control characters; neither is allowed\r\n", "a NUL").await;
    let id = format!("ACQUIRE vm 1 ID {}", "x".repeat(129));
    client.check(&id, "-INVALID a request id of 129 bytes; give it 1 to 128, or leave it out\r\n").await;
    let count = |name: &str, usage: &str| format!("-ERR wrong number of arguments for '{name}' command; it is {usage}\r\n");
    client.check("ACQUIRE vm", &count("acquire", "ACQUIRE name n [ID id]")).await;
    client.check("RELEASE vm 1 ID a b", &count("release", "RELEASE name n [ID id]")).await;
    client.check("ACQUIRE vm 1 ID", "-ERR syntax error at 'ID'; it is ACQUIRE name n [ID id]\r\n").await;
    client.check("ACQUIRE vm 1 XX a", "-ERR syntax error at 'XX'; it is ACQUIRE name n [ID id]\r\n").await;
    assert_eq!(server.book.asked(), [""; 0]);
    client.check("ACQUIRE vm 1", ":9\r\n").await;
}

#[tokio::test]
async fn quotas_are_made_changed_and_dropped() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.check("QUOTA.CREATE org 0", "+OK\r\n").await;
    let all = "quota.create team 5 parent org protocol ANY offer All reallocation proportional";
    client.check(all, "+OK\r\n").await;
    client.check("QUOTA.CREATE org 9", "-EXISTS there is a quota org already\r\n").await;
    client.check("QUOTA.LIMIT org 7", "+OK\r\n").await;
    client.check("QUOTA.LIMIT disk 7", "-NOQUOTA there is no quota disk; create it first\r\n").await;
    client.check("QUOTA.DROP team", "+OK\r\n").await;
    client.check("QUOTA.DROP team", "-NOQUOTA there is no quota team; create it first\r\n").await;
    let asked = server.book.asked();
    let spec = "Spec { limit: 5, parent: Some(Name(\"org\")), protocol: Any, offer: All, reallocation: Proportional }";
    assert_eq!(asked[1], format!("create team {spec}"));
    assert_eq!(asked.len(), 7);

    let limit = "tokens; allowed are whole numbers from 0 to 9007199254740991";
    client.check("QUOTA.CREATE a -1", &format!("-INVALID a limit of `-1` {limit}\r\n")).await;
    client.check("QUOTA.LIMIT vm 9007199254740992", &format!("-INVALID a limit of `9007199254740992` {limit}\r\n")).await;
    client.check("QUOTA.CREATE a 1 PROTOCOL most", "-INVALID no protocol `most`; there are majority, any\r\n").await;
    client.check("QUOTA.GET vm near", "-INVALID no read `near`; there are local, global, exact\r\n").await;
    let usage = "QUOTA.CREATE name limit [PARENT name] [PROTOCOL majority|any] [OFFER all|spare] \
                 [REALLOCATION maximum-usage|most-satisfied|proportional]";
    for (wrong, at) in [("PARENT", "PARENT"), ("COLOUR red", "COLOUR"), ("OFFER all OFFER all", "OFFER")] {
        client.check(&format!("QUOTA.CREATE a 1 {wrong}"), &format!("-ERR syntax error at '{at}'; it is {usage}\r\n")).await;
    }
    assert_eq!(server.book.asked(), [""; 0]);
}

/// `vm` with three tokens held, as RESP2 and RESP3 write it: the two kinds of map header, and null.
fn vm(map: [&str; 2], null: &str, read: &str, missing: &str) -> String {
    format!(
        "{}$4\r\nname\r\n$2\r\nvm\r\n$5\r\nlimit\r\n:10\r\n$4\r\nleft\r\n:7\r\n$4\r\nheld\r\n:3\r\n$7\r\noffered\r\n:0\r\n$4\r\nowed\r\n:0\r\n\
         $6\r\nparent\r\n{null}$8\r\nprotocol\r\n$8\r\nmajority\r\n$5\r\noffer\r\n$5\r\nspare\r\n$12\r\nreallocation\r\n$13\r\nmaximum-usage\r\n\
         $4\r\nread\r\n{read}$5\r\nsites\r\n*1\r\n{}$4\r\nsite\r\n$4\r\nr0.0\r\n$4\r\nleft\r\n:7\r\n$4\r\nheld\r\n:3\r\n$7\r\noffered\r\n:0\r\n\
         $4\r\nowed\r\n:0\r\n$7\r\nmissing\r\n{missing}",
        map[0], map[1]
    )
}

#[tokio::test]
async fn a_quota_is_a_map() {
    let site_names = BTreeMap::from([(SiteId::new(1, 0), "oregon/0".to_owned())]);
    let server = Server::with(ServerOptions { site_names, ..ServerOptions::default() }).await;
    let mut client = server.connect().await;
    client.check("QUOTA.DROP slow", "+OK\r\n").await;
    client.check("ACQUIRE vm 3", ":7\r\n").await;
    let (local, exact) = ("$5\r\nlocal\r\n", "$5\r\nexact\r\n");
    client.check("QUOTA.GET vm", &vm(["*26\r\n", "*10\r\n"], "$-1\r\n", local, "*0\r\n")).await;
    client.check("QUOTA.GET vm exact", &vm(["*26\r\n", "*10\r\n"], "$-1\r\n", exact, "*0\r\n")).await;
    client.check("QUOTA.GET vm GLOBAL", &vm(["*26\r\n", "*10\r\n"], "$-1\r\n", "$6\r\nglobal\r\n", "*1\r\n$8\r\noregon/0\r\n")).await;
    client.check("QUOTA.LIST", &format!("*1\r\n{}", vm(["*26\r\n", "*10\r\n"], "$-1\r\n", local, "*0\r\n"))).await;
    client.check("QUOTA.GET disk", "-NOQUOTA there is no quota disk; create it first\r\n").await;
    client.check("HELLO 3", &hello(3, 1)).await;
    client.check("QUOTA.GET vm", &vm(["%13\r\n", "%5\r\n"], "_\r\n", local, "*0\r\n")).await;
    client.check("QUOTA.LIST", &format!("*1\r\n{}", vm(["%13\r\n", "%5\r\n"], "_\r\n", local, "*0\r\n"))).await;
}

fn hello(protocol: u8, id: u64) -> String {
    format!(
        "{}$6\r\nserver\r\n$5\r\nrhumb\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:{protocol}\r\n$2\r\nid\r\n:{id}\r\n\
         $4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        if protocol == 3 { "%7\r\n" } else { "*14\r\n" }
    )
}

#[tokio::test]
async fn a_client_chooses_its_protocol() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.check("HELLO", &hello(2, 1)).await;
    client.check("HELLO 3 SETNAME me", &hello(3, 1)).await;
    client.check("HELLO", &hello(3, 1)).await;
    client.check("CLIENT GETNAME", "$2\r\nme\r\n").await;
    client.check("HELLO 4", "-NOPROTO unsupported protocol version; there are 2 and 3\r\n").await;
    let users = "-ERR there are no users here and no password is needed; leave AUTH out\r\n";
    client.check("HELLO 2 AUTH default secret", users).await;
    client.check("AUTH secret", users).await;
    client.check("AUTH default secret", users).await;
    client.check("HELLO 2 COLOUR red", "-ERR syntax error at 'COLOUR'; it is HELLO [2|3] [SETNAME name]\r\n").await;
    client.check("RESET", "+RESET\r\n").await;
    client.check("CLIENT GETNAME", "$-1\r\n").await;
    client.check("HELLO 2", &hello(2, 1)).await;
}

#[tokio::test]
async fn a_connection_is_looked_after() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.check("PING", "+PONG\r\n").await;
    client.check("ping hello", "$5\r\nhello\r\n").await;
    client.check("ECHO hello", "$5\r\nhello\r\n").await;
    client.check("SELECT 0", "+OK\r\n").await;
    client.check("SELECT 1", "-ERR DB index is out of range; there is only database 0\r\n").await;
    client.check("CLIENT ID", ":1\r\n").await;
    client.check("CLIENT SETNAME worker", "+OK\r\n").await;
    client.check("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n").await;
    client.check("CLIENT SETINFO lib-ver 5.0", "+OK\r\n").await;
    client.check("CLIENT NO-EVICT on", "+OK\r\n").await;
    client.check("CLIENT NO-TOUCH off", "+OK\r\n").await;
    let address = client.0.local_addr().expect("connected");
    let info = format!("id=1 addr={address} name=worker db=0 resp=2 lib-name=redis-py lib-ver=5.0\n");
    client.check("CLIENT INFO", &format!("${}\r\n{info}\r\n", info.len())).await;
    let name = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    client.check("CLIENT SETNAME gr\u{f6}\u{df}e", name).await;
    let usage = "CLIENT ID|INFO|GETNAME|SETNAME|SETINFO|NO-EVICT|NO-TOUCH [value]";
    client.check("CLIENT KILL 1", &format!("-ERR unknown subcommand 'KILL'; it is {usage}\r\n")).await;
    client.check("CLIENT SETNAME", &format!("-ERR wrong number of arguments for 'client' command; it is {usage}\r\n")).await;
    client.check("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n").await;
    client.check("CONFIG GET appendonly nothing", "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n").await;
    client.check("CONFIG SET save x", "-ERR unknown subcommand 'SET'; it is CONFIG GET parameter\r\n").await;
    client.send(&support::command("QUIT")).await;
    assert_eq!(client.rest().await, "+OK\r\n");
}

#[tokio::test]
async fn the_commands_are_described() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.check("COMMAND COUNT", ":18\r\n").await;
    let acquire =
        |set: char| format!("*10\r\n$7\r\nacquire\r\n:-3\r\n{set}2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n{set}0\r\n*0\r\n*0\r\n*0\r\n");
    client.check("COMMAND INFO acquire nothing", &format!("*2\r\n{}$-1\r\n", acquire('*'))).await;
    let list = "$10\r\nquota.list\r\n";
    let version = env!("CARGO_PKG_VERSION");
    let docs = format!(
        "$7\r\nsummary\r\n$46\r\nLists all quotas with the tokens of this site.\r\n$5\r\nsince\r\n${}\r\n{version}\r\n$5\r\ngroup\r\n$7\r\ngeneric\r\n",
        version.len()
    );
    client.check("COMMAND DOCS QUOTA.LIST nothing", &format!("*2\r\n{list}*6\r\n{docs}")).await;
    client.send(&support::command("HELLO 3")).await;
    client.expect(&hello(3, 1), "").await;
    client.check("COMMAND INFO ACQUIRE", &format!("*1\r\n{}", acquire('~'))).await;
    client.check("COMMAND DOCS quota.list", &format!("%1\r\n{list}%3\r\n{docs}")).await;
    client
        .check("COMMAND LIST x", "-ERR wrong number of arguments for 'command' command; it is COMMAND [COUNT|LIST|INFO|DOCS] [command]\r\n")
        .await;
    let whole = server.replies(b"COMMAND\r\n").await;
    assert!(whole.starts_with("*18\r\n*10\r\n$7\r\nacquire\r\n"), "{whole}");
    let info = server.replies(b"INFO\r\n").await;
    for line in ["redis_version:7.0.0", "redis_mode:standalone", "connected_clients:2", "maxclients:1000", "loading:0", "role:master"] {
        assert!(info.contains(&format!("{line}\r\n")), "{line}: {info}");
    }
}

#[tokio::test]
async fn an_unknown_command_is_told_what_there_is() {
    let server = Server::start().await;
    let all = "there are ACQUIRE, RELEASE, QUOTA.CREATE, QUOTA.GET, QUOTA.LIMIT, QUOTA.LIST, QUOTA.DROP, PING, ECHO, HELLO, AUTH, SELECT, \
               COMMAND, CLIENT, INFO, CONFIG, RESET, QUIT";
    let mut client = server.connect().await;
    client.check("INCRBY vm 1", &format!("-ERR unknown command 'INCRBY', with args beginning with: 'vm' '1'; {all}\r\n")).await;
    client.check("PING", "+PONG\r\n").await;
    client.check("EXEC", &format!("-ERR unknown command 'EXEC', with args beginning with: ; {all}\r\n")).await;
}

#[tokio::test]
async fn a_transaction_is_refused_as_a_whole() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let begin = "-ERR there are no transactions: every operation stands for itself, so send a pipeline without one\r\n";
    let inside = "-ERR not carried out: it is part of a transaction, and there are none\r\n";
    for end in ["EXEC", "discard"] {
        client.check("MULTI", begin).await;
        client.check("ACQUIRE vm 1", inside).await;
        client.check("QUOTA.LIMIT vm 1", inside).await;
        client.check("NOTHING", inside).await;
        client.check(end, "-EXECABORT Transaction discarded because of previous errors.\r\n").await;
    }
    assert_eq!(server.book.asked(), [""; 0]);
    client.check("ACQUIRE vm 1", ":9\r\n").await;
    client.check("MULTI", begin).await;
    client.check("RESET", "+RESET\r\n").await;
    client.check("ACQUIRE vm 1", ":8\r\n").await;
}
