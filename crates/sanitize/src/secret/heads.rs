//! The heads by which services mark their keys, as their documentation and secret-scanning partners' lists give them.

use std::sync::LazyLock;

/// The signs of a key's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Alnum,
    /// Letters, digits, `_`.
    Word,
    /// Letters, digits, `_`, `-`.
    Url,
    /// Letters, digits, `_`, `-`, `.`.
    Dotted,
    Hex,
    /// Capitals and digits.
    Upper,
}

impl Body {
    pub(super) const fn takes(self, b: u8) -> bool {
        match self {
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Word => b.is_ascii_alphanumeric() || b == b'_',
            Self::Url => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'),
            Self::Hex => b.is_ascii_hexdigit(),
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
        }
    }
}

/// A head and what follows it; lengths are of the body, in signs.
pub(super) struct Head {
    pub(super) head: &'static str,
    pub(super) body: Body,
    pub(super) min: usize,
    pub(super) max: usize,
}

const fn h(head: &'static str, body: Body, min: usize, max: usize) -> Head {
    Head { head, body, min, max }
}

/// The heads that begin with a byte.
pub(super) fn beginning(first: u8) -> &'static [&'static Head] {
    static BY_FIRST: LazyLock<Vec<Vec<&Head>>> = LazyLock::new(|| {
        let mut by_first = vec![Vec::new(); 256];
        HEADS.iter().for_each(|head| by_first[usize::from(head.head.as_bytes()[0])].push(head));
        by_first
    });
    &BY_FIRST[usize::from(first)]
}

const LONG: usize = 512;

