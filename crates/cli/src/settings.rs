//! Settings of the machine: read from the environment once, resolved before any port, lock or file is touched.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use bastion_extract::ExternalReaders;
use bastion_host::clock::SystemClock;
use bastion_private::VaultPlace;
use bastion_retrieval::embed::{EmbedApi, Embedder, RemoteEmbedder, RemoteSettings};
use bastion_retrieval::{Searcher, models};
use bastion_stages::{Embedding, SealSettings, Summarizer};
use bastion_trust::{Gate, GateSettings};

use crate::args::Tls;

/// The argument that makes this program a caged reader. Not for people.
pub(crate) const WORKER_ARG: &str = "__extract-worker";

/// Every setting: its name, what it means, and whether its value is a secret.
const VARIABLES: &[(&str, &str, bool)] = &[
    ("BASTION_STATE_DIR", "this machine's own state: CA, identities, floors, vaults of `up`", false),
    ("FREEAGENT_CA_ROOT", "PEM file of the CA roots that signers and peers must chain to", false),
    ("FREEAGENT_TLS_CERT", "PEM file of this machine's certificate", false),
    ("FREEAGENT_TLS_KEY", "PEM file of that certificate's key", false),
    ("FREEAGENT_BIND", "where `serve` listens, HOST:PORT", false),
    ("FREEAGENT_VAULT_DIR", "folder of the vaults of hidden values", false),
    ("FREEAGENT_OWNER_RECIPIENT", "age recipient that bundles are sealed to", false),
    ("SEAL_SIGN_KEY", "PEM file of the P-256 key that signs bundles", false),
    ("FREEAGENT_NO_EXTERNAL", "1: built-in readers only", false),
    ("EMBED_URL", "embedding server; text is sent to it", false),
    ("EMBED_API", "its API: openai (default), tei, ollama", false),
    ("EMBED_MODEL", "the model to ask it for", false),
    ("EMBED_API_KEY", "its key", true),
    ("SUMMARIZE_URL", "chat model (OpenAI-compatible) that writes summaries; sanitized text is sent to it", false),
    ("SUMMARIZE_MODEL", "the model to ask it for", false),
    ("LLM_URL", "chat model for `sterilize` (not yet used)", false),
    ("LLM_MODEL", "the model to ask it for (not yet used)", false),
    ("LLM_API_KEY", "its key; also for SUMMARIZE_URL", true),
    ("PII_ADDR", "PII service for `sterilize` (not yet used)", false),
    ("PII_API_KEY", "its key (not yet used)", true),
    ("PII_RECALL", "0 to 1, 0.65: recall wanted of it (not yet used)", false),
];

/// The settings with their meaning, and whether each is set: for the help.
pub(crate) fn help() -> String {
    let mut text = String::from("Settings come from the environment, never from the manifest (* = set now):\n");
    for (name, meaning, _) in VARIABLES {
        let mark = if var(name).is_some() { '*' } else { ' ' };
        text.push_str(&format!("{mark} {name:<26} {meaning}\n"));
    }
    text
}

/// Name, meaning and value of each setting that is set; a secret's value is not shown.
pub(crate) fn shown() -> impl Iterator<Item = (&'static str, &'static str, Option<String>)> {
    VARIABLES.iter().map(|(name, meaning, secret)| {
        let value =
            var(name).map(|value| if *secret { "(set)".to_owned() } else { value.to_string_lossy().into_owned() });
        (*name, *meaning, value)
    })
}

/// A variable that is set to something.
fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn text(name: &str) -> Result<Option<String>> {
    var(name).map(|value| value.into_string().map_err(|_| anyhow::anyhow!("{name} is not UTF-8"))).transpose()
}

fn path(name: &str) -> Option<PathBuf> {
    var(name).map(PathBuf::from)
}

/// Where this machine's own state is.
pub(crate) fn state_dir() -> Result<PathBuf> {
    if let Some(dir) = path("BASTION_STATE_DIR") {
        return Ok(std::path::absolute(dir)?);
    }
    if let Some(dir) = path("XDG_STATE_HOME").filter(|dir| dir.is_absolute()) {
        return Ok(dir.join("bastion"));
    }
    let home = std::env::home_dir()
        .filter(|home| home.is_absolute())
        .context("HOME is not set; set BASTION_STATE_DIR to a folder for this machine's state")?;
    Ok(if cfg!(target_os = "macos") {
        home.join("Library/Application Support/bastion")
    } else {
        home.join(".local/state/bastion")
    })
}

/// This machine's name as a host: lower-case, what certificates and manifests call it.
pub(crate) fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    let name: String = name
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() || matches!(char, '-' | '.') { char } else { '-' })
        .collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// The gate with the roots of flag, environment or this machine's CA, in that order.
pub(crate) fn gate(ca: Option<&Path>) -> Result<Gate> {
    let ca_root = ca.map(Path::to_owned).or_else(|| path("FREEAGENT_CA_ROOT"));
    Ok(Gate::new(GateSettings { ca_root, crl: None, state_dir: state_dir()? }, Arc::new(SystemClock)))
}

/// The three TLS files as flag or environment give them; what is still missing is for the caller to find or refuse.
pub(crate) fn tls(flags: &Tls) -> Tls {
    Tls {
        ca: flags.ca.clone().or_else(|| path("FREEAGENT_CA_ROOT")),
        cert: flags.cert.clone().or_else(|| path("FREEAGENT_TLS_CERT")),
        key: flags.key.clone().or_else(|| path("FREEAGENT_TLS_KEY")),
    }
}

