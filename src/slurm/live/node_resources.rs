//! What nodes have, and what jobs hold of it: CPUs, memory and generic resources such as GPUs.

use serde::Deserialize;
use serde_json::Value;

use poolcast_provision::slurm_number::SlurmNumber;

/// Maximum of an amount. Sums and products of amounts cannot overflow below it.
pub(super) const MAX_AMOUNT: i64 = 1 << 40;

/// A number of generic resources, such as `gpu:a100:2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GresCount {
    pub(super) name: String,
    /// The type, if stated.
    pub(super) kind: Option<String>,
    pub(super) count: i64,
}

/// The resources of a node, and the allocated part of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeResources {
    pub(super) cpus: i64,
    /// Number of CPUs in a core.
    pub(super) threads: i64,
    pub(super) memory_mb: i64,
    pub(super) gres: Vec<GresCount>,
    pub(super) features: Vec<String>,
    /// Nodes with a lower weight are used first.
    pub(super) weight: i64,
    pub(super) used_cpus: i64,
    pub(super) used_memory_mb: i64,
}

impl NodeResources {
    /// Reads a node of `scontrol --oneliner show node`. `value` returns the value of a key.
    pub(super) fn from_scontrol<'a>(
        value: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<NodeResources> {
        let number = |key: &str| {
            let number: i64 = value(key)?.parse().ok()?;
            (0..MAX_AMOUNT).contains(&number).then_some(number)
        };
        let reserved_mb = number("MemSpecLimit").unwrap_or(0);
        let features = value("ActiveFeatures").filter(|features| *features != "(null)");
        Some(NodeResources {
            cpus: number("CPUEfctv").or(number("CPUTot"))?,
            threads: number("ThreadsPerCore").unwrap_or(1),
            memory_mb: (number("RealMemory")? - reserved_mb).max(0),
            gres: parse_gres(value("Gres").unwrap_or_default())?,
            features: split_names(features.unwrap_or_default()),
            weight: number("Weight").unwrap_or(1),
            used_cpus: number("CPUAlloc").unwrap_or(0),
            used_memory_mb: number("AllocMem").unwrap_or(0),
        })
    }
}

/// The fields of a node in JSON, of `sinfo` up to Slurm 22.05 and of `scontrol`. Fields in an unknown
/// form count as missing.
#[derive(Debug, Default, Deserialize)]
pub(super) struct NodeValues {
    #[serde(default)]
    cpus: Value,
    #[serde(default)]
    effective_cpus: Value,
    #[serde(default)]
    threads: Value,
    #[serde(default)]
    real_memory: Value,
    #[serde(default)]
    specialized_memory: Value,
    #[serde(default)]
    gres: Value,
    #[serde(default)]
    active_features: Value,
    #[serde(default)]
    weight: Value,
    #[serde(default)]
    alloc_cpus: Value,
    #[serde(default)]
    alloc_memory: Value,
}

impl NodeValues {
    /// Returns what the node has, if this is listed.
    pub(super) fn resources(&self) -> Option<NodeResources> {
        let reserved_mb = number(&self.specialized_memory).unwrap_or(0);
        let cpus = number(&self.effective_cpus).filter(|cpus| *cpus > 0);
        Some(NodeResources {
            cpus: cpus.or(number(&self.cpus))?,
            threads: number(&self.threads).unwrap_or(1),
            memory_mb: (number(&self.real_memory)? - reserved_mb).max(0),
            gres: parse_gres(&text(&self.gres))?,
            features: split_names(&text(&self.active_features)),
            weight: number(&self.weight).unwrap_or(1),
            used_cpus: number(&self.alloc_cpus).unwrap_or(0),
            used_memory_mb: number(&self.alloc_memory).unwrap_or(0),
        })
    }
}

