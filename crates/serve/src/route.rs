//! What is there to ask for, and who may ask for it? The table of serve.md, as code.

use bastion_trust::CommonName;
use bastion_trust::manifest::{Manifest, Op, Ops};
use jiff::Timestamp;

use crate::http::Method;
use crate::wire::v1;

/// Everything that has a route. Nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Search,
    ReadRange,
    Catalog,
    CatalogDirs,
    Status,
    Health,
}

impl Route {
    /// The route of a path; its spelling is exact.
    pub(crate) fn of(path: &str) -> Option<Self> {
        Some(match path {
            v1::SEARCH => Self::Search,
            v1::READ_RANGE => Self::ReadRange,
            v1::CATALOG => Self::Catalog,
            v1::CATALOG_DIRS => Self::CatalogDirs,
            v1::STATUS => Self::Status,
            v1::HEALTH => Self::Health,
            _ => return None,
        })
    }

    /// The operation's name in the audit.
    pub(crate) fn op(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::ReadRange => "read_range",
            Self::Catalog => "catalog",
            Self::CatalogDirs => "catalog_dirs",
            Self::Status => "status",
            Self::Health => "health",
        }
    }

    /// The one method that it takes.
    pub(crate) fn method(self) -> (Method, &'static str) {
        match self {
            Self::Search | Self::ReadRange => (Method::Post, "POST"),
            Self::Catalog | Self::CatalogDirs | Self::Status | Self::Health => (Method::Get, "GET"),
        }
    }

    /// Whether the manifest's mask and grants speak of it, and by which word.
    fn granted_by(self) -> Option<Op> {
        match self {
            Self::Search => Some(Op::Search),
            Self::ReadRange => Some(Op::ReadRange),
            _ => None,
        }
    }
}

/// What a peer is to this manifest, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Owner,
    /// With these operations, the mask not yet applied.
    Grantee(Ops),
    /// It chained, and that is all.
    Anyone,
}

impl Role {
    pub(crate) fn of(manifest: &Manifest, cn: Option<&CommonName>, now: Timestamp) -> Self {
        let Some(cn) = cn else { return Self::Anyone };
        if cn.as_str() == manifest.owner_host {
            return Self::Owner;
        }
        match manifest.grant(cn.as_str()) {
            Some(grant) if grant.holds_at(now) => Self::Grantee(grant.ops),
            _ => Self::Anyone,
        }
    }

    /// Whether this peer may use the route.
    pub(crate) fn may(self, route: Route, mask: Ops) -> bool {
        if route == Route::Health {
            return true;
        }
        match (self, route.granted_by()) {
            (Self::Owner, None) => true,
            (Self::Owner, Some(op)) => mask.contains(op),
            (Self::Grantee(ops), Some(op)) => mask.contains(op) && ops.contains(op),
            (Self::Grantee(_), None) | (Self::Anyone, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Route; 6] =
        [Route::Search, Route::ReadRange, Route::Catalog, Route::CatalogDirs, Route::Status, Route::Health];

    fn allowed(role: Role, mask: Ops) -> Vec<&'static str> {
        ALL.into_iter().filter(|route| role.may(*route, mask)).map(Route::op).collect()
    }

    #[test]
    fn each_role_gets_what_the_table_says() {
        let search = Ops::NONE.with(Op::Search);
        let read = Ops::NONE.with(Op::ReadRange);
        assert_eq!(
            allowed(Role::Owner, Ops::ALL),
            ["search", "read_range", "catalog", "catalog_dirs", "status", "health"]
        );
        assert_eq!(allowed(Role::Owner, search), ["search", "catalog", "catalog_dirs", "status", "health"]);
        assert_eq!(allowed(Role::Grantee(search), Ops::ALL), ["search", "health"]);
        assert_eq!(allowed(Role::Grantee(Ops::ALL), read), ["read_range", "health"]);
        assert_eq!(allowed(Role::Grantee(search), read), ["health"]);
        assert_eq!(allowed(Role::Anyone, Ops::ALL), ["health"]);
    }

    #[test]
    fn a_route_is_its_exact_path() {
        for route in ALL {
            let path = format!("/{}", route.op().replace("catalog_dirs", "catalog/dirs"));
            assert_eq!(Route::of(&path), Some(route));
            for other in
                [path.to_uppercase(), format!("{path}/"), format!("/{path}"), format!("{path}%20"), format!("/.{path}")]
            {
                assert_eq!(Route::of(&other), None, "{other}");
            }
        }
        for path in ["/", "", "/extract", "/sanitize/vault.db", "/vectors", "/catalog/../status"] {
            assert_eq!(Route::of(path), None);
        }
    }
}
