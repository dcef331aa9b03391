//! Providers, their credentials and how these are refreshed.

use bastion_trust::fields::{Fields, Read, list, string};
use bastion_trust::yaml::Node;

use super::{component, flag, once, path_of, plain, text, variable};
use crate::agent::{Credential, CredentialMode, Material, Provider, Refresh, Source};

/// The strategies that gateways know.
const STRATEGIES: &[&str] =
    &["oauth2-refresh-token", "oauth2-client-credentials", "google-service-account-jwt", "aws-sts-assume-role"];

pub(super) fn providers(node: Option<&Node>) -> Read<Vec<Provider>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut providers: Vec<Provider> = Vec::new();
    for node in list(node, "providers")? {
        let provider = provider(node)?;
        once(node, "the provider", &provider.id, &providers, |other| &other.id)?;
        providers.push(provider);
    }
    Ok(providers)
}

fn provider(node: &Node) -> Read<Provider> {
    let known = ["id", "name", "profile", "harness", "credential_mode", "credentials", "refresh"];
    let fields = Fields::of(node, "a provider", &known)?;
    let mode = match fields.get("credential_mode") {
        None => CredentialMode::Explicit,
        Some(node) => match string(node, "credential_mode")? {
            "explicit" => CredentialMode::Explicit,
            "from_existing" => CredentialMode::FromExisting,
            _ => return Err(node.error("`credential_mode` must be explicit or from_existing")),
        },
    };
    let mut credentials: Vec<Credential> = Vec::new();
    if let Some(node) = fields.get("credentials") {
        for node in list(node, "credentials")? {
            let credential = credential(node)?;
            once(node, "the credential", &credential.env, &credentials, |other| &other.env)?;
            credentials.push(credential);
        }
    }
    Ok(Provider {
        id: component(fields.required("id")?, "id")?,
        name: component(fields.required("name")?, "name")?,
        profile: component(fields.required("profile")?, "profile")?,
        harness: text(&fields, "harness")?,
        mode,
        credentials,
        refresh: fields.get("refresh").map(refresh).transpose()?,
    })
}

fn credential(node: &Node) -> Read<Credential> {
    let fields = Fields::of(node, "a credential", &["env", "export", "source"])?;
    Ok(Credential {
        env: variable(fields.required("env")?, "env")?,
        export: flag(&fields, "export", true)?,
        source: source(fields.required("source")?)?,
    })
}

fn source(node: &Node) -> Read<Source> {
    let any = Fields::of(node, "a source", &["kind", "command", "path", "query", "value"])?;
    let kind = any.required("kind")?;
    match string(kind, "kind")? {
        "host_command" => {
            let fields = Fields::of(node, "a host_command", &["kind", "command"])?;
            let command = string(fields.required("command")?, "command")?;
            if command.trim().is_empty() || command.contains('\0') {
                return Err(node.error("`command` is no command"));
            }
            Ok(Source::HostCommand { command: command.to_owned() })
        }
        "file_json" => {
            let fields = Fields::of(node, "a file_json", &["kind", "path", "query"])?;
            let query_node = fields.required("query")?;
            let query = string(query_node, "query")?;
            if query.split('.').any(str::is_empty) {
                return Err(query_node.error("`query` must be keys parted by dots"));
            }
            Ok(Source::FileJson { path: path_of(fields.required("path")?, "path")?, query: query.to_owned() })
        }
        "value" => {
            let fields = Fields::of(node, "a value", &["kind", "value"])?;
            Ok(Source::Value { value: plain(fields.required("value")?, "value")? })
        }
        _ => Err(kind.error("`kind` must be host_command, file_json or value")),
    }
}

fn refresh(node: &Node) -> Read<Refresh> {
    let fields = Fields::of(node, "`refresh`", &["credential_key", "strategy", "materials"])?;
    let strategy_node = fields.required("strategy")?;
    let strategy = string(strategy_node, "strategy")?;
    if !STRATEGIES.contains(&strategy) {
        return Err(strategy_node.error(format!("`strategy` must be one of {}", STRATEGIES.join(", "))));
    }
    let mut materials: Vec<Material> = Vec::new();
    if let Some(node) = fields.get("materials") {
        for node in list(node, "materials")? {
            let material = material(node)?;
            once(node, "the material", &material.name, &materials, |other| &other.name)?;
            materials.push(material);
        }
    }
    Ok(Refresh {
        credential_key: component(fields.required("credential_key")?, "credential_key")?,
        strategy: strategy.to_owned(),
        materials,
    })
}

fn material(node: &Node) -> Read<Material> {
    let fields = Fields::of(node, "a material", &["name", "secret", "value", "source"])?;
    let source = match (fields.get("value"), fields.get("source")) {
        (Some(value), None) => Source::Value { value: plain(value, "value")? },
        (None, Some(node)) => source(node)?,
        _ => return Err(node.error("a material has either `value` or `source`")),
    };
    Ok(Material { name: component(fields.required("name")?, "name")?, secret: flag(&fields, "secret", false)?, source })
}
