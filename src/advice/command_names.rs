//! The names in commands that people may paste: of the owners of the jobs, and of their access point.

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Returns true if `name` means itself in a shell, in an expression and as a value of an option.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && !name.starts_with('-')
        && name.chars().all(is_plain)
}

/// Returns `program` with the option that selects the access point; `None` if the name is no plain
/// one.
pub(super) fn program_at(program: &str, access_point: Option<&str>) -> Option<String> {
    let Some(name) = access_point else {
        return Some(program.to_owned());
    };
    is_plain_name(name).then(|| format!("{program} -name {name}"))
}

/// Returns an expression that is true for the jobs of `owners`, to follow another one; empty if one of
/// them is unknown. Returns `None` if one has no plain name.
pub(super) fn and_owned_by<'a>(owners: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut names: Vec<Option<&str>> = owners.collect();
    names.sort_unstable();
    names.dedup();
    if !names.iter().flatten().all(|name| is_plain_name(name)) {
        return None;
    }

    let known: Option<Vec<&str>> = names.into_iter().collect();
    Some(match known.as_deref() {
        None | Some([]) => String::new(),
        Some([only]) => format!(" && Owner==\"{only}\""),
        Some(several) => format!(" && stringListMember(Owner,\"{}\")", several.join(" ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned_by(owners: &[Option<&str>]) -> Option<String> {
        and_owned_by(owners.iter().copied())
    }

    #[test]
    fn owners_are_named_if_all_are_known() {
        let one = owned_by(&[Some("ada"), Some("ada")]);
        assert_eq!(one.as_deref(), Some(" && Owner==\"ada\""));
        let two = owned_by(&[Some("eve"), Some("ada")]);
        assert_eq!(
            two.as_deref(),
            Some(" && stringListMember(Owner,\"ada eve\")")
        );
        assert_eq!(owned_by(&[Some("ada"), None]).as_deref(), Some(""));
    }

    #[test]
    fn names_that_a_shell_or_htcondor_might_misread_give_no_command() {
        let long = "a".repeat(1000);
        for name in [
            "", "-all", "a b", "a\"", "a'", "$(id)", "a\\", "é", "a,b", &long,
        ] {
            assert_eq!(owned_by(&[Some("ada"), Some(name)]), None, "{name}");
            assert_eq!(owned_by(&[None, Some(name)]), None, "{name}");
            assert_eq!(program_at("condor_release", Some(name)), None, "{name}");
        }
        let named = program_at("condor_release", Some("s_1@ap-1.example"));
        assert_eq!(
            named.as_deref(),
            Some("condor_release -name s_1@ap-1.example")
        );
        assert_eq!(
            program_at("condor_release", None).as_deref(),
            Some("condor_release")
        );
    }
}
