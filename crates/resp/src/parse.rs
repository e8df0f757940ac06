//! Arguments into a command that can be carried out.

use crate::error::{CommandError, shown};
use crate::reply::Protocol;
use crate::table::{Entry, Verb, find};
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::{AMOUNT_MAX, Operation, RequestKey, parse_amount};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use std::borrow::Cow;
use std::str::FromStr;

/// The longest name of a client or its library, in bytes.
const CLIENT_TEXT_BYTES_MAX: usize = 128;

/// A command that can be carried out. Operations are gathered; anything else waits until those are answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Acquire or release.
    Operation(Operation),
    /// What the quotas are to do besides.
    Quota(QuotaCommand),
    /// Say `PONG`, or this.
    Ping(Option<&'a [u8]>),
    /// Say this.
    Echo(&'a [u8]),
    /// Choose a protocol, and say who serves.
    Hello { protocol: Option<Protocol>, name: Option<String> },
    /// Choose the only database.
    Select,
    /// Say which commands there are.
    Commands(Commands<'a>),
    /// Of this connection.
    Client(ClientCommand),
    /// Say how the server is.
    Info,
    /// Say how the server is set up, as far as these parameters tell.
    Config(&'a [Cow<'a, [u8]>]),
    /// Forget what the connection chose.
    Reset,
    /// Close the connection.
    Quit,
}

/// What is asked of quotas, other than operations.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum QuotaCommand {
    Create { name: Name, spec: Spec },
    Get { name: Name, read: Read },
    SetLimit { name: Name, limit: u64 },
    List,
    Drop { name: Name },
}

/// What may be asked of the table of commands.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Commands<'a> {
    All,
    Count,
    List,
    Info(&'a [Cow<'a, [u8]>]),
    Docs(&'a [Cow<'a, [u8]>]),
}

/// What may be asked of a connection.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ClientCommand {
    Id,
    Info,
    GetName,
    SetName(String),
    SetLibraryName(String),
    SetLibraryVersion(String),
    /// It has no effect here, so it is granted.
    Ignored,
}

/// The names of quotas that a connection used. It is mostly the same again, which is then not made anew.
#[derive(Debug, Default)]
pub struct Names {
    last: Option<Name>,
}

impl Names {
    fn get(&mut self, bytes: &[u8]) -> Result<Name, Refusal> {
        if let Some(last) = &self.last
            && last.as_str().as_bytes() == bytes
        {
            return Ok(last.clone());
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Invalid("the name of a quota is not UTF-8".to_owned()))?;
        let name = Name::new(text)?;
        self.last = Some(name.clone());
        Ok(name)
    }
}

/// The command that `arguments` spell; there is at least its name.
pub fn parse<'a>(arguments: &'a [Cow<'a, [u8]>], names: &mut Names) -> Result<Command<'a>, CommandError> {
    let (name, rest) = arguments.split_first().expect("an empty frame is passed over");
    let entry = find(name).ok_or_else(|| CommandError::unknown(arguments))?;
    if !entry.count.contains(&rest.len()) {
        return Err(CommandError::Count(entry));
    }
    Ok(match entry.verb {
        Verb::Acquire | Verb::Release => Command::Operation(operation(entry, rest, names)?),
        Verb::QuotaCreate => Command::Quota(create(entry, rest, names)?),
        Verb::QuotaGet => {
            let read = rest.get(1).map_or(Ok(Read::default()), |word| choice(word))?;
            Command::Quota(QuotaCommand::Get { name: names.get(&rest[0])?, read })
        }
        Verb::QuotaLimit => Command::Quota(QuotaCommand::SetLimit { name: names.get(&rest[0])?, limit: limit(&rest[1])? }),
        Verb::QuotaList => Command::Quota(QuotaCommand::List),
        Verb::QuotaDrop => Command::Quota(QuotaCommand::Drop { name: names.get(&rest[0])? }),
        Verb::Ping => Command::Ping(rest.first().map(|message| &message[..])),
        Verb::Echo => Command::Echo(&rest[0]),
        Verb::Hello => hello(entry, rest)?,
        Verb::Auth => return Err(CommandError::Users),
        Verb::Select if &rest[0][..] == b"0" => Command::Select,
        Verb::Select => return Err(CommandError::Database),
        Verb::Command => Command::Commands(commands(entry, rest)?),
        Verb::Client => Command::Client(client(entry, rest)?),
        Verb::Info => Command::Info,
        Verb::Config if !is(&rest[0], "get") => return Err(CommandError::Subcommand { entry, at: shown(&rest[0]) }),
        Verb::Config if rest.len() < 2 => return Err(CommandError::Count(entry)),
        Verb::Config => Command::Config(&rest[1..]),
        Verb::Reset => Command::Reset,
        Verb::Quit => Command::Quit,
    })
}

fn operation(entry: &'static Entry, rest: &[Cow<'_, [u8]>], names: &mut Names) -> Result<Operation, CommandError> {
    let id = match &rest[2..] {
        [] => None,
        [word, id] if is(word, "id") => Some(RequestKey::new(id.to_vec())?),
        [word, ..] => return Err(CommandError::Syntax { entry, at: shown(word) }),
    };
    let (quota, amount) = (names.get(&rest[0])?, parse_amount(&rest[1])?);
    Ok(match entry.verb {
        Verb::Acquire => Operation::acquire(quota, amount, id)?,
        _ => Operation::release(quota, amount, id)?,
    })
}

