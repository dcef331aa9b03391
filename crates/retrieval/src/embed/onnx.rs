//! Writing an ONNX graph (onnx.proto3, IR version 8) in protocol buffers' wire format: only what [`super::bert`] needs.

/// A graph under construction. Values are named by strings; each operator's output has the name it is given.
#[derive(Default)]
pub(super) struct Graph {
    body: Vec<u8>,
    count: usize,
}

/// An attribute of an operator.
pub(super) enum Attribute<'a> {
    Int(&'a str, i64),
    Ints(&'a str, &'a [i64]),
    Float(&'a str, f32),
}

/// Element types (TensorProto.DataType).
#[derive(Clone, Copy)]
pub(super) enum Element {
    Float = 1,
    Int8 = 3,
    Int64 = 7,
}

/// A size of an input: known, or known by name.
pub(super) enum Dim<'a> {
    Size(i64),
    Named(&'a str),
}

impl Graph {
    pub(super) fn input(&mut self, name: &str, element: Element, dims: &[Dim<'_>]) {
        let value = value_info(name, element, dims);
        message(&mut self.body, 11, &value);
    }

    pub(super) fn output(&mut self, name: &str, dims: &[Dim<'_>]) {
        let value = value_info(name, Element::Float, dims);
        message(&mut self.body, 12, &value);
    }

    /// Adds an operator with one output and returns the output's name.
    pub(super) fn op(&mut self, kind: &str, inputs: &[&str], attributes: &[Attribute<'_>]) -> String {
        let [output] = self.ops(kind, inputs, attributes);
        output
    }

    /// Adds an operator with several outputs.
    pub(super) fn ops<const N: usize>(
        &mut self,
        kind: &str,
        inputs: &[&str],
        attributes: &[Attribute<'_>],
    ) -> [String; N] {
        self.count += 1;
        let outputs: [String; N] = std::array::from_fn(|place| format!("{kind}_{}_{place}", self.count));
        let mut node = Vec::new();
        for input in inputs {
            message(&mut node, 1, input.as_bytes());
        }
        for output in &outputs {
            message(&mut node, 2, output.as_bytes());
        }
        message(&mut node, 3, format!("{kind}_{}", self.count).as_bytes());
        message(&mut node, 4, kind.as_bytes());
        for attribute in attributes {
            message(&mut node, 5, &encoded(attribute));
        }
        message(&mut self.body, 1, &node);
        outputs
    }

    pub(super) fn floats(&mut self, name: &str, dims: &[usize], values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Float, dims, &bytes);
    }

    pub(super) fn int8s(&mut self, name: &str, dims: &[usize], values: &[i8]) {
        let bytes: Vec<u8> = values.iter().map(|value| value.cast_unsigned()).collect();
        self.constant(name, Element::Int8, dims, &bytes);
    }

    pub(super) fn int64s(&mut self, name: &str, values: &[i64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Int64, &[values.len()], &bytes);
    }

    fn constant(&mut self, name: &str, element: Element, dims: &[usize], bytes: &[u8]) {
        let mut tensor = Vec::with_capacity(bytes.len() + 64);
        for dim in dims {
            number(&mut tensor, 1, *dim as u64);
        }
        number(&mut tensor, 2, element as u64);
        message(&mut tensor, 8, name.as_bytes());
        message(&mut tensor, 9, bytes);
        message(&mut self.body, 5, &tensor);
    }

    /// The whole model for the given version of the standard's operators.
    pub(super) fn into_model(mut self, opset: u64) -> Vec<u8> {
        message(&mut self.body, 2, b"graph");
        let mut version = Vec::new();
        number(&mut version, 2, opset);
        let mut model = Vec::with_capacity(self.body.len() + 64);
        number(&mut model, 1, 8);
        message(&mut model, 7, &self.body);
        message(&mut model, 8, &version);
        model
    }
}

fn encoded(attribute: &Attribute<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match attribute {
        Attribute::Int(name, value) => {
            message(&mut out, 1, name.as_bytes());
            number(&mut out, 3, value.cast_unsigned());
            number(&mut out, 20, 2);
        }
        Attribute::Ints(name, values) => {
            message(&mut out, 1, name.as_bytes());
            for value in *values {
                number(&mut out, 8, value.cast_unsigned());
            }
            number(&mut out, 20, 7);
        }
        Attribute::Float(name, value) => {
            message(&mut out, 1, name.as_bytes());
            varint(&mut out, 2 << 3 | 5);
            out.extend_from_slice(&value.to_le_bytes());
            number(&mut out, 20, 1);
        }
    }
    out
}

fn value_info(name: &str, element: Element, dims: &[Dim<'_>]) -> Vec<u8> {
    let mut shape = Vec::new();
    for dim in dims {
        let mut one = Vec::new();
        match dim {
            Dim::Size(size) => number(&mut one, 1, size.cast_unsigned()),
            Dim::Named(name) => message(&mut one, 2, name.as_bytes()),
        }
        message(&mut shape, 1, &one);
    }
    let mut tensor = Vec::new();
    number(&mut tensor, 1, element as u64);
    message(&mut tensor, 2, &shape);
    let mut kind = Vec::new();
    message(&mut kind, 1, &tensor);
    let mut value = Vec::new();
    message(&mut value, 1, name.as_bytes());
    message(&mut value, 2, &kind);
    value
}

/// A field of variable length: a message, a string or bytes.
fn message(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    #[allow(clippy::cast_possible_truncation)] // below 0x80
    out.push(value as u8);
}
