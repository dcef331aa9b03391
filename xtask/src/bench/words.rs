//! Rules, embedding and search: the crates' own examples against Python.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::tools::release;

/// The rules pass, one core; its aims are rates.
pub(crate) fn rules(prose: &Path, dense: &Path) -> Result<()> {
    let speed = release("examples", "speed")?;
    for (name, path, aim) in [("prose", prose, 150), ("dense", dense, 30)] {
        let output = Command::new(&speed).arg(path).output()?;
        print!("rules: {name} (aim {aim} MB/s): {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

const ONNXRUNTIME: &str = r"
import sys, time, zipfile, io, numpy, onnxruntime
wheel = zipfile.ZipFile(sys.argv[1])
name = next(n for n in wheel.namelist() if n.endswith('.onnx'))
options = onnxruntime.SessionOptions()
session = onnxruntime.InferenceSession(wheel.read(name), options)
ids = numpy.random.randint(1000, 20000, (16, 256)).astype('int64')
feed = {i.name: ids if 'ids' in i.name and 'type' not in i.name else numpy.ones_like(ids) if 'mask' in i.name else numpy.zeros_like(ids) for i in session.get_inputs()}
session.run(None, feed)
best = 0
for _ in range(3):
    start = time.time()
    session.run(None, feed)
    best = max(best, 16 / (time.time() - start))
print(f'{best:.1f}')
";

/// Embedding of 256-token windows against onnxruntime with the same model.
pub(crate) fn embed(wheel: &Path, onnx: Option<&Path>) -> Result<()> {
    let home = tempfile::tempdir()?;
    let rate = release("examples", "embed_rate")?;
    let ours = Command::new(&rate).arg(home.path()).arg(wheel).output()?;
    print!("embed: ours:\n{}", String::from_utf8_lossy(&ours.stdout));
    let Some(onnx) = onnx else {
        println!("embed: the peer is left out, name a package with the model in ONNX with --onnx");
        return Ok(());
    };
    let peer = Command::new("python3").args(["-c", ONNXRUNTIME]).arg(onnx).output()?;
    if peer.status.success() {
        println!(
            "embed: onnxruntime: {} windows a second (aim: ours at least as many)",
            String::from_utf8_lossy(&peer.stdout).trim()
        );
    } else {
        println!("embed: the peer is left out: {}", String::from_utf8_lossy(&peer.stderr));
    }
    Ok(())
}

const NUMPY: &str = r"
import sys, time, numpy
rows = int(sys.argv[1])
index = numpy.random.default_rng(1).standard_normal((rows, 384), dtype='float32')
times = []
for seed in range(20):
    query = numpy.random.default_rng(seed).standard_normal(384, dtype='float32')
    start = time.time()
    scores = index @ query
    numpy.argpartition(scores, -50)[-50:]
    times.append(time.time() - start)
times.sort()
print(f'{times[10] * 1000:.0f} ms, slowest {times[-1] * 1000:.0f} ms')
";

/// Search over `windows` made-up windows against an exact scan in numpy.
pub(crate) fn search(windows: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let scale = release("examples", "scale")?;
    let ours =
        Command::new(&scale).arg(home.path().join("index")).arg(windows.to_string()).output().context("scale")?;
    print!(
        "search: ours (aim: p99 at most 100 ms, a fifth of numpy's time):\n{}",
        String::from_utf8_lossy(&ours.stdout)
    );
    let peer = Command::new("python3").args(["-c", NUMPY, &windows.to_string()]).output()?;
    if peer.status.success() {
        println!("search: numpy, exact: median {}", String::from_utf8_lossy(&peer.stdout).trim());
    } else {
        println!("search: the peer is left out: numpy is not there");
    }
    Ok(())
}