/// The fields of a group of nodes in the JSON of `sinfo` after Slurm 22.05.
#[derive(Debug, Default, Deserialize)]
pub(super) struct GroupResources {
    #[serde(default)]
    cpus: Value,
    #[serde(default)]
    threads: Value,
    #[serde(default)]
    memory: Value,
    #[serde(default)]
    gres: Value,
    #[serde(default)]
    features: Value,
    #[serde(default)]
    weight: Value,
}

impl GroupResources {
    /// Returns what each node of the group has, if all of them have the same.
    pub(super) fn of_each_node(&self) -> Option<NodeResources> {
        let same = |range: &Value| {
            let (least, most) = (number(&range["minimum"])?, number(&range["maximum"])?);
            (least == most).then_some(least)
        };
        let features = match &self.features["active"] {
            Value::Null => &self.features["total"],
            active => active,
        };
        Some(NodeResources {
            cpus: same(&self.cpus)?,
            threads: same(&self.threads).unwrap_or(1),
            memory_mb: same(&self.memory)?,
            gres: parse_gres(&text(&self.gres["total"]))?,
            features: split_names(&text(features)),
            weight: same(&self.weight).unwrap_or(1),
            used_cpus: 0,
            used_memory_mb: 0,
        })
    }
}

/// Returns a number that is listed in any of Slurm's forms.
pub(super) fn number(value: &Value) -> Option<i64> {
    let number = match value {
        Value::String(digits) => digits.parse().ok()?,
        value => SlurmNumber::deserialize(value).ok()?.known()?,
    };
    (0..MAX_AMOUNT).contains(&number).then_some(number)
}

/// Returns a text, or the texts of a list with commas between them.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(texts) => {
            let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
            texts.join(",")
        }
        _ => String::new(),
    }
}

fn split_names(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Parses generic resources: `gpu:a100:2(S:0-1),lustre:1` of a node, `gres:gpu:2` or `gres/gpu:2` of
/// a request, or `gpu:2(IDX:0-1)` of an allocation. Returns `None` if they are invalid.
pub(super) fn parse_gres(list: &str) -> Option<Vec<GresCount>> {
    let mut counts = Vec::new();
    for item in split_outside_brackets(list) {
        let item = item.split('(').next().unwrap_or_default().trim();
        if item.is_empty() || item == "N/A" {
            continue;
        }
        let is_other = ["cpu", "mem", "node", "billing", "license", "energy"]
            .iter()
            .any(|name| item.split([':', '=', '/']).next() == Some(name));
        // Jobs do not use up what is marked so.
        if is_other || item.contains("no_consume") {
            continue;
        }
        let item = item
            .strip_prefix("gres:")
            .or(item.strip_prefix("gres/"))
            .unwrap_or(item);
        counts.push(parse_gres_count(item)?);
    }
    Some(counts)
}

/// Parses `gpu`, `gpu:2`, `gpu:a100` or `gpu:a100:2`; the count may follow `=`, too.
fn parse_gres_count(item: &str) -> Option<GresCount> {
    let mut parts: Vec<&str> = item.split([':', '=']).collect();
    let count = match parts.last().and_then(|last| parse_count(last)) {
        Some(count) if parts.len() > 1 => {
            parts.pop();
            count
        }
        _ => 1,
    };
    match parts[..] {
        [name] => Some(GresCount {
            name: name.to_owned(),
            kind: None,
            count,
        }),
        [name, kind] => Some(GresCount {
            name: name.to_owned(),
            kind: Some(kind.to_owned()),
            count,
        }),
        _ => None,
    }
}

/// Parses `4` or `4K`, with the factor 1024.
fn parse_count(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return None,
    };
    let count = digits.parse::<i64>().ok()?.checked_mul(factor)?;
    (0..MAX_AMOUNT).contains(&count).then_some(count)
}

/// Splits `list` at the commas outside of round brackets.
fn split_outside_brackets(list: &str) -> Vec<&str> {
    let mut depth = 0;
    list.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
    .collect()
}

