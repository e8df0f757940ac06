//! `rhumb cert`: the certificates of a site, and the CA of its cluster.

use super::fail;
use super::place::FOLDER;
use clap::{Args as ClapArgs, Subcommand};
use rhumb_config::Config;
use rhumb_display::Table;
use rhumb_node::forming::{ADMIN_FILE, CA_FOLDER, CONFIG_FILE};
use rhumb_security::authority::register::{self, Member};
use rhumb_security::authority::{Authority, Subject};
use rhumb_security::certificate::Certificate;
use rhumb_security::files;
use rhumb_security::identity::chain;
use rhumb_security::name::{DOMAIN, SiteName};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Look at certificates, make one for a client, and have a new CA take the place of the old.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb cert status                whose certificates there are, and how long they hold
  rhumb cert issue alice --out alice.pem
                                   a certificate for a client, with its key
  rhumb cert issue --site virginia-0 --out site.pem
                                   the same for a site, in the place of all that it had
  rhumb cert rotate                a new CA; the old one stays believed
  rhumb cert retire                older CAs are believed no more

Sites renew their certificates by themselves. `issue`, `rotate` and `retire` are for the machine of `rhumb init`, which holds the CA. After
`rotate`, sites hear of the new CA and renew within half a minute; `retire` waits for that. If a site's key was stolen, or it is to be left
behind, `issue --site` makes a certificate that takes the place of all that it had.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// The folder of the site.
    #[arg(long, value_name = "DIR", default_value = FOLDER, global = true)]
    dir: PathBuf,
}

#[derive(Subcommand)]
enum Action {
    /// Show what the certificates of this site say.
    Status,
    /// Make a certificate and a key for a client, or for a site in the place of all that it had.
    Issue {
        /// The user.
        #[arg(value_name = "USER", required_unless_present = "site", conflicts_with = "site")]
        user: Option<String>,
        /// The site, by its name in certificates or as REGION-SHARD: what it had before is renewed no more.
        #[arg(long, value_name = "SITE")]
        site: Option<String>,
        /// The file to write, for its owner alone.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Have a new CA sign from now on. The old one stays believed.
    Rotate,
    /// Have older CAs believed no more, once all sites have certificates of the present one.
    Retire,
}

/// Does it.
pub fn run(args: &Args) -> ExitCode {
    let done = match &args.action {
        Action::Status => status(&args.dir),
        Action::Issue { user, site, out } => issue(&args.dir, user.as_deref(), site.as_deref(), out),
        Action::Rotate => rotate(&args.dir),
        Action::Retire => retire(&args.dir),
    };
    match done {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => fail(error, 1),
    }
}

type Done = Result<String, Box<dyn Error>>;

fn status(dir: &Path) -> Done {
    let setup = Config::load(&dir.join(CONFIG_FILE))?;
    let tls = setup.tls.ok_or("the configuration has no certificates: all is plain text on the loopback")?;
    let mut table = Table::new("certificate").group("", &["of", "by", "days left", "names"]);
    let now = SystemTime::now();
    let mut row = |what: &str, path: &Path, count: usize| -> Result<(), Box<dyn Error>> {
        for der in chain(path)?.iter().take(count) {
            let Certificate { subject, issuer, names, until, .. } = Certificate::read(der)?;
            let left = until.duration_since(now).map_or_else(|_| "expired".to_owned(), |left| (left.as_secs() / 86_400).to_string());
            table.row(vec![what.to_owned(), subject, issuer, left, names.join(" ")]);
        }
        Ok(())
    };
    row("site", &tls.files.certificate, 1)?;
    if dir.join(ADMIN_FILE).exists() {
        row("administrator", &dir.join(ADMIN_FILE), 1)?;
    }
    row("believed", &tls.files.authorities, usize::MAX)?;
    Ok(table.to_string())
}

fn issue(dir: &Path, user: Option<&str>, site: Option<&str>, out: &Path) -> Done {
    let (authority, now) = (authority(dir)?, SystemTime::now());
    if let Some(site) = site {
        let register = register::read(&dir.join(CA_FOLDER))?;
        let suffix = format!(".{}.{DOMAIN}", authority.cluster());
        let member = site.strip_suffix(&suffix).unwrap_or(site);
        let Member { region, shard, hosts, .. } =
            register.members.get(member).ok_or_else(|| format!("`{site}` is no site of this cluster"))?;
        let name = SiteName::new(&register.cluster, region, *shard)?;
        files::write_private(out, authority.replace(&name, hosts.clone(), now)?.as_bytes())?;
        return Ok(format!(
            "wrote {}: put it in the place of `tls/site.pem` at {member}, and this `tls/ca.crt` in the place of the one there",
            out.display()
        ));
    }
    let user = user.filter(|user| !user.is_empty()).ok_or("the user has no name")?;
    let issued = authority.issue(&Subject::Client { user: user.to_owned() }, now)?;
    files::write_private(out, issued.as_bytes())?;
    Ok(format!("wrote {}: a key and its certificate, for {user}", out.display()))
}

fn rotate(dir: &Path) -> Done {
    let mut authority = authority(dir)?;
    authority.rotate(SystemTime::now())?;
    Ok(format!("a new CA signs; {} are believed until `rhumb cert retire`", authority.roots().len()))
}

fn retire(dir: &Path) -> Done {
    let retired = authority(dir)?.retire()?;
    Ok(format!("{retired} older CAs are believed no more, once sites have heard of it"))
}

fn authority(dir: &Path) -> Result<Authority, Box<dyn Error>> {
    Ok(Authority::open(&dir.join(CA_FOLDER))?)
}
