//! What an idle job needs of a machine, limited to what can be compared with the machines of a pool without a matchmaker.

use serde_json::Value;

use super::job_command::RequestAttribute;
use poolcast_base::shared_text::{SharedText, SharedTexts};
use poolcast_holds::job_ads::{ListedAd, MAX_STRING_BYTES};

/// The requests that are compared, each with the attribute of a slot that has the total amount.
pub(super) const REQUESTS: [(RequestAttribute, &str); 4] = [
    (RequestAttribute::RequestMemory, "TotalSlotMemory"),
    (RequestAttribute::RequestDisk, "TotalSlotDisk"),
    (RequestAttribute::RequestCpus, "TotalSlotCpus"),
    (RequestAttribute::RequestGPUs, "TotalSlotGPUs"),
];

/// An amount of each of [`REQUESTS`], in the unit of the attribute.
pub(super) type RequestAmounts = [u64; REQUESTS.len()];

/// Maximum length of a clause that machines are compared with, in bytes.
const MAX_CLAUSE_BYTES: usize = 500;

/// Attributes of machines that do not change with their use, and that jobs do not have.
const LASTING_ATTRIBUTES: [&str; 8] = [
    "Machine",
    "Name",
    "Arch",
    "OpSys",
    "CondorVersion",
    "Microarch",
    "TotalCpus",
    "TotalMemory",
];

/// Beginnings of the names of further such attributes.
const LASTING_PREFIXES: [&str; 6] = ["Has", "OpSys", "GLIDEIN_", "GPUs_", "CUDA", "CVMFS_"];

/// Functions whose values follow from their arguments alone.
const PURE_FUNCTIONS: [&str; 12] = [
    "regexp",
    "stringListMember",
    "stringListIMember",
    "split",
    "strcmp",
    "stricmp",
    "toLower",
    "toUpper",
    "versionGE",
    "versionGT",
    "versionLE",
    "versionLT",
];

/// Words of the language of ClassAds.
const KEYWORDS: [&str; 5] = ["true", "false", "undefined", "is", "isnt"];

/// What a job needs of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MachineNeeds {
    /// The requests; 0 if one is no number, or if the job's requirements do not compare it.
    pub(super) requests: RequestAmounts,
    /// The clauses of the job's `Requirements` about the machine alone.
    pub(super) clauses: Vec<RequirementClause>,
}

/// A clause about a machine alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequirementClause {
    /// The expression, to be evaluated in the ad of a machine.
    pub(super) text: SharedText,
    /// True if its value does not change with the use of the machine.
    pub(super) is_lasting: bool,
}

impl MachineNeeds {
    /// Reads the requests and the requirements of a job.
    pub(super) fn from_ad(ad: &ListedAd, texts: &mut SharedTexts) -> MachineNeeds {
        let text = ad.get("Requirements").and_then(Value::as_str);
        let expression = text.and_then(|text| text.strip_prefix("/Expr(")?.strip_suffix(")/"));
        let Some(requirements) = expression.filter(|text| text.len() < MAX_STRING_BYTES / 2) else {
            return MachineNeeds::default();
        };
        let request = |(attribute, _): &(RequestAttribute, &str)| {
            let name = format!("{attribute:?}");
            let number = ad.get(&name).and_then(Value::as_u64);
            number.filter(|_| requirements.contains(&name))
        };
        let mut conjuncts = Vec::new();
        add_conjuncts(requirements, &mut conjuncts);
        MachineNeeds {
            requests: REQUESTS.each_ref().map(|one| request(one).unwrap_or(0)),
            clauses: (conjuncts.into_iter())
                .filter_map(|text| RequirementClause::of_machine(text, texts))
                .collect(),
        }
    }
}

impl RequirementClause {
    /// Reads the conjunct `text`; `None` if it is about more than the machine, always true, too long or
    /// of odd characters.
    fn of_machine(text: &str, texts: &mut SharedTexts) -> Option<RequirementClause> {
        let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if text.len() > MAX_CLAUSE_BYTES || !text.bytes().all(is_plain) {
            return None;
        }
        let (mut expression, mut is_lasting) = (String::new(), true);
        for part in Part::all_of(text) {
            let Part::Word { word, is_function } = part else {
                expression += part.text();
                continue;
            };
            let scoped = strip_prefix_of_any_case(word, "TARGET.");
            let name = scoped.unwrap_or(word);
            let is_one_of = |names: &[&str]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
            let is_known = match is_function {
                true => is_one_of(&PURE_FUNCTIONS),
                false => is_one_of(&KEYWORDS) || is_lasting_attribute(name),
            };
            // Without a scope, it may be an attribute of the job.
            if !is_known && (is_function || scoped.is_none() || name.contains('.')) {
                return None;
            }
            is_lasting &= is_known;
            expression += name;
        }
        (expression != "true").then(|| RequirementClause {
            text: texts.share(&expression),
            is_lasting,
        })
    }
}

fn is_lasting_attribute(name: &str) -> bool {
    let is_prefix = |prefix: &&str| strip_prefix_of_any_case(name, prefix).is_some();
    (LASTING_ATTRIBUTES.iter()).any(|one| one.eq_ignore_ascii_case(name))
        || LASTING_PREFIXES.iter().any(is_prefix)
}