#[rustfmt::skip]
pub(super) const HEADS: &[Head] = &[
    // Amazon Web Services: key ids of users, roles, groups, temporary credentials.
    h("AKIA", Body::Upper, 16, 16), h("ASIA", Body::Upper, 16, 16), h("ABIA", Body::Upper, 16, 16), h("ACCA", Body::Upper, 16, 16), h("AROA", Body::Upper, 16, 17), h("AIDA", Body::Upper, 16, 17), h("AGPA", Body::Upper, 16, 17), h("ANPA", Body::Upper, 16, 17),
    // GitHub, GitLab, Bitbucket and other forges.
    h("ghp_", Body::Alnum, 30, 255), h("gho_", Body::Alnum, 30, 255), h("ghu_", Body::Alnum, 30, 255), h("ghs_", Body::Alnum, 30, 255), h("ghr_", Body::Alnum, 30, 255), h("github_pat_", Body::Word, 22, 255),
    h("glpat-", Body::Dotted, 20, 255), h("gldt-", Body::Url, 20, 64), h("glrt-", Body::Dotted, 20, 255), h("glcbt-", Body::Url, 20, 64), h("glptt-", Body::Url, 20, 64), h("glft-", Body::Url, 20, 64), h("glsoat-", Body::Url, 20, 64), h("glimt-", Body::Url, 20, 64), h("glagent-", Body::Url, 20, 64), h("gloas-", Body::Url, 20, 64),
    h("ATATT3", Body::Url, 60, LONG), h("ATBB", Body::Alnum, 28, 40),
    // Slack, Discord, Telegram and other messengers.
    h("xoxb-", Body::Url, 16, 255), h("xoxp-", Body::Url, 16, 255), h("xoxa-", Body::Url, 16, 255), h("xoxr-", Body::Url, 16, 255), h("xoxs-", Body::Url, 16, 255), h("xoxe-", Body::Url, 16, 255), h("xoxc-", Body::Url, 16, 255), h("xoxd-", Body::Url, 16, 255), h("xoxo-", Body::Url, 16, 255), h("xapp-", Body::Url, 16, 255),
    // Payment.
    h("sk_live_", Body::Alnum, 16, 255), h("sk_test_", Body::Word, 16, 255), h("rk_live_", Body::Alnum, 16, 255), h("rk_test_", Body::Alnum, 16, 255), h("whsec_", Body::Alnum, 24, 255), h("sq0atp-", Body::Url, 22, 64), h("sq0csp-", Body::Url, 40, 64), h("FLWSECK_TEST-", Body::Url, 12, 64), h("FLWSECK-", Body::Url, 12, 64), h("shpat_", Body::Hex, 32, 64), h("shpca_", Body::Hex, 32, 64), h("shppa_", Body::Hex, 32, 64), h("shpss_", Body::Hex, 32, 64), h("rzp_live_", Body::Alnum, 14, 64), h("rzp_test_", Body::Alnum, 14, 64),
    // Google.
    h("AIza", Body::Url, 35, 35), h("GOCSPX-", Body::Url, 28, 28), h("ya29.", Body::Dotted, 30, LONG),
    // Language models.
    h("sk-proj-", Body::Url, 20, 255), h("sk-svcacct-", Body::Url, 20, 255), h("sk-admin-", Body::Url, 20, 255), h("sk-None-", Body::Url, 20, 255), h("sk-ant-", Body::Url, 20, 255), h("sk-or-v1-", Body::Hex, 32, 128), h("sk-", Body::Alnum, 20, 128), h("sk-lf-", Body::Url, 20, 64), h("hf_", Body::Alnum, 30, 64), h("api_org_", Body::Alnum, 30, 64), h("gsk_", Body::Alnum, 40, 64), h("r8_", Body::Alnum, 36, 48), h("xai-", Body::Alnum, 60, 128), h("pplx-", Body::Alnum, 40, 64), h("lsv2_pt_", Body::Word, 32, 64), h("lsv2_sk_", Body::Word, 32, 64), h("pcsk_", Body::Word, 40, 128), h("nvapi-", Body::Url, 40, 128), h("fw_", Body::Alnum, 22, 48), h("tvly-", Body::Url, 20, 64),
    // Packages.
    h("npm_", Body::Alnum, 36, 36), h("pypi-", Body::Url, 50, LONG), h("rubygems_", Body::Hex, 48, 48), h("oy2", Body::Alnum, 43, 43), h("dckr_pat_", Body::Url, 24, 64), h("dckr_oat_", Body::Url, 24, 64), h("cio", Body::Alnum, 32, 32), h("CLOJARS_", Body::Hex, 60, 60),
    // Mail.
    h("SG.", Body::Dotted, 40, 128), h("key-", Body::Hex, 32, 32), h("xkeysib-", Body::Url, 64, 128), h("xsmtpsib-", Body::Url, 64, 128), h("re_", Body::Word, 30, 48), h("pm-", Body::Hex, 32, 48),
    // Clouds and infrastructure.
    h("dop_v1_", Body::Hex, 64, 64), h("doo_v1_", Body::Hex, 64, 64), h("dor_v1_", Body::Hex, 64, 64), h("dapi", Body::Hex, 32, 34), h("hvs.", Body::Url, 24, 255), h("hvb.", Body::Url, 24, 255), h("hvr.", Body::Url, 24, 255), h("dp.pt.", Body::Alnum, 40, 48), h("dp.st.", Body::Dotted, 40, 64), h("HRKU-", Body::Url, 32, 128), h("LTAI", Body::Alnum, 16, 24), h("AKID", Body::Alnum, 28, 36), h("tskey-", Body::Url, 20, 128), h("pscale_tkn_", Body::Dotted, 32, 64), h("pscale_pw_", Body::Dotted, 32, 64), h("sbp_", Body::Hex, 40, 64), h("pul-", Body::Hex, 40, 40), h("fo1_", Body::Url, 40, 64), h("nfp_", Body::Alnum, 36, 48), h("vercel_", Body::Alnum, 24, 64), h("cfpat-", Body::Url, 24, 64), h("rnd_", Body::Alnum, 28, 48),
    // Watching and working.
    h("glsa_", Body::Word, 32, 64), h("glc_", Body::Url, 32, 400), h("NRAK-", Body::Upper, 27, 27), h("NRII-", Body::Url, 32, 32), h("sntrys_", Body::Url, 40, LONG), h("sntryu_", Body::Hex, 64, 64), h("phc_", Body::Alnum, 40, 48), h("phx_", Body::Alnum, 40, 48), h("lin_api_", Body::Alnum, 40, 40), h("ntn_", Body::Alnum, 40, 60), h("secret_", Body::Alnum, 43, 43), h("figd_", Body::Url, 40, 64), h("PMAK-", Body::Url, 50, 64), h("tfp_", Body::Url, 40, 64), h("squ_", Body::Hex, 40, 40), h("sqp_", Body::Hex, 40, 40), h("sqa_", Body::Hex, 40, 40), h("bkua_", Body::Hex, 40, 40), h("pnu_", Body::Alnum, 36, 36), h("rdme_", Body::Alnum, 60, 80), h("sl.", Body::Url, 60, LONG), h("EZAK", Body::Alnum, 54, 54), h("shippo_live_", Body::Hex, 40, 40), h("aio_", Body::Alnum, 28, 28), h("dt0c01.", Body::Dotted, 80, 120), h("SK", Body::Hex, 32, 32), h("EAACEdEose0cBA", Body::Alnum, 20, LONG),
    // Keys of people.
    h("AGE-SECRET-KEY-1", Body::Upper, 58, 58),
];
