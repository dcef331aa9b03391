//! Reading a file of weights: safetensors (a length of eight bytes, a JSON table of names, shapes and places, then numbers).

use std::collections::HashMap;

use serde::Deserialize;

use super::EmbedError;

/// The weights of a file, by name. All that is read is checked against the file's size.
pub(super) struct Weights<'a> {
    table: HashMap<String, Entry>,
    numbers: &'a [u8],
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    /// First byte and one past the last, from the end of the table.
    data_offsets: [usize; 2],
}

impl<'a> Weights<'a> {
    pub(super) fn read(file: &'a [u8]) -> Result<Self, EmbedError> {
        let bad = || EmbedError::Weights { what: "no safetensors file" };
        let (length, rest) = file.split_first_chunk::<8>().ok_or_else(bad)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| bad())?;
        let (table, numbers) = rest.split_at_checked(length).ok_or_else(bad)?;
        let mut table: HashMap<String, serde_json::Value> = serde_json::from_slice(table).map_err(|_| bad())?;
        table.remove("__metadata__");
        let table =
            table.into_iter().map(|(name, entry)| Ok((name, serde_json::from_value(entry).map_err(|_| bad())?)));
        Ok(Self { table: table.collect::<Result<_, EmbedError>>()?, numbers })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    pub(super) fn matrix(&self, name: &str) -> Result<([usize; 2], Vec<f32>), EmbedError> {
        let (shape, values) = self.floats(name)?;
        let shape =
            <[usize; 2]>::try_from(shape).map_err(|_| EmbedError::Weights { what: "a matrix has another shape" })?;
        Ok((shape, values))
    }

    pub(super) fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>, EmbedError> {
        let (_, values) = self.floats(name)?;
        if values.len() == len { Ok(values) } else { Err(EmbedError::Weights { what: "a vector has another size" }) }
    }

    fn floats(&self, name: &str) -> Result<(&[usize], Vec<f32>), EmbedError> {
        let entry = self.table.get(name).ok_or(EmbedError::Weights { what: "a part is missing" })?;
        if entry.dtype != "F32" {
            return Err(EmbedError::Weights { what: "not of 32 bits" });
        }
        let [start, end] = entry.data_offsets;
        let bytes = self.numbers.get(start..end).ok_or(EmbedError::Weights { what: "a part is cut off" })?;
        let count = entry.shape.iter().try_fold(4_usize, |size, dim| size.checked_mul(*dim));
        if count != Some(bytes.len()) {
            return Err(EmbedError::Weights { what: "a part has another size than its shape" });
        }
        Ok((
            &entry.shape,
            bytes.chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap_or_default())).collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(table: &str, numbers: &[u8]) -> Vec<u8> {
        [&(table.len() as u64).to_le_bytes(), table.as_bytes(), numbers].concat()
    }

    #[test]
    fn numbers_are_read_with_their_shape() {
        let file = file(
            r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#,
            &[0, 0, 128, 63, 0, 0, 0, 64],
        );
        let weights = Weights::read(&file).unwrap();
        assert_eq!(weights.matrix("a").unwrap(), ([1, 2], vec![1.0, 2.0]));
        assert!(weights.has("a") && !weights.has("b") && weights.vector("a", 3).is_err());
    }

    #[test]
    fn a_file_that_lies_is_refused() {
        for table in [
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}"#,
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#,
            r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#,
            r#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}}"#,
            r#"{"a":{"dtype":"F32","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,8]}}"#,
        ] {
            assert!(Weights::read(&file(table, &[0; 8])).unwrap().vector("a", 2).is_err(), "{table}");
        }
        for file in [
            vec![],
            vec![0; 7],
            file("{", &[]),
            file("[]", &[]),
            file(r#"{"a":1}"#, &[]),
            u64::MAX.to_le_bytes().to_vec(),
        ] {
            assert!(Weights::read(&file).is_err());
        }
    }
}
