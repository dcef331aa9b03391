//! What were the last so many bytes of a stream? Bounded memory for output of any size.

use std::collections::VecDeque;

/// The end of a stream.
#[derive(Debug)]
pub struct Tail {
    bytes: VecDeque<u8>,
    cap: usize,
    cut: bool,
}

impl Tail {
    /// Keeps the last `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self { bytes: VecDeque::new(), cap, cut: false }
    }

    /// Takes in more of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        let chunk = if chunk.len() > self.cap {
            self.cut = true;
            &chunk[chunk.len() - self.cap..]
        } else {
            chunk
        };
        let over = (self.bytes.len() + chunk.len()).saturating_sub(self.cap);
        if over > 0 {
            self.cut = true;
            self.bytes.drain(..over);
        }
        self.bytes.extend(chunk);
    }

    /// What is kept. Where something was let go, the first line is dropped: it may have lost its beginning.
    pub fn lines(&mut self) -> &[u8] {
        let cut = self.cut;
        let all: &[u8] = self.bytes.make_contiguous();
        if !cut {
            return all;
        }
        all.iter().position(|byte| *byte == b'\n').map_or(&[], |end| &all[end + 1..])
    }

    /// All that is kept, as it is.
    pub fn all(&mut self) -> &[u8] {
        self.bytes.make_contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_end_of_what_went_in(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20), cap in 1usize..30) {
            let mut tail = Tail::new(cap);
            let mut whole = Vec::new();
            for chunk in &chunks {
                tail.push(chunk);
                whole.extend_from_slice(chunk);
            }
            prop_assert_eq!(tail.all(), &whole[whole.len().saturating_sub(cap)..]);
        }
    }

    #[test]
    fn a_line_that_lost_its_beginning_is_not_read() {
        let mut tail = Tail::new(8);
        tail.push(b"xx\nOPENSH");
        assert_eq!(tail.lines(), b"OPENSH");
        tail.push(b"E");
        tail.push(b"LL");
        assert_eq!(tail.lines(), b"");
    }
}