/// Trackable resources, such as `cpu=4,mem=62.50G,node=1,gres/gpu:a100=2`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tres {
    pub(super) cpus: i64,
    pub(super) memory_mb: i64,
    pub(super) nodes: i64,
    pub(super) gres: Vec<GresCount>,
}

/// Parses trackable resources. Returns `None` if there are no CPUs among them.
pub(super) fn parse_tres(list: &str) -> Option<Tres> {
    let mut tres = Tres::default();
    let mut has_cpus = false;
    for item in list.split(',') {
        let (name, amount) = item.split_once('=')?;
        match name {
            "cpu" => {
                tres.cpus = parse_count(amount)?;
                has_cpus = true;
            }
            "mem" => tres.memory_mb = parse_memory_mb(amount)?,
            "node" => tres.nodes = parse_count(amount)?,
            _ => {
                if let Some(gres) = name.strip_prefix("gres/") {
                    let (name, kind) = match gres.split_once(':') {
                        Some((name, kind)) => (name, Some(kind.to_owned())),
                        None => (gres, None),
                    };
                    tres.gres.push(GresCount {
                        name: name.to_owned(),
                        kind,
                        count: parse_count(amount)?,
                    });
                }
            }
        }
    }
    // Slurm counts GPUs with a type twice: once without it.
    let typed: Vec<String> = tres
        .gres
        .iter()
        .filter(|gres| gres.kind.is_some())
        .map(|gres| gres.name.clone())
        .collect();
    tres.gres
        .retain(|gres| gres.kind.is_some() || !typed.contains(&gres.name));
    has_cpus.then_some(tres)
}

/// Parses `4000M` or `62.50G`; without a unit, the number is in MiB.
fn parse_memory_mb(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "K" => 1.0 / 1024.0,
        "" | "M" => 1.0,
        "G" => 1024.0,
        "T" => 1024.0 * 1024.0,
        "P" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let memory_mb = (digits.parse::<f64>().ok()? * factor).ceil();
    (0.0..MAX_AMOUNT as f64)
        .contains(&memory_mb)
        .then_some(memory_mb as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gres(list: &str) -> Option<String> {
        let words = parse_gres(list)?.into_iter().map(|gres| match gres.kind {
            Some(kind) => format!("{} {kind} {}", gres.name, gres.count),
            None => format!("{} {}", gres.name, gres.count),
        });
        Some(words.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn generic_resources_are_parsed() {
        for (list, expected) in [
            ("", Some("")),
            ("(null)", Some("")),
            ("gpu:a100:2", Some("gpu a100 2")),
            (
                "gpu:a100:4(S:0,2),gpu:v100:1(S:1),nvme:2K",
                Some("gpu a100 4, gpu v100 1, nvme 2048"),
            ),
            ("gres:gpu:1", Some("gpu 1")),
            ("gres/gpu:a100", Some("gpu a100 1")),
            ("cpu=2,gres/gpu=1", Some("gpu 1")),
            ("gpu:2(IDX:0-1)", Some("gpu 2")),
            ("lustre:no_consume:1", Some("")),
            ("gpu:a:b:c", None),
        ] {
            assert_eq!(gres(list).as_deref(), expected, "{list}");
        }
    }

    #[test]
    fn trackable_resources_are_parsed() {
        let tres = parse_tres("cpu=4,mem=62.50G,node=2,billing=4,gres/gpu=2,gres/gpu:a100=2");
        let tres = tres.expect("valid");
        assert_eq!((tres.cpus, tres.memory_mb, tres.nodes), (4, 64_000, 2));
        assert_eq!(tres.gres.len(), 1);
        assert_eq!(tres.gres[0].kind.as_deref(), Some("a100"));
        for invalid in ["", "mem=4G", "cpu=x", "cpu=1,mem=-1", "cpu=99999999999999"] {
            assert_eq!(parse_tres(invalid), None, "{invalid}");
        }
    }
}
