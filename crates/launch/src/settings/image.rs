//! What is the image built from? A Dockerfile, a folder with one, or an image reference.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::LaunchError;
use crate::locate::Located;
use crate::options::{LaunchOptions, Machine};
use crate::paths::Bases;

/// What the image is built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// A Dockerfile and the folder it lies in, which is the build context.
    Dockerfile(PathBuf),
    /// An image by its reference.
    Reference(String),
}

/// The source of this launch's image.
pub(super) fn image(options: &LaunchOptions, machine: &Machine, located: &Located) -> Result<ImageSource, LaunchError> {
    match &options.from {
        Some(from) => image_at(from, &machine.cwd, &located.bases),
        None => {
            let own = located.parsed.agent.sandbox.from.as_deref().unwrap_or("agent://.");
            image_at(own, &located.bases.agent, &located.bases)
        }
    }
}

/// What `from` means, a relative path starting at `base`.
pub(crate) fn image_at(from: &str, base: &Path, bases: &Bases) -> Result<ImageSource, LaunchError> {
    let prefixed = from.contains("://");
    let path = if prefixed { bases.resolve(from)? } else { base.join(from) };
    let is_path = prefixed || from.starts_with(['/', '.']) || path.symlink_metadata().is_ok();
    if !is_path {
        return reference(from);
    }
    let refused = |path: &Path, why: String| LaunchError::refused(format!("the image source {}", path.display()), why);
    let meta = path.symlink_metadata().map_err(|error| refused(&path, format!("can't be read: {error}")))?;
    let file = if path.is_dir() { path.join("Dockerfile") } else { path.clone() };
    let what = if path.is_dir() {
        file.symlink_metadata().map_err(|_| refused(&path, "has no Dockerfile in it".to_owned()))?
    } else {
        meta
    };
    if what.is_symlink() {
        return Err(refused(&file, "is a link; the Dockerfile must be a file of its own".to_owned()));
    }
    if !what.is_file() {
        return Err(refused(&file, "is no regular file".to_owned()));
    }
    Ok(ImageSource::Dockerfile(file))
}

fn reference(from: &str) -> Result<ImageSource, LaunchError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b);
    if !from.bytes().all(plain) || !from.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        let subject = format!("the image source `{}`", from.escape_debug());
        return Err(LaunchError::refused(subject, "is neither a file, nor a folder, nor an image reference"));
    }
    Ok(ImageSource::Reference(from.to_owned()))
}
