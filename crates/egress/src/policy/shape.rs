//! How does a profile's credential enter a request, and how is it refreshed?

use bastion_trust::MalformedError;
use bastion_trust::yaml::Node;

use super::fields::{self, Fields};

/// How a credential enters and stays fresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// `None`: the sandbox gets its plain value; it is an identifier, no secret.
    pub style: Option<Style>,
    /// Where it is refreshed.
    pub refresh: Option<RefreshShape>,
}

/// Where in a request the placeholder stands. Header names are lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // a header or a query parameter
pub enum Style {
    /// `header: Bearer PLACEHOLDER`
    Bearer { header: String },
    /// `name: PLACEHOLDER`
    Header { name: String },
    /// `header: Basic base64(…PLACEHOLDER…)`
    Basic { header: String },
    /// `?parameter=PLACEHOLDER`
    Query { parameter: String },
}

impl Style {
    /// The header that carries it, where it is one.
    pub fn header(&self) -> Option<&str> {
        match self {
            Self::Bearer { header } | Self::Basic { header } | Self::Header { name: header } => Some(header),
            Self::Query { .. } => None,
        }
    }
}

/// How a token is refreshed (OAuth 2 refresh token).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshShape {
    /// An `https` address, or `http` on loopback.
    pub token_url: String,
    /// So many seconds ahead of its end.
    pub refresh_before_seconds: u64,
    /// After so many seconds it is taken for ended, whatever the server said.
    pub max_lifetime_seconds: Option<u64>,
}

/// Reads one element of a profile's `credentials`: its variables and its shape.
pub(super) fn read(node: &Node, warnings: &mut Vec<String>) -> Result<(Vec<String>, Shape), MalformedError> {
    let fields = Fields::of(node, "a credential")?;
    let known = ["name", "description", "env_vars", "required", "auth_style", "header_name", "query_param", "refresh"];
    for key in fields.others(&known) {
        warnings.push(format!("`{key}` of a credential has no effect here"));
    }
    let envs = fields.texts("env_vars")?;
    let header = |default: Option<&str>| -> Result<String, MalformedError> {
        let name = fields
            .text("header_name")?
            .or(default)
            .ok_or_else(|| node.error("this `auth_style` needs a `header_name`"))?;
        let name: http::HeaderName =
            name.parse().map_err(|_| node.error("`header_name` is not the name of a header"))?;
        if ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"]
            .contains(&name.as_str())
        {
            return Err(node.error("`header_name` is a header that frames the request; a credential can't stand there"));
        }
        Ok(name.as_str().to_owned())
    };
    let style = match fields.text("auth_style")? {
        None | Some("") => None,
        Some("bearer") => Some(Style::Bearer { header: header(Some("authorization"))? }),
        Some("basic") => Some(Style::Basic { header: header(Some("authorization"))? }),
        Some("header") => Some(Style::Header { name: header(None)? }),
        Some("query") => {
            let parameter = fields.text("query_param")?.filter(|name| !name.is_empty());
            let parameter = parameter.ok_or_else(|| node.error("`auth_style: query` needs a `query_param`"))?;
            Some(Style::Query { parameter: parameter.to_owned() })
        }
        Some(_) => {
            let place = fields.at("auth_style");
            return Err(
                place.error("`auth_style` is `bearer`, `header`, `basic` or `query`; no other can be swapped here yet")
            );
        }
    };
    let refresh = fields.node("refresh").map(refresh).transpose()?.flatten();
    Ok((envs, Shape { style, refresh }))
}

fn refresh(node: &Node) -> Result<Option<RefreshShape>, MalformedError> {
    let fields = Fields::of(node, "`refresh`")?;
    match fields.text("strategy")? {
        Some("static" | "external") => return Ok(None),
        Some("oauth2_refresh_token") => {}
        _ => {
            return Err(
                node.error("the local sandbox refreshes by `strategy: oauth2_refresh_token` only; not yet by others")
            );
        }
    }
    let token_url = fields.text("token_url")?.ok_or_else(|| node.error("`refresh` needs a `token_url`"))?;
    let safe = ["https://", "http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    if !safe.iter().any(|start| token_url.starts_with(start)) {
        return Err(fields.at("token_url").error("`token_url` must be an `https://` address"));
    }
    let number = |key| fields::whole(fields.node(key), key);
    Ok(Some(RefreshShape {
        token_url: token_url.to_owned(),
        refresh_before_seconds: number("refresh_before_seconds")?.unwrap_or(300),
        max_lifetime_seconds: number("max_lifetime_seconds")?,
    }))
}
