//! One run: the stages in the manifest's order, then one commit.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bastion_extract::ExternalReaders;
use bastion_host::clock::Clock;
use bastion_private::{ExtractStore, Vault, VaultPlace};
use bastion_retrieval::embed::{EmbedError, Embedder};
use bastion_store::{Committed, Draft, Layout};
use bastion_sweep::{Job, Report, Runner, StageReport, StageStatus};
use bastion_trust::scope::AGENT_DIR;
use bastion_trust::{Admitted, Stage};

use crate::index::NextIndex;
use crate::progress::Progress;
use crate::publish::publish;
use crate::{SealSettings, StageError, Summarizer, Tally, catalog, chunk, embed, extract, sanitize, seal, walk};

/// An embedding model that is connected to when the stage needs it, so that a server that is away fails that stage.
#[derive(Clone)]
pub struct Embedding {
    /// Gives the model.
    pub open: Arc<dyn Fn() -> Result<Arc<dyn Embedder>, EmbedError> + Send + Sync>,
    /// The host that text is sent to, where that is not this process.
    pub host: Option<String>,
}

/// What a run needs to know of this machine; none of it comes from the manifest.
#[derive(Clone)]
pub struct Settings {
    /// Where vaults lie.
    pub vaults: VaultPlace,
    /// Folders of ours that no walk may enter, wherever they lie: state, vaults.
    pub own_dirs: Vec<PathBuf>,
    /// Threads and reader processes.
    pub workers: usize,
    /// The program that is started as a caged reader, and its arguments.
    pub worker: PathBuf,
    /// See `worker`.
    pub worker_args: Vec<OsString>,
    /// Readers run without a cage; for systems that have none.
    pub uncaged: bool,
    /// Programs of this machine that read what the built-in readers can't.
    pub external: ExternalReaders,
    /// The embedding model, where there is one.
    pub embedder: Option<Embedding>,
    /// The chat model that writes summaries, where there is one.
    pub summarizer: Option<Arc<Summarizer>>,
    /// To whom bundles are sealed, where they are.
    pub seal: Option<SealSettings>,
    /// A root that has no files any more is meant to have none.
    pub accept_empty: bool,
}

/// Runs the stages. One per agent; the caller holds the sweep's lock.
pub struct Pipeline {
    settings: Settings,
    progress: Arc<dyn Progress>,
    clock: Arc<dyn Clock>,
}

/// What a run works on.
struct Run<'a> {
    admitted: &'a Admitted,
    settings: &'a Settings,
    progress: &'a dyn Progress,
    clock: &'a dyn Clock,
    vault: Vault,
    extracts: ExtractStore,
    draft: Draft,
    index: NextIndex,
    /// Documents that left in this run.
    removed: u64,
    sealed: bool,
}

impl Pipeline {
    /// A pipeline with these settings.
    pub fn new(settings: Settings, progress: Arc<dyn Progress>, clock: Arc<dyn Clock>) -> Self {
        Self { settings, progress, clock }
    }
}

impl Runner for Pipeline {
    fn run(&mut self, job: &Job<'_>, report: &mut Report<'_>) -> ControlFlow<()> {
        let Some((last, earlier)) = job.stages.split_last() else { return ControlFlow::Continue(()) };
        let first = job.stages[0];
        let started = Instant::now();
        let mut run = match Run::begin(job, &self.settings, &*self.progress, &*self.clock) {
            Ok(run) => run,
            Err(error) => return report(failed(first, started, &error)),
        };
        for stage in earlier {
            report(run.report(*stage))?;
        }
        // The last stage's report waits for the commit: what is not committed is not done.
        let started = Instant::now();
        let mut end = run.report(*last);
        if !end.status.ends_run()
            && let Err(error) = run.commit()
        {
            end = failed(*last, started, &error);
        }
        report(end)
    }
}

impl<'a> Run<'a> {
    fn begin(
        job: &Job<'a>,
        settings: &'a Settings,
        progress: &'a dyn Progress,
        clock: &'a dyn Clock,
    ) -> Result<Self, StageError> {
        // One folder, one name: the vault is found by it, however `--out` was written.
        let out = job.out.canonicalize().map_err(StageError::io(job.out))?;
        refuse_foreign(&out, job.admitted)?;
        if let Some(stage) = job.stages.iter().find(|stage| !job.admitted.manifest().stages.contains(stage)) {
            return Err(StageError::NotInManifest { stage: *stage });
        }
        let layout = Layout::new(out);
        let has_stores = layout.current().exists() || layout.extract().join("index.jsonl").exists();
        let place = settings.vaults.of(job.admitted.manifest().id.as_str(), layout.out());
        let vault = Vault::open(&place, layout.out(), has_stores)?;
        let mut extracts = ExtractStore::open(&layout.extract()).map_err(StageError::io(layout.extract()))?;
        if let Some(committed) = Committed::unexported(&layout)? {
            publish(&committed, &layout, &mut extracts, &vault)?; // a crash came between the commit and its files
        }
        let draft = Draft::open(&layout)?;
        Ok(Self {
            admitted: job.admitted,
            settings,
            progress,
            clock,
            vault,
            extracts,
            draft,
            index: NextIndex::default(),
            removed: 0,
            sealed: false,
        })
    }

    fn report(&mut self, stage: Stage) -> StageReport {
        let started = Instant::now();
        let done = self.stage(stage);
        self.progress.end();
        let asked = |stage| match stage {
            Stage::Embed => self.settings.embedder.as_ref().and_then(|embedding| embedding.host.clone()),
            Stage::Catalog => self.settings.summarizer.as_ref().map(|summarizer| summarizer.host().to_owned()),
            _ => None,
        };
        match done {
            Ok(Some(tally)) => tally.report(stage, started.elapsed()),
            Ok(None) => {
                let mut report = StageReport::new(stage, StageStatus::Skipped, started.elapsed().as_secs_f64());
                report.details.insert("reason".into(), why_skipped(stage).into());
                report
            }
            Err(error) => {
                let mut report = failed(stage, started, &error);
                report.hosts.extend(asked(stage)); // text may have been sent before it failed
                report
            }
        }
    }