fn create(entry: &'static Entry, rest: &[Cow<'_, [u8]>], names: &mut Names) -> Result<QuotaCommand, CommandError> {
    let (parent, protocol, offer, reallocation) = (&mut None, &mut None, &mut None, &mut None);
    for pair in rest[2..].chunks(2) {
        let syntax = || Err(CommandError::Syntax { entry, at: shown(&pair[0]) });
        let [word, value] = pair else { return syntax() };
        let repeated = match word.to_ascii_lowercase().as_slice() {
            b"parent" => parent.replace(Names::default().get(value)?).is_some(),
            b"protocol" => protocol.replace(choice(value)?).is_some(),
            b"offer" => offer.replace(choice(value)?).is_some(),
            b"reallocation" => reallocation.replace(choice(value)?).is_some(),
            _ => return syntax(),
        };
        if repeated {
            return syntax();
        }
    }
    let spec = Spec {
        limit: limit(&rest[1])?,
        parent: parent.take(),
        protocol: protocol.unwrap_or_default(),
        offer: offer.unwrap_or_default(),
        reallocation: reallocation.unwrap_or_default(),
    };
    Ok(QuotaCommand::Create { name: names.get(&rest[0])?, spec })
}

/// A limit in decimal: as an amount, or 0.
fn limit(text: &[u8]) -> Result<u64, Refusal> {
    if text == b"0" {
        return Ok(0);
    }
    parse_amount(text)
        .map_err(|_| Refusal::Invalid(format!("a limit of `{}` tokens; allowed are whole numbers from 0 to {AMOUNT_MAX}", shown(text))))
}

fn choice<T: FromStr<Err = Refusal>>(word: &[u8]) -> Result<T, Refusal> {
    shown(word).parse()
}

fn hello<'a>(entry: &'static Entry, rest: &'a [Cow<'a, [u8]>]) -> Result<Command<'a>, CommandError> {
    let Some((version, mut options)) = rest.split_first() else { return Ok(Command::Hello { protocol: None, name: None }) };
    let protocol = match &version[..] {
        b"2" => Some(Protocol::Resp2),
        b"3" => Some(Protocol::Resp3),
        _ => return Err(CommandError::Version),
    };
    let mut name = None;
    loop {
        options = match options {
            [] => return Ok(Command::Hello { protocol, name }),
            [word, _, _, ..] if is(word, "auth") => return Err(CommandError::Users),
            [word, value, after @ ..] if is(word, "setname") => {
                name = Some(client_text(value)?);
                after
            }
            [word, ..] => return Err(CommandError::Syntax { entry, at: shown(word) }),
        };
    }
}

fn commands<'a>(entry: &'static Entry, rest: &'a [Cow<'a, [u8]>]) -> Result<Commands<'a>, CommandError> {
    let Some((word, names)) = rest.split_first() else { return Ok(Commands::All) };
    match word.to_ascii_lowercase().as_slice() {
        b"count" if names.is_empty() => Ok(Commands::Count),
        b"list" if names.is_empty() => Ok(Commands::List),
        b"info" if names.is_empty() => Ok(Commands::All),
        b"info" => Ok(Commands::Info(names)),
        b"docs" => Ok(Commands::Docs(names)),
        b"count" | b"list" => Err(CommandError::Count(entry)),
        _ => Err(CommandError::Subcommand { entry, at: shown(word) }),
    }
}

fn client(entry: &'static Entry, rest: &[Cow<'_, [u8]>]) -> Result<ClientCommand, CommandError> {
    let (word, values) = rest.split_first().expect("the table asks for a subcommand");
    match (word.to_ascii_lowercase().as_slice(), values) {
        (b"id", []) => Ok(ClientCommand::Id),
        (b"info", []) => Ok(ClientCommand::Info),
        (b"getname", []) => Ok(ClientCommand::GetName),
        (b"setname", [name]) => Ok(ClientCommand::SetName(client_text(name)?)),
        (b"setinfo", [what, value]) if is(what, "lib-name") => Ok(ClientCommand::SetLibraryName(client_text(value)?)),
        (b"setinfo", [what, value]) if is(what, "lib-ver") => Ok(ClientCommand::SetLibraryVersion(client_text(value)?)),
        (b"setinfo", [what, _]) => Err(CommandError::Syntax { entry, at: shown(what) }),
        (b"no-evict" | b"no-touch", [switch]) if is(switch, "on") || is(switch, "off") => Ok(ClientCommand::Ignored),
        (b"no-evict" | b"no-touch", [switch]) => Err(CommandError::Syntax { entry, at: shown(switch) }),
        (b"id" | b"info" | b"getname" | b"setname" | b"setinfo" | b"no-evict" | b"no-touch", _) => Err(CommandError::Count(entry)),
        _ => Err(CommandError::Subcommand { entry, at: shown(word) }),
    }
}

/// What a client calls itself: visible ASCII without blanks, so that it can stand in a line.
fn client_text(bytes: &[u8]) -> Result<String, CommandError> {
    if bytes.len() > CLIENT_TEXT_BYTES_MAX {
        return Err(CommandError::ClientText("a client's name is too long; at most 128 bytes are allowed"));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(u8::is_ascii_graphic) => Ok(text.to_owned()),
        _ => Err(CommandError::ClientText("Client names cannot contain spaces, newlines or special characters.")),
    }
}

fn is(word: &[u8], expected: &str) -> bool {
    word.eq_ignore_ascii_case(expected.as_bytes())
}