/// What `serve` is to listen on, where the environment says so.
pub(crate) fn bind() -> Result<Option<String>> {
    text("FREEAGENT_BIND")
}

/// Where vaults lie; `up` keeps them below the state directory.
pub(crate) fn vaults() -> Result<VaultPlace> {
    Ok(VaultPlace {
        dir: path("FREEAGENT_VAULT_DIR").map(std::path::absolute).transpose()?,
        home: Some(state_dir()?.join("vaults")),
        make_in_home: false,
    })
}

/// The folder of installed models.
pub(crate) fn models_dir() -> Result<PathBuf> {
    Ok(state_dir()?.join("models"))
}

/// The embedding model: the server that is named, else the local one, else none. A server is not asked yet.
pub(crate) fn embedding() -> Result<Option<Embedding>> {
    if let Some(settings) = remote()? {
        let host = ureq_host(&settings.url);
        let opened: OnceLock<Arc<dyn Embedder>> = OnceLock::new();
        let open = move || {
            if let Some(embedder) = opened.get() {
                return Ok(Arc::clone(embedder));
            }
            let embedder: Arc<dyn Embedder> =
                Arc::new(RemoteEmbedder::connect(settings.clone(), Box::new(SystemClock))?);
            Ok(Arc::clone(opened.get_or_init(|| embedder)))
        };
        return Ok(Some(Embedding { open: Arc::new(open), host }));
    }
    let Some(local) = models::open_embedder(&models_dir()?)? else { return Ok(None) };
    let local: Arc<dyn Embedder> = Arc::new(local);
    Ok(Some(Embedding { open: Arc::new(move || Ok(Arc::clone(&local))), host: None }))
}

/// The model that answers searches. A server that is away now may be back later: it is asked then, as long as the
/// index says how long its vectors are.
pub(crate) fn search_embedder(out: &Path) -> Result<Option<Arc<dyn Embedder>>> {
    let Some(embedding) = embedding()? else { return Ok(None) };
    let error = match (embedding.open)() {
        Ok(embedder) => return Ok(Some(embedder)),
        Err(error) => error,
    };
    let layout = bastion_store::Layout::new(out);
    let tag = bastion_store::Served::open(&layout)?
        .and_then(|served| Searcher::open(&served.search_dir()).ok())
        .and_then(|searcher| searcher.model().cloned());
    match (remote()?, tag) {
        (Some(settings), Some(tag)) => {
            eprintln!("bastion: {error}; searches answer 502 until it can");
            Ok(Some(Arc::new(RemoteEmbedder::with_dims(settings, tag.dims, Box::new(SystemClock))?)))
        }
        _ => Err(error.into()),
    }
}

fn remote() -> Result<Option<RemoteSettings>> {
    let Some(url) = text("EMBED_URL")? else { return Ok(None) };
    let api = match text("EMBED_API")? {
        Some(api) => api.parse::<EmbedApi>()?,
        None => EmbedApi::OpenAi,
    };
    let model = text("EMBED_MODEL")?.unwrap_or_default();
    if model.is_empty() && !matches!(api, EmbedApi::Tei) {
        bail!("EMBED_URL is set and EMBED_MODEL is not: name the model to ask for");
    }
    Ok(Some(RemoteSettings { url, api, model, key: text("EMBED_API_KEY")?, timeout: RemoteSettings::TIMEOUT }))
}

/// The host of an address, for the record.
fn ureq_host(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.rsplit('@').next().unwrap_or(authority).to_owned())
}

fn seal() -> Result<Option<SealSettings>> {
    let recipient = text("FREEAGENT_OWNER_RECIPIENT")?;
    Ok(recipient.map(|recipient| SealSettings { recipient, sign_key: path("SEAL_SIGN_KEY") }))
}

fn summarizer() -> Result<Option<Arc<Summarizer>>> {
    let Some(url) = text("SUMMARIZE_URL")? else { return Ok(None) };
    let Some(model) = text("SUMMARIZE_MODEL")? else {
        bail!("SUMMARIZE_URL is set and SUMMARIZE_MODEL is not: name the model to ask for")
    };
    Ok(Some(Arc::new(Summarizer::new(&url, &model, text("LLM_API_KEY")?)?)))
}

/// Programs of this machine that may read files.
pub(crate) fn external() -> ExternalReaders {
    if var("FREEAGENT_NO_EXTERNAL").is_some_and(|value| value == "1") {
        ExternalReaders::none()
    } else {
        ExternalReaders::found()
    }
}

/// What the stages need, all of it resolved now.
pub(crate) fn stages(accept_empty: bool, uncaged: bool) -> Result<bastion_stages::Settings> {
    let state = state_dir()?;
    let vaults = vaults()?;
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get);
    let outs = crate::registry::all()?.into_iter().map(|agent| agent.out);
    Ok(bastion_stages::Settings {
        own_dirs: std::iter::once(state).chain(vaults.dir.clone()).chain(outs).collect(),
        vaults,
        workers,
        worker: std::env::current_exe().context("this program's own file can't be found")?,
        worker_args: vec![WORKER_ARG.into()],
        uncaged,
        external: external(),
        embedder: embedding()?,
        summarizer: summarizer()?,
        seal: seal()?,
        accept_empty,
    })
}
