//! One run: the stages in the manifest's order, then one commit.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bastion_extract::ExternalReaders;
use bastion_host::clock::Clock;
use bastion_private::{ExtractStore, Vault, VaultPlace};
use bastion_retrieval::embed::{EmbedError, Embedder};
use bastion_store::{Committed, Draft, Layout};
use bastion_sweep::{Job, Report, Runner, StageReport, StageStatus};
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

    /// The settings.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
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
        let layout = Layout::new(job.out);
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
        match done {
            Ok(Some(tally)) => tally.report(stage, started.elapsed()),
            Ok(None) => {
                let mut report = StageReport::new(stage, StageStatus::Skipped, started.elapsed().as_secs_f64());
                report.details.insert("reason".into(), why_skipped(stage).into());
                report
            }
            Err(error) => failed(stage, started, &error),
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
        self.index.finish(&mut self.draft)?;
        let layout = self.draft.layout().clone();
        let Some(committed) = self.draft.commit()? else { return Ok(()) };
        publish(&committed, &layout, &mut self.extracts, &self.vault)?;
        if self.removed > 0 && !self.sealed {
            // What left the folder is still in a bundle that nobody renews: it leaves too.
            seal::remove_all(&layout.seal()).map_err(StageError::io(layout.seal()))?;
        }
        Ok(())
    }
}

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
