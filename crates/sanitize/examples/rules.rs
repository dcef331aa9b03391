//! Prints the rules as the table of `docs/sanitize.md`.

fn main() {
    println!("| rule | kind | from |\n|---|---|---|");
    for rule in bastion_sanitize::rules() {
        println!("| `{}` | {} | {} |", rule.name, rule.kind, rule.source);
    }
}
