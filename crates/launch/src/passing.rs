//! Output of a run on its way to the user: line by line, without secrets, fit for a terminal.

use bastion_host::child::Stream;

use crate::secret::Masker;
use crate::text::plain_lines;

/// Output on its way to the user, line by line.
#[derive(Default)]
pub(crate) struct Passing {
    rests: [Vec<u8>; 2],
}

/// A line is passed on in pieces of this many bytes.
const PIECE: usize = 64 << 10;

impl Passing {
    /// Takes what came, and passes on the whole lines of it.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8], masker: &Masker, to: &mut dyn FnMut(&str)) {
        let rest = &mut self.rests[usize::from(stream == Stream::Stderr)];
        rest.extend_from_slice(bytes);
        let end = match rest.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => at + 1,
            None if rest.len() >= PIECE => rest.len(),
            None => return,
        };
        let lines: Vec<u8> = rest.drain(..end).collect();
        to(&plain_lines(&masker.mask(&String::from_utf8_lossy(&lines))));
    }

    /// Passes on what is left when no more comes.
    pub(crate) fn finish(&mut self, masker: &Masker, to: &mut dyn FnMut(Stream, &str)) {
        for (rest, stream) in self.rests.iter().zip([Stream::Stdout, Stream::Stderr]) {
            if !rest.is_empty() {
                to(stream, &plain_lines(&masker.mask(&String::from_utf8_lossy(rest))));
            }
        }
    }
}
