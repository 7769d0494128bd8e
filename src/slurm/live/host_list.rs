//! Parser of Slurm's node lists, such as `n[01-04,7],login`.

/// Maximum number of nodes in a list. The largest clusters have fewer.
const MAX_NODES: usize = 200_000;

/// Maximum width of a number, in digits.
const MAX_DIGITS: usize = 20;

/// Maximum length of a node name, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Expands `list` into node names. Returns `None` if it is invalid or too long.
pub(super) fn expand_hosts(list: &str) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    for part in divide(list) {
        expand_part(part, &mut hosts)?;
    }
    Some(hosts)
}

/// Splits `list` at the commas outside of brackets.
fn divide(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth) = (0, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Appends the names that `part` expands to. It may contain any number of brackets.
fn expand_part(part: &str, hosts: &mut Vec<String>) -> Option<()> {
    let mut names = vec![String::new()];
    // An upper bound of the length of a name so far.
    let mut length = 0;
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (numbers, after) = after.split_once(']')?;
        length += before.len() + numbers.len().min(MAX_DIGITS);
        if length > MAX_NAME_BYTES {
            return None;
        }
        let room = MAX_NODES.checked_sub(hosts.len())? / names.len();
        let numbers = expand_numbers(numbers, room)?;
        let mut longer = Vec::with_capacity(names.len() * numbers.len());
        for name in &names {
            for number in &numbers {
                longer.push(format!("{name}{before}{number}"));
            }
        }
        names = longer;
        rest = after;
    }
    if length + rest.len() > MAX_NAME_BYTES {
        return None;
    }
    for name in names {
        hosts.push(name + rest);
    }
    (hosts.len() <= MAX_NODES).then_some(())
}

/// Expands `01-04,7`, and keeps leading zeros. Returns `None` if there are more than `most`
/// numbers, or if one of them is too wide.
fn expand_numbers(text: &str, most: usize) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let width = first.len();
        if width > MAX_DIGITS {
            return None;
        }
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let count = last.checked_sub(first)?.checked_add(1)?;
        if count > (most.checked_sub(numbers.len())?) as u64 {
            return None;
        }
        for number in first..=last {
            numbers.push(format!("{number:0width$}"));
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn host_lists_are_expanded() {
        let expanded = |list| expand_hosts(list).map(|hosts| hosts.join(" "));
        for (list, hosts) in [
            ("", Some("")),
            ("n1", Some("n1")),
            ("n[1-3],m", Some("n1 n2 n3 m")),
            ("n[08-10,2]", Some("n08 n09 n10 n2")),
            ("r[1-2]n[3,5]-ib", Some("r1n3-ib r1n5-ib r2n3-ib r2n5-ib")),
            ("n[3-1]", None),
            ("n[1-", None),
            ("n[a]", None),
            ("n[1-99999999999]", None),
            ("n[1-9999][1-9999]", None),
        ] {
            assert_eq!(expanded(list).as_deref(), hosts, "{list}");
        }
    }

    #[test]
    fn names_and_numbers_that_are_too_wide_are_rejected() {
        let padded = |zeros: usize| format!("n[{}1]", "0".repeat(zeros));
        let widest = expand_hosts(&padded(19)).expect("twenty digits");
        assert_eq!(widest, ["n00000000000000000001"]);
        for zeros in [20, 60_000, 70_000] {
            assert_eq!(expand_hosts(&padded(zeros)), None, "{zeros} zeros");
        }
        let name = "n".repeat(60_000);
        for list in [format!("{name}[1-1000]"), format!("n[1-1000]{name}"), name] {
            assert_eq!(expand_hosts(&list), None);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_host_lists_do_not_panic(list in "[n0-9,\\[\\]-]{0,40}") {
            let _ = expand_hosts(&list);
        }
    }
}
