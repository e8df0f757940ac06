//! Carries out what is not an operation, and writes the reply.

use crate::introspect;
use crate::parse::{ClientCommand, Command, QuotaCommand};
use crate::quota_reply::put_quota;
use crate::reply::{Protocol, Replies};
use crate::session::{Session, Vitals};
use rhumb_quota::gateway::Quotas;
use rhumb_quota::refusal::Refusal;

/// What concerns the quotas.
pub async fn answer_quota(quotas: &dyn Quotas, command: QuotaCommand, vitals: &Vitals, replies: &mut Replies) {
    let result = match command {
        QuotaCommand::Create { name, spec } => quotas.create(name, spec).await.map(|()| replies.simple("OK")),
        QuotaCommand::SetLimit { name, limit } => quotas.set_limit(name, limit).await.map(|()| replies.simple("OK")),
        QuotaCommand::Drop { name } => quotas.drop(name).await.map(|()| replies.simple("OK")),
        QuotaCommand::Get { name, read } => quotas.get(name, read).await.map(|info| put_quota(replies, &info, vitals)),
        QuotaCommand::List => quotas.list().await.map(|all| {
            replies.array(all.len());
            all.iter().for_each(|info| put_quota(replies, info, vitals));
        }),
    };
    result.unwrap_or_else(|refusal: Refusal| replies.refusal(&refusal));
}

/// What concerns the connection or the server.
pub fn answer(command: Command<'_>, session: &mut Session, vitals: &Vitals, replies: &mut Replies) {
    match command {
        Command::Ping(None) => replies.simple("PONG"),
        Command::Ping(Some(message)) | Command::Echo(message) => replies.bulk(message),
        Command::Hello { protocol, name } => {
            replies.protocol = protocol.unwrap_or(replies.protocol);
            session.name = name.unwrap_or_else(|| std::mem::take(&mut session.name));
            introspect::hello(replies, session);
        }
        Command::Select => replies.simple("OK"),
        Command::Commands(what) => introspect::commands(replies, &what),
        Command::Client(command) => answer_client(command, session, replies),
        Command::Info => introspect::info(replies, vitals),
        Command::Config(parameters) => introspect::config(replies, vitals, parameters),
        Command::Reset => {
            replies.protocol = Protocol::default();
            session.name.clear();
            session.in_transaction = false;
            replies.simple("RESET");
        }
        Command::Operation(_) | Command::Quota(_) | Command::Quit => unreachable!("the connection takes care of these"),
    }
}

fn answer_client(command: ClientCommand, session: &mut Session, replies: &mut Replies) {
    match command {
        ClientCommand::Id => return replies.integer(session.id),
        ClientCommand::Info => return introspect::client(replies, session),
        ClientCommand::GetName if session.name.is_empty() => return replies.null(),
        ClientCommand::GetName => return replies.bulk(&session.name),
        ClientCommand::SetName(name) => session.name = name,
        ClientCommand::SetLibraryName(name) => session.library_name = name,
        ClientCommand::SetLibraryVersion(version) => session.library_version = version,
        ClientCommand::Ignored => {}
    }
    replies.simple("OK");
}