fn strip_prefix_of_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (begin, rest) = text.split_at_checked(prefix.len())?;
    begin.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// A part of an expression.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    /// A name with its scope, a keyword, or the name of a function.
    Word { word: &'a str, is_function: bool },
    /// A string with its quotes, a number, or anything else.
    Other(&'a str),
}

impl<'a> Part<'a> {
    fn text(self) -> &'a str {
        match self {
            Part::Word { word, .. } => word,
            Part::Other(text) => text,
        }
    }

    fn all_of(expression: &'a str) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut rest = expression;
        while let Some(first) = rest.chars().next() {
            let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let end = |text: &str| text.find(|c| !is_in_word(c)).unwrap_or(text.len());
            let length = match first {
                '"' | '\'' => quoted_length(rest, first),
                first if is_in_word(first) => end(rest),
                first => first.len_utf8(),
            };
            let (text, after) = rest.split_at(length);
            let is_word = first.is_ascii_alphabetic() || first == '_';
            parts.push(match is_word {
                true => Part::Word {
                    word: text,
                    is_function: after.trim_start().starts_with('('),
                },
                false => Part::Other(text),
            });
            rest = after;
        }
        parts
    }
}

/// Returns the length of the quoted text at the beginning of `text`, with both quotes, in bytes.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Adds the expressions that must all be true for `expression` to be.
fn add_conjuncts<'a>(expression: &'a str, conjuncts: &mut Vec<&'a str>) {
    let expression = expression.trim();
    let (mut depth, mut at, mut begin) = (0, 0, 0);
    let (mut operands, mut has_other) = (Vec::new(), false);
    let mut is_enclosed = expression.starts_with('(');
    for part in Part::all_of(expression) {
        let end = at + part.text().len();
        match part.text() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        is_enclosed &= depth > 0 || end == expression.len();
        // An alternative, also one by `?`, binds less than a conjunction.
        has_other |= depth == 0 && ["|", "?"].contains(&part.text());
        if depth == 0 && at >= begin && expression[at..].starts_with("&&") {
            operands.push(&expression[begin..at]);
            begin = at + 2;
        }
        at = end;
    }

    if depth != 0 {
        // The expression was cut.
        return;
    }
    if is_enclosed && expression.ends_with(')') {
        add_conjuncts(&expression[1..expression.len() - 1], conjuncts);
    } else if operands.is_empty() || has_other {
        conjuncts.push(expression);
    } else {
        operands.push(&expression[begin..]);
        operands
            .into_iter()
            .for_each(|one| add_conjuncts(one, conjuncts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the needs of a job with `requirements` and requests of 100.
    fn needs(requirements: &str) -> MachineNeeds {
        let ad = json!({"Requirements": format!("/Expr({requirements})/"), "RequestMemory": 100, "RequestDisk": 100,
            "RequestCpus": 100, "RequestGPUs": "/Expr(1 + 1)/"});
        let ad = ad.as_object().expect("an object");
        MachineNeeds::from_ad(ad, &mut SharedTexts::default())
    }

    /// Returns the clauses of `requirements`, with a mark after those that change with use.
    fn clauses(requirements: &str) -> Vec<String> {
        let mark = |one: &RequirementClause| if one.is_lasting { "" } else { " ~" };
        let clauses = needs(requirements).clauses;
        clauses
            .iter()
            .map(|one| format!("{}{}", one.text, mark(one)))
            .collect()
    }

    #[test]
    fn requests_count_where_requirements_compare_them() {
        // HTCondor 25.14 writes this.
        let requirements = r#"(TARGET.Arch == "X86_64") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))"#;
        assert_eq!(needs(requirements).requests, [100, 100, 100, 0]);
        assert_eq!(clauses(requirements), [r#"Arch == "X86_64""#]);
        assert_eq!(needs("Memory > 7").requests, [0, 0, 0, 0]);
        let none = MachineNeeds::from_ad(&ListedAd::default(), &mut SharedTexts::default());
        assert_eq!(none, MachineNeeds::default());
    }

    #[test]
    fn clauses_about_machines_alone_are_found() {
        for (requirements, expected) in [
            ("false", &["false"][..]),
            (
                r#"((Machine == "a && b (")) && HasX"#,
                &[r#"Machine == "a && b (""#, "HasX"],
            ),
            (
                r#"(HasMatlab && (OpSysMajorVer > 7)) && target.Memory >= 4 && Target.Rare is 3"#,
                &[
                    "HasMatlab",
                    "OpSysMajorVer > 7",
                    "Memory >= 4 ~",
                    "Rare is 3 ~",
                ],
            ),
            (
                r#"regexp("cn[0-9]", TARGET.Machine) || HasX && HasY"#,
                &[r#"regexp("cn[0-9]", Machine) || HasX && HasY"#],
            ),
            ("true && HasX ? true : false && Other", &[]),
            (
                "MY.HasX && Memory > 4 && time() > 3 && RequestCpus > 1",
                &[],
            ),
            ("(HasX) && (HasY", &[]),
        ] {
            assert_eq!(clauses(requirements), expected, "{requirements}");
        }
    }

    proptest! {
        #[test]
        fn any_requirements_are_read(text in r#"([a-z.]|&&|[(")|\\?]|TARGET\.| |\pL){0,40}"#) {
            needs(&text);
        }
    }
}
