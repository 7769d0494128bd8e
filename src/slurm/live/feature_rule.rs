//! Expressions over the features of nodes, as in `sbatch --constraint`.

/// Returns true if a node with `features` meets `rule`, such as `a100&(ib|roce)`. Returns `None` if
/// this program cannot evaluate the rule: it counts nodes, or asks for the same feature on all nodes.
pub(super) fn meets_rule(rule: &str, features: &[String]) -> Option<bool> {
    if rule.trim().is_empty() {
        return Some(true);
    }
    if rule.contains(['[', ']', '*', '!']) {
        return None;
    }
    let (meets, rest) = any_of(rule, features, 0)?;
    rest.trim().is_empty().then_some(meets)
}

/// Maximum depth of brackets.
const MAX_DEPTH: u32 = 20;

/// Evaluates terms with `|` between them at the beginning of `rule`. Returns the rest, too.
fn any_of<'a>(rule: &'a str, features: &[String], depth: u32) -> Option<(bool, &'a str)> {
    let (mut meets, mut rest) = all_of(rule, features, depth)?;
    while let Some(after) = rest.strip_prefix('|') {
        let (also, left) = all_of(after, features, depth)?;
        meets |= also;
        rest = left;
    }
    Some((meets, rest))
}

/// Evaluates terms with `&` or a comma between them at the beginning of `rule`.
fn all_of<'a>(rule: &'a str, features: &[String], depth: u32) -> Option<(bool, &'a str)> {
    let (mut meets, mut rest) = term(rule, features, depth)?;
    while let Some(after) = rest.strip_prefix(['&', ',']) {
        let (also, left) = term(after, features, depth)?;
        meets &= also;
        rest = left;
    }
    Some((meets, rest))
}

/// Evaluates a feature, or an expression in brackets.
fn term<'a>(rule: &'a str, features: &[String], depth: u32) -> Option<(bool, &'a str)> {
    let rule = rule.trim_start();
    if let Some(inner) = rule.strip_prefix('(') {
        if depth == MAX_DEPTH {
            return None;
        }
        let (meets, rest) = any_of(inner, features, depth + 1)?;
        return Some((meets, rest.strip_prefix(')')?.trim_start()));
    }
    let end = rule.find(['|', '&', ',', '(', ')']).unwrap_or(rule.len());
    let (name, rest) = rule.split_at(end);
    let name = name.trim();
    (!name.is_empty()).then(|| (features.iter().any(|feature| feature == name), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_over_features_are_evaluated() {
        let features = ["a100", "ib"].map(str::to_owned);
        for (rule, expected) in [
            ("", Some(true)),
            ("a100", Some(true)),
            ("v100", Some(false)),
            ("v100|a100", Some(true)),
            ("a100&ib", Some(true)),
            ("a100,v100", Some(false)),
            ("(v100|a100)&ib", Some(true)),
            ("ib & (v100 | h100)", Some(false)),
            ("[rack1|rack2]", None),
            ("ib*2&a100*1", None),
            ("a100&", None),
            ("(a100", None),
            ("a100)", None),
        ] {
            assert_eq!(meets_rule(rule, &features), expected, "{rule}");
        }
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(meets_rule(&deep, &features), None);
    }
}
