//! What client libraries and tools ask before their first operation: which commands there are, how the server is.

use crate::parse::Commands;
use crate::reply::{Protocol, Replies};
use crate::session::{Session, Vitals};
use crate::table::{Argument, COMMANDS, Entry, find};
use std::borrow::Cow;

/// The version of Redis whose wire protocol and connection commands these are. Libraries go by it.
const REDIS_VERSION: &str = "7.0.0";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Answers `HELLO`.
pub fn hello(replies: &mut Replies, session: &Session) {
    replies.map(7);
    replies.bulk("server");
    replies.bulk("rhumb");
    replies.bulk("version");
    replies.bulk(REDIS_VERSION);
    replies.bulk("proto");
    replies.integer(version(replies.protocol));
    replies.bulk("id");
    replies.integer(session.id);
    replies.bulk("mode");
    replies.bulk("standalone");
    replies.bulk("role");
    replies.bulk("master");
    replies.bulk("modules");
    replies.array(0);
}

/// Answers `CLIENT INFO`.
pub fn client(replies: &mut Replies, session: &Session) {
    let Session { id, peer, name, library_name, library_version, .. } = session;
    let resp = version(replies.protocol);
    replies.verbatim(&format!("id={id} addr={peer} name={name} db=0 resp={resp} lib-name={library_name} lib-ver={library_version}\n"));
}

/// Answers `INFO`.
pub fn info(replies: &mut Replies, vitals: &Vitals) {
    let (uptime, connected, maximum) = (vitals.since.elapsed().as_secs(), vitals.connected(), vitals.connections_max);
    let (accepted, refused, commands) = (vitals.accepted(), vitals.refused(), vitals.commands());
    replies.verbatim(&format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nrhumb_version:{VERSION}\r\nredis_mode:standalone\r\nuptime_in_seconds:{uptime}\r\n\r\n\
         # Clients\r\nconnected_clients:{connected}\r\nmaxclients:{maximum}\r\n\r\n\
         # Persistence\r\nloading:0\r\naof_enabled:1\r\n\r\n\
         # Stats\r\ntotal_connections_received:{accepted}\r\nrejected_connections:{refused}\r\ntotal_commands_processed:{commands}\r\n\r\n\
         # Replication\r\nrole:master\r\n"
    ));
}

/// Answers `CONFIG GET`: what is true of every site, by the names that tools ask for.
pub fn config(replies: &mut Replies, vitals: &Vitals, parameters: &[Cow<'_, [u8]>]) {
    let connections_max = vitals.connections_max.to_string();
    let all = [
        ("appendfsync", "always"),
        ("appendonly", "yes"),
        ("databases", "1"),
        ("maxclients", connections_max.as_str()),
        ("save", ""),
        ("timeout", "0"),
    ];
    let wanted = |name: &str| parameters.iter().any(|word| &word[..] == b"*" || word.eq_ignore_ascii_case(name.as_bytes()));
    let found: Vec<_> = all.into_iter().filter(|(name, _)| wanted(name)).collect();
    replies.map(found.len());
    for (name, value) in found {
        replies.bulk(name);
        replies.bulk(value);
    }
}

/// Answers `COMMAND` and what belongs to it.
pub fn commands(replies: &mut Replies, what: &Commands<'_>) {
    match what {
        Commands::All => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|entry| put_entry(replies, entry));
        }
        Commands::Count => replies.integer(COMMANDS.len() as u64),
        Commands::List => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|entry| replies.bulk(entry.name));
        }
        Commands::Info(names) => {
            replies.array(names.len());
            for name in *names {
                match find(name) {
                    Some(entry) => put_entry(replies, entry),
                    None => replies.null(),
                }
            }
        }
        Commands::Docs(names) => {
            let wanted = |entry: &&Entry| names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(entry.name.as_bytes()));
            let found: Vec<_> = COMMANDS.iter().filter(wanted).collect();
            replies.map(found.len());
            for entry in found {
                replies.bulk(entry.name);
                put_docs(replies, entry);
            }
        }
    }
}

/// A command as libraries read it: where its key stands, which arguments it takes.
fn put_entry(replies: &mut Replies, entry: &Entry) {
    replies.array(10);
    replies.bulk(entry.name);
    replies.integer(entry.arity());
    replies.set(entry.flags.len());
    entry.flags.iter().for_each(|flag| replies.simple(flag));
    for _ in ["first key", "last key", "step"] {
        replies.integer(u8::from(entry.has_key()));
    }
    replies.set(0);
    for _ in ["tips", "key specifications", "subcommands"] {
        replies.array(0);
    }
}

/// A command as `redis-cli` shows it to people.
fn put_docs(replies: &mut Replies, entry: &Entry) {
    replies.map(if entry.arguments.is_empty() { 3 } else { 4 });
    replies.bulk("summary");
    replies.bulk(entry.summary);
    replies.bulk("since");
    replies.bulk(VERSION);
    replies.bulk("group");
    replies.bulk(if entry.flags.contains(&"fast") && !entry.has_key() { "connection" } else { "generic" });
    if !entry.arguments.is_empty() {
        replies.bulk("arguments");
        replies.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| put_argument(replies, argument));
    }
}

fn put_argument(replies: &mut Replies, argument: &Argument) {
    replies.map(3 + usize::from(argument.token.is_some()) + usize::from(argument.optional));
    replies.bulk("name");
    replies.bulk(argument.name);
    replies.bulk("type");
    replies.bulk(argument.kind);
    replies.bulk("display_text");
    replies.bulk(argument.name);
    if let Some(token) = argument.token {
        replies.bulk("token");
        replies.bulk(token);
    }
    if argument.optional {
        replies.bulk("flags");
        replies.array(1);
        replies.simple("optional");
    }
}

fn version(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    }
}
