//! A vector as its direction in eight bits a number.

/// A vector made small: number `i` of the direction is `values[i] * scale`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantized {
    pub(crate) scale: f32,
    pub(crate) values: Vec<i8>,
}

/// The direction of `vector`; none where a number is not finite. A vector of zeros stays one.
pub(crate) fn quantize(vector: &[f32]) -> Option<Quantized> {
    let unit = unit(vector)?;
    let largest = unit.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return Some(Quantized { scale: 0.0, values: vec![0; vector.len()] });
    }
    let scale = largest / 127.0;
    #[allow(clippy::cast_possible_truncation)] // held to ±127 by the scale
    let values = unit.iter().map(|value| (value / scale).round() as i8).collect();
    Some(Quantized { scale, values })
}

/// The vector made one long; none where a number is not finite.
pub(crate) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let squares: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    if !squares.is_finite() {
        return None;
    }
    let length = squares.sqrt();
    #[allow(clippy::cast_possible_truncation)]
    Some(vector.iter().map(|value| if length == 0.0 { 0.0 } else { (f64::from(*value) / length) as f32 }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_direction_is_kept_and_closely() {
        let vector = [3.0, -4.0, 0.5, 0.0];
        let small = quantize(&vector).unwrap();
        assert_eq!(small, quantize(&vector.map(|value| value * 1_000.0)).unwrap());
        for (value, unit) in small.values.iter().zip(unit(&vector).unwrap()) {
            assert!((f32::from(*value) * small.scale - unit).abs() <= small.scale / 2.0 + 1e-6);
        }
    }

    #[test]
    fn zeros_stay_and_what_is_no_number_is_refused() {
        assert_eq!(quantize(&[0.0, 0.0]).unwrap(), Quantized { scale: 0.0, values: vec![0, 0] });
        assert!(quantize(&[1.0, f32::NAN]).is_none());
        assert!(quantize(&[f32::INFINITY, 1.0]).is_none());
        assert!(quantize(&[f32::MAX, f32::MAX]).is_some());
    }
}
