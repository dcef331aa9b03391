//! What does the harness read? The prompt template with its variables put in, once.
//!
//! A variable that nothing defines is an error that names it. What was put in is not looked at again, so an
//! operator's prompt that has `{{HARNESS}}` in it stays as it is.

use crate::error::LaunchError;

/// The variables that every prompt has.
pub(crate) const BUILT_IN: &[&str] =
    &["HARNESS", "RUN_MODE", "POLL_INTERVAL_SECONDS", "PAYLOAD_VERSION", "USER_PROMPT"];

/// Whether a subagent may be called by this variable: `[A-Z][A-Z0-9_]*`.
pub(crate) fn is_exposable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// The command that a prompt calls the subagent `id` by.
pub(crate) fn subagent_command(id: &str) -> String {
    format!("bash {}/runtime/subagent.sh {id} < task.md", crate::payload::MOUNT)
}

/// The template with each `{{NAME}}` replaced. Braces that hold no name (`{{ .Values.x }}`, `{{}}`) are text.
///
/// # Errors
/// A variable that is not among `variables`, by its name and line.
pub(crate) fn render(name: &str, template: &str, variables: &[(String, String)]) -> Result<String, LaunchError> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let inside = &from[2..];
        let name_of = inside.find("}}").map(|close| (inside[..close].trim(), &inside[close + 2..]));
        match name_of.filter(|(name, _)| crate::parse::is_variable(name)) {
            Some((variable, after)) => {
                let Some((_, value)) = variables.iter().find(|(known, _)| known == variable) else {
                    let line = template[..template.len() - from.len()].matches('\n').count() + 1;
                    let known: Vec<&str> = variables.iter().map(|(known, _)| known.as_str()).collect();
                    return Err(LaunchError::refused(
                        format!("{name}:{line}: the variable {{{{{variable}}}}}"),
                        format!("is not defined; there are {}", known.join(", ")),
                    ));
                };
                out.push_str(value);
                rest = after;
            }
            None => {
                // only one brace is passed over, so that `{{{NAME}}` still finds its name
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str) -> Result<String, LaunchError> {
        let variables = [("A", "1"), ("USER_PROMPT", "do {{A}} and {{B}}")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        render("p.md", template, &variables)
    }

    #[test]
    fn variables_are_put_in_once() {
        assert_eq!(rendered("{{A}}-{{ A }}: {{USER_PROMPT}}.").unwrap(), "1-1: do {{A}} and {{B}}.");
        assert_eq!(rendered("{{{A}}}").unwrap(), "{1}");
    }

    #[test]
    fn braces_without_a_name_are_text() {
        for text in ["{{ .Values.x }}", "{{}}", "{{", "a {{ b", "${{ a-b }}", "{ {A} }", "{{1}}", "ü{{é}}"] {
            assert_eq!(rendered(text).unwrap(), text);
        }
    }

    #[test]
    fn an_undefined_variable_is_named_with_its_line() {
        let error = rendered("a\nb {{NOPE}} c").unwrap_err().to_string();
        assert!(error.contains("p.md:2") && error.contains("{{NOPE}}") && error.contains("USER_PROMPT"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn a_value_is_put_in_as_it_is(before in "[{} a]{0,6}", value in "[{}A-C ]{0,12}", after in "[{} a]{0,6}") {
            // only where the text around it does not itself make another variable of it
            let template = format!("{before}|{{{{X}}}}|{after}");
            let variables = [("X".to_owned(), value.clone()), ("a".to_owned(), "a".to_owned())];
            if !before.contains("{{") && !after.contains("{{") {
                assert_eq!(render("p", &template, &variables).unwrap(), format!("{before}|{value}|{after}"));
            }
        }
    }

    #[test]
    fn only_capital_names_can_be_exposed() {
        assert!(is_exposable("REVIEWER_COMMAND") && is_exposable("A1"));
        assert!(!is_exposable("") && !is_exposable("_A") && !is_exposable("a") && !is_exposable("1A"));
    }
}
