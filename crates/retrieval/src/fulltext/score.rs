//! BM25 (Robertson and Zaragoza 2009), with Lucene's form of the inverse document frequency, which is never negative.

/// How fast further occurrences of a word stop to count. On Cranfield nDCG@10 is .353 with 1.2, .359 with 1.6, .358 with 2.
const K1: f32 = 1.6;
/// How much a long window is held back.
const B: f32 = 0.75;

/// What is the same for every word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collection {
    /// Windows in the index.
    pub(crate) windows: u64,
    /// Terms in a window, on average.
    pub(crate) mean_length: f32,
}

/// The score of one word.
pub(crate) struct Scorer {
    weight: f32,
    /// By the length's code (tantivy keeps lengths in one byte).
    norms: [f32; 256],
}

impl Scorer {
    /// For a word in `windows_with` windows, counted `times`. Lengths are of their codes.
    pub(crate) fn new(collection: Collection, inverse: f32, times: f32, length_of: impl Fn(u8) -> u32) -> Self {
        let mut norms = [0.0; 256];
        for (code, norm) in (0..=u8::MAX).zip(norms.iter_mut()) {
            #[allow(clippy::cast_precision_loss)]
            let length = length_of(code) as f32;
            *norm = K1 * (1.0 - B + B * length / collection.mean_length.max(1.0));
        }
        Self { weight: inverse * times * (K1 + 1.0), norms }
    }

    /// For `count` occurrences in a window whose length has this code.
    pub(crate) fn score(&self, count: u32, length_code: u8) -> f32 {
        #[allow(clippy::cast_precision_loss)]
        let count = count as f32;
        self.weight * count / (count + self.norms[usize::from(length_code)])
    }
}

/// The inverse document frequency.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn inverse_frequency(collection: Collection, windows_with: u64) -> f32 {
    let (all, with) = (collection.windows as f32, windows_with as f32);
    (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_short_windows_and_repetition_score_higher() {
        let collection = Collection { windows: 1_000, mean_length: 100.0 };
        let scorer = |with| Scorer::new(collection, inverse_frequency(collection, with), 1.0, u32::from);
        assert!(scorer(1).score(1, 100) > scorer(500).score(1, 100));
        assert!(scorer(1).score(1, 50) > scorer(1).score(1, 200));
        assert!(scorer(1).score(2, 100) > scorer(1).score(1, 100));
        assert!(scorer(1_000).score(1, 100) >= 0.0);
    }

    #[test]
    fn the_score_is_that_of_the_formula() {
        let collection = Collection { windows: 10, mean_length: 10.0 };
        let inverse = inverse_frequency(collection, 2);
        assert!((inverse - (1.0_f32 + 8.5 / 2.5).ln()).abs() < 1e-6);
        let score = Scorer::new(collection, inverse, 1.0, u32::from).score(3, 20);
        assert!((score - inverse * 3.0 * 2.6 / (3.0 + 1.6 * (0.25 + 0.75 * 2.0))).abs() < 1e-5);
    }
}