    /// One stage. `None`: there is nothing that it is set up to do.
    fn stage(&mut self, stage: Stage) -> Result<Option<Tally>, StageError> {
        let Self { admitted, settings, progress, clock, .. } = *self;
        let (draft, vault, extracts, index) = (&mut self.draft, &self.vault, &mut self.extracts, &mut self.index);
        let tally = match stage {
            Stage::Walk => {
                progress.begin(Stage::Walk, None);
                walk::walk(admitted, settings, draft, vault)?
            }
            Stage::Extract => {
                let mut tally = extract::extract(admitted, settings, draft, vault, extracts, progress)?;
                tally.removed = if draft.is_changed() { draft.docs_orphaned()?.len() as u64 } else { 0 };
                tally
            }
            Stage::Sanitize => sanitize::sanitize(settings, draft, vault, extracts, progress, clock)?,
            Stage::Sterilize => return Err(StageError::NotYet),
            Stage::Chunk => chunk::chunk(draft, index, progress)?,
            Stage::Embed => match &settings.embedder {
                Some(embedding) => {
                    embed::embed(&*(embedding.open)()?, embedding.host.as_deref(), draft, index, progress)?
                }
                None => return Ok(None),
            },
            Stage::Catalog => {
                self.forget_orphans()?;
                let several = admitted.roots().len() > 1;
                catalog::catalog(
                    &mut self.draft,
                    &self.vault,
                    settings.summarizer.as_deref(),
                    several,
                    progress,
                    clock,
                )?
            }
            Stage::Seal => {
                let Some(seal) = &settings.seal else { return Ok(None) };
                self.forget_orphans()?;
                self.sealed = true;
                seal::seal(seal, &admitted.digest(), &self.draft, progress)?
            }
        };
        Ok(Some(tally))
    }

    /// Documents without a path leave the rows and the index.
    fn forget_orphans(&mut self) -> Result<(), StageError> {
        if !self.draft.is_changed() {
            return Ok(());
        }
        for row in self.draft.docs_orphaned()? {
            self.index.writer(&mut self.draft)?.remove_doc(row.ord);
            self.draft.remove_doc(row.ord)?;
            self.removed += 1;
        }
        Ok(())
    }

    fn commit(mut self) -> Result<(), StageError> {
        self.forget_orphans()?;
        // A bundle that this run made must outlive the word of an earlier one that there should be none.
        if self.sealed && self.draft.meta(BUNDLES)?.as_deref() == Some(DROP) {
            self.draft.set_meta(BUNDLES, KEEP)?;
        }
        if self.draft.is_changed() {
            // A text that changed and was not cut again must not be found by what it said before.
            for row in self.draft.docs_cut_from_old_text()? {
                self.index.writer(&mut self.draft)?.remove_doc(row.ord);
                self.draft.forget_chunks(row.ord)?;
            }
            // What left the folder is still in a bundle that nobody renews: it leaves too.
            let bundles = if self.removed > 0 && !self.sealed { DROP } else { KEEP };
            self.draft.set_meta(BUNDLES, bundles)?;
        }
        self.index.finish(&mut self.draft)?;
        let layout = self.draft.layout().clone();
        let committed = match self.draft.commit()? {
            Some(committed) => committed,
            // Nothing new, but a run before this one left what no generation holds.
            None if layout.dirty().exists() => match Committed::current(&layout)? {
                Some(current) => current,
                None => return Ok(()),
            },
            None => return Ok(()),
        };
        publish(&committed, &layout, &mut self.extracts, &self.vault)
    }
}

/// An output folder that is a root, or that holds what is not ours, is no output folder.
fn refuse_foreign(out: &Path, admitted: &Admitted) -> Result<(), StageError> {
    if admitted.roots().iter().any(|root| root.path.canonicalize().is_ok_and(|root| root == out)) {
        return Err(StageError::OutIsRoot { out: out.to_owned() });
    }
    let layout = Layout::new(out);
    if layout.index().exists() || out.file_name().is_some_and(|name| name == AGENT_DIR) {
        return Ok(());
    }
    let ours = ["run.jsonl", "run.state.json", "sweep.lock", "serve.audit.jsonl", "sanitize"];
    for entry in std::fs::read_dir(out).map_err(StageError::io(out))? {
        let name = entry.map_err(StageError::io(out))?.file_name();
        let known = name.to_str().is_some_and(|name| ours.contains(&name) || name.starts_with('.'));
        if !known {
            return Err(StageError::ForeignOut { out: out.to_owned(), entry: name.to_string_lossy().into_owned() });
        }
    }
    Ok(())
}

/// Keeps in the rows what is to become of older bundles, so that a crash after the commit does not forget it.
pub(crate) const BUNDLES: &str = "bundles";
/// They hold what left the folder.
pub(crate) const DROP: &str = "drop";
/// The latest one stays.
const KEEP: &str = "keep";

fn why_skipped(stage: Stage) -> &'static str {
    match stage {
        Stage::Embed => "no model: full text alone (bastion models add embed)",
        Stage::Seal => "no recipient",
        _ => "nothing to do",
    }
}

fn failed(stage: Stage, started: Instant, error: &StageError) -> StageReport {
    let status = if error.is_stop() { StageStatus::Stopped } else { StageStatus::Failed };
    StageReport::new(stage, status, started.elapsed().as_secs_f64()).with_error(error.to_string())
}
