//! What is in the environment of a sandbox? Built from nothing: the agent's variables, placeholders, the proxy, the CA.

use super::harness;
use super::layout::SANDBOX;

/// Where the proxy is inside.
pub(crate) const PROXY: &str = "http://127.0.0.1:3128";
/// Where the certificates are inside: this machine's roots and the CA of the run.
pub(crate) const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Each has its own name for the file of roots.
const CA_VARIABLES: &[&str] = &[
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "CODEX_CA_CERTIFICATE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE",
];
/// What inside the sandbox is reached without the proxy: itself.
const ITSELF: &str = "localhost,127.0.0.1,::1";

/// The variables, with those of the launch last: they win. `loopback`: the policy lists a loopback host of this machine,
/// so that not even that name may go around the proxy.
pub(crate) fn of(own: &[(String, String)], loopback: bool) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| {
        env.retain(|(other, _)| other != name);
        env.push((name.to_owned(), value.to_owned()));
    };
    set("PATH", &format!("{}/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", harness::PLACE));
    set("HOME", &format!("{SANDBOX}/home"));
    set("USER", "agent");
    set("LOGNAME", "agent");
    set("SHELL", "/bin/sh");
    set("LANG", "C.UTF-8");
    set("TMPDIR", "/tmp");
    set("IS_SANDBOX", "1");
    set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    for (name, value) in own {
        set(name, value);
    }
    // after the agent's own: these are no wishes
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        set(name, PROXY);
    }
    for name in ["NO_PROXY", "no_proxy"] {
        set(name, if loopback { "" } else { ITSELF });
    }
    CA_VARIABLES.iter().for_each(|name| set(name, BUNDLE));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_there_once_and_the_proxy_is_no_wish() {
        let own = [("HOME".to_owned(), "/sandbox/x".to_owned()), ("https_proxy".to_owned(), "http://evil".to_owned())];
        let env = of(&own, false);
        let values = |name: &str| env.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect::<Vec<_>>();
        assert_eq!(values("HOME"), ["/sandbox/x"]);
        assert_eq!(values("https_proxy"), [PROXY]);
        assert_eq!(values("NO_PROXY"), [ITSELF]);
        assert_eq!(values("CODEX_CA_CERTIFICATE"), [BUNDLE]);
        assert!(of(&[], true).iter().any(|(name, value)| name == "no_proxy" && value.is_empty()));
    }
}
