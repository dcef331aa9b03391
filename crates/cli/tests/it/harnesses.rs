//! The real Codex, Claude Code and opencode in a sandbox of this machine, through the proxy, against a scripted model server
//! behind real TLS. Each is looked for in `BASTION_TEST_CODEX` and the like, then in `PATH`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;

use crate::local::{open_to_all, users};
use crate::model_server::{Script, Server};
use crate::support::{Machine, Ran};

/// TLS in front of the model server: what the policy lists and the proxy checks.
struct Front {
    port: u16,
    root: String,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Front {
    fn before(server: u16) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serve = async {
                    while let Ok((outside, _)) = listener.accept().await {
                        let acceptor = acceptor.clone();
                        tokio::spawn(async move {
                            let mut tls = acceptor.accept(outside).await?;
                            let mut inside = tokio::net::TcpStream::connect(("127.0.0.1", server)).await?;
                            tokio::io::copy_bidirectional(&mut tls, &mut inside).await
                        });
                    }
                };
                tokio::select! { () = serve => {}, _ = stopped => {} }
            });
        });
        Self { port, root: made.cert.pem(), _stop: stop }
    }
}

/// The harness's program, where this machine's user can run it.
fn program(name: &str, machine: &Machine) -> Option<PathBuf> {
    let variable = format!("BASTION_TEST_{}", name.to_uppercase());
    let named = std::env::var_os(&variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = named.into_iter().chain(std::env::split_paths(&path).map(|dir| dir.join(name)));
    let Some(found) = places.find(|path| path.is_file()) else {
        println!("SKIPPED: no {name} program in {variable} or PATH");
        return None;
    };
    let reached =
        machine.as_user(Path::new("test")).arg("-x").arg(&found).status().is_ok_and(|status| status.success());
    if !reached {
        println!("SKIPPED: {} is out of reach for an ordinary user", found.display());
        return None;
    }
    Some(found)
}

fn one_cycle(name: &str, key: &str, shape: &str, config: impl Fn(&Machine, u16) -> Vec<String>) {
    for user in users() {
        let Some(machine) = user() else { continue };
        let Some(program) = program(name, &machine) else { continue };
        let search = "touch /sandbox/ran; printf 'planted-%s' control > /tmp/c; grep -rhsao 'planted-[a-z][a-z0-9-]*' /sandbox /etc /tmp /run /opt/bastion-harness/bin; \
                      cat /proc/*/environ /proc/*/cmdline 2>/dev/null | grep -a 'planted-[a-z]'; env | grep 'planted-[a-z]'; echo searched";
        let last = "Done.\nOPENSHELL_AGENT_RESULT {\"status\":\"complete\",\"reason\":\"asked\"}".to_owned();
        let server = Server::start(Script { command: Some(search.to_owned()), last: vec![last], ..Script::default() });
        let front = Front::before(server.port);
        let secret = format!("planted-{name}-{}", std::process::id());
        let profile = format!(
            "id: model\ncredentials:\n  - {{name: KEY, env_vars: [{key}], required: true, {shape}}}\nendpoints:\n  \
             - {{host: localhost, port: {}, protocol: rest, access: read-write, enforcement: enforce}}\n",
            front.port
        );
        let manifest = json!({
            "id": format!("real-{name}"),
            "harness": {"supported": {name: {"model": if name == "opencode" { "mock/mock-model" } else { "mock-model" }}}},
            "runtime": {"cycle_timeout_seconds": 150},
            "profile_paths": ["providers"],
            "providers": [{"id": "model", "name": "model", "profile": "model", "credential_mode": "explicit", "credentials": [
                {"env": key, "export": true, "source": {"kind": "file_json", "path": machine.path("secret/key.json"), "query": "key"}}]}],
            "prompt_template": "prompt.md",
        });
        let files = [
            ("agent.yaml", manifest.to_string()),
            ("prompt.md", "THE-PROMPT: {{USER_PROMPT}}\n".to_owned()),
            ("providers/model.yaml", profile),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let agent = machine.folder("agent", &files);
        open_to_all(&agent);
        open_to_all(&machine.folder("roots", &[("root.pem", &front.root)]));
        machine.folder("secret", &[("key.json", &json!({ "key": secret }).to_string())]);
        machine.give(&machine.path("secret"));

        let mut args: Vec<String> = ["launch", "--trust", "--keep", "--agent"].map(str::to_owned).to_vec();
        args.push(agent.display().to_string());
        args.extend(["--harness-bin".to_owned(), program.display().to_string()]);
        args.extend(config(&machine, front.port));
        args.push("do it".to_owned());
        let mut command = machine.command(&args);
        command.env("BASTION_EGRESS_CA", machine.path("roots/root.pem")).stdin(Stdio::null());
        let ran: Ran = command.output().unwrap().into();
        let ran = ran.ok();
        assert!(ran.err.contains("openshell-agent: complete (asked)"), "{}\n{}", ran.out, ran.err);

        server.requests(|requests| {
            let model: Vec<_> = requests.iter().filter(|request| request.body.contains("THE-PROMPT")).collect();
            assert!(model.len() >= 2, "a question, and one more with what the tool said");
            for request in &model {
                assert_eq!(request.authorization.trim_start_matches("Bearer "), secret, "{}", request.path);
            }
            let said = model.last().unwrap();
            assert!(said.body.contains("searched"), "the tool ran");
            assert!(said.body.contains("planted-control"), "the control: the search finds what is there");
            assert!(!said.body.contains(&secret), "the secret was found inside: {}", said.body);
        });
        let runs = machine.state().join("runs");
        let sandbox =
            runs.read_dir().unwrap().map(|entry| entry.unwrap().path().join("sandbox")).find(|path| path.is_dir());
        assert!(sandbox.unwrap().join("ran").exists());
        assert!(!ran.out.contains(&secret) && !ran.err.contains(&secret));
        let look = |place: &Path| Command::new("grep").args(["-rlsa", &secret]).arg(place).output().unwrap().stdout;
        assert_eq!(String::from_utf8_lossy(&look(&machine.state())), "");
        assert!(!look(&machine.path("secret")).is_empty(), "the control: it can be found");
    }
}

#[test]
fn codex_works_with_a_key_that_it_never_sees() {
    one_cycle("codex", "OPENAI_API_KEY", "auth_style: bearer, header_name: authorization", |machine, port| {
        let config = format!(
            "model_provider = 'px'\n[analytics]\nenabled = false\n[model_providers.px]\nname = 'px'\n\
             base_url = 'https://localhost:{port}/v1'\nwire_api = 'responses'\nenv_key = 'OPENAI_API_KEY'\n\
             request_max_retries = 0\nstream_max_retries = 0\n"
        );
        let file = machine.folder("codex", &[("config.toml", &config)]).join("config.toml");
        open_to_all(file.parent().unwrap());
        vec!["--bind".to_owned(), format!("{}:/sandbox/home/.codex/config.toml", file.display())]
    });
}

#[test]
fn claude_works_with_a_key_that_it_never_sees() {
    one_cycle("claude", "ANTHROPIC_API_KEY", "auth_style: header, header_name: x-api-key", |_, port| {
        vec!["--env".to_owned(), format!("ANTHROPIC_BASE_URL=https://localhost:{port}")]
    });
}

#[test]
fn opencode_works_with_a_key_that_it_never_sees() {
    one_cycle("opencode", "MODEL_KEY", "auth_style: bearer, header_name: authorization", |_, port| {
        let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "mock",
            "options": {"baseURL": format!("https://localhost:{port}/v1"), "apiKey": "{env:MODEL_KEY}"},
            "models": {"mock-model": {"name": "mock-model"}}});
        let config = json!({"autoupdate": false, "share": "disabled", "small_model": "mock/mock-model",
            "provider": {"mock": provider}});
        let env = |text: String| ["--env".to_owned(), text];
        [env(format!("OPENCODE_CONFIG_CONTENT={config}")), env("OPENCODE_DISABLE_MODELS_FETCH=1".to_owned())].concat()
    });
}
