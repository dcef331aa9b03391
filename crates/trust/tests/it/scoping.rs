//! Which paths are in scope: gitignore globs, built-in excludes, what brings them back, what wins.

use bastion_trust::{BUILTIN_EXCLUDES, Scope};

use crate::support::World;

/// The scope of one root `..` with these lines for the manifest and for the root.
fn scope(top: &str, root: &str) -> Scope {
    let world = World::new();
    world.write(&format!("v: 1\nid: a\nowner: {{host: h}}\nroots: [{{path: .., {root}}}, {{path: other}}]\n{top}\n"));
    world.gate().judge(&world.manifest(), true).unwrap().scope().clone()
}

fn files<'p>(scope: &Scope, paths: &[&'p str]) -> Vec<&'p str> {
    paths.iter().copied().filter(|path| scope.contains("..", path, false)).collect()
}

const TREE: &[&str] = &[
    "a.md",
    "a.pdf",
    "docs/b.md",
    "docs/deep/c.md",
    "docs/private/d.md",
    "node_modules/e.md",
    "docs/node_modules/x/f.md",
    ".git/config",
    "build/out.txt",
    "x.tmp",
    "Cargo.lock",
    ".agent/manifest.yaml",
    "docs/.agent/x.md",
];

#[test]
fn everything_but_the_built_in_excludes() {
    assert_eq!(files(&scope("", ""), TREE), ["a.md", "a.pdf", "docs/b.md", "docs/deep/c.md", "docs/private/d.md"]);
    let scope = scope("", "");
    // as folders they are excluded, as files of that name some are not
    assert!(scope.contains("..", "build", false) && !scope.contains("..", "build", true));
    assert!(
        !scope.contains("..", "~$letter.docx", false)
            && !scope.contains("..", ".~lock.a.odt#", false)
            && !scope.contains("..", "#a#", false)
    );
    assert!(scope.contains("..", "rebuild/a", false) && scope.contains("..", "Build/a", false));
    assert!(BUILTIN_EXCLUDES.contains(&".git"));
}

#[test]
fn no_path_that_is_none() {
    let scope = scope("", "");
    for bad in ["", "/etc/passwd", "../a", "a/../b", "a//b", "./a", "a/", "."] {
        assert!(!scope.contains("..", bad, false), "{bad:?}");
    }
    assert!(!scope.contains("unknown", "a.md", false) && scope.contains("other", "a.md", false));
}

#[test]
fn include_narrows_and_exclude_wins() {
    assert_eq!(files(&scope("include: ['*.pdf']", ""), TREE), ["a.pdf"]);
    assert_eq!(files(&scope("include: [docs/]", ""), TREE), ["docs/b.md", "docs/deep/c.md", "docs/private/d.md"]);
    assert_eq!(files(&scope("include: [docs/]\nexclude: [private/]", ""), TREE), ["docs/b.md", "docs/deep/c.md"]);
    assert_eq!(files(&scope("include: ['docs/*']\nexclude: ['**/*.md']", ""), TREE), [""; 0]);
    assert_eq!(files(&scope("include: [docs/, '!docs/private/']", ""), TREE), ["docs/b.md", "docs/deep/c.md"]);
    assert_eq!(
        files(&scope("exclude: [docs/, '!docs/b.md']", ""), TREE),
        ["a.md", "a.pdf"],
        "an excluded folder can't be opened by its parts"
    );
    assert_eq!(files(&scope("exclude: ['docs/*', '!docs/b.md']", ""), TREE), ["a.md", "a.pdf", "docs/b.md"]);
    assert_eq!(files(&scope("include: ['/*.md']", ""), TREE), ["a.md"], "anchored");
}

#[test]
fn only_an_include_that_names_it_brings_an_excluded_thing_back() {
    for wide in ["'*'", "'**'", "'*.md'", "'**/*.md'", "docs/", "'docs/**'", "'?*'"] {
        let scope = scope(&format!("include: [{wide}]"), "");
        assert_eq!(
            files(&scope, &["node_modules/e.md", "docs/node_modules/x/f.md", ".git/config", "build/out.txt"]),
            [""; 0],
            "{wide}"
        );
    }
    assert_eq!(files(&scope("include: [node_modules/]", ""), TREE), ["node_modules/e.md", "docs/node_modules/x/f.md"]);
    assert_eq!(files(&scope("include: ['docs/node_modules/**/*.md']", ""), TREE), ["docs/node_modules/x/f.md"]);
    assert_eq!(
        files(&scope("include: ['*', build/]", ""), &["a.md", "build/out.txt", "build/node_modules/x"]),
        ["a.md", "build/out.txt"]
    );
    assert_eq!(files(&scope("include: ['*.lock', '*.tmp']", ""), TREE), ["x.tmp", "Cargo.lock"]);
    assert_eq!(files(&scope("include: [build/]\nexclude: [build/]", ""), TREE), [""; 0], "exclude wins");
    assert_eq!(files(&scope("include: [.agent/, '.agent/**', '*.yaml']", ""), TREE), [""; 0], "never");
}

#[test]
fn a_roots_own_include_stands_and_excludes_add_up() {
    let both = scope("include: ['*.md']\nexclude: [private/]", "include: ['*.pdf', docs/], exclude: [deep/]");
    assert_eq!(files(&both, TREE), ["a.pdf", "docs/b.md"]);
    let negated = scope("exclude: [docs/]", "exclude: ['!docs/']");
    assert_eq!(files(&negated, TREE), ["a.md", "a.pdf"], "neither takes back what the other excludes");
    assert!(
        both.contains("other", "a.md", false)
            && !both.contains("other", "a.pdf", false)
            && both.contains("other", "deep/a.md", false)
    );
}

#[test]
fn a_folder_is_pruned_only_where_nothing_below_can_be_in_scope() {
    let globs = [
        "",
        "include: ['*.md']",
        "include: [docs/deep/]",
        "include: ['docs/*/c.md']",
        "include: [node_modules/]",
        "include: ['/docs/node_modules/x/']",
        "exclude: [docs/]",
        "include: ['**/deep/**']",
        "include: [build/]\nexclude: [deep/]",
        "include: ['d*/', '!docs/deep/']",
    ];
    for top in globs {
        let scope = scope(top, "");
        for path in TREE.iter().filter(|path| scope.contains("..", path, false)) {
            for (at, _) in path.match_indices('/') {
                assert!(scope.may_hold("..", &path[..at]), "{top}: {} holds {path}", &path[..at]);
            }
        }
        assert!(scope.may_hold("..", "") && !scope.may_hold("..", ".agent") && !scope.may_hold("..", "docs/.agent"));
    }
    let pruned = |top: &str, dir: &str| !scope(top, "").may_hold("..", dir);
    assert!(pruned("", "node_modules") && pruned("", ".git") && pruned("", "a/build") && !pruned("", "docs"));
    assert!(
        pruned("include: [docs/deep/]", "src")
            && pruned("include: [docs/deep/]", "docs/other")
            && !pruned("include: [docs/deep/]", "docs/deep/x")
    );
    assert!(pruned("include: ['*.md']", "node_modules") && !pruned("include: [node_modules/]", "x/node_modules"));
    assert!(pruned("exclude: [docs/]", "docs/deep"));
}
