//! docs/json.md names the keys of JSON documents, all of them and no others.

use std::collections::BTreeSet;

use crate::place::{Place, queue};

/// The keys that the table under the heading of `call` names.
fn documented_keys(call: &str) -> BTreeSet<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md");
    let text = fs_err::read_to_string(path).expect("read");
    let heading = format!("## `poolcast {call}`\n");
    let section = text.split(&heading).nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("its text");
    let mut keys = BTreeSet::new();
    for line in section.lines() {
        if let Some(key) = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split('`').next())
        {
            keys.insert(key.to_owned());
        }
    }
    keys
}

/// Adds the paths of all keys of `value`; `groups[].cause` is a key of each of `groups`.
fn add_keys(value: &serde_json::Value, path: &str, keys: &mut BTreeSet<String>) {
    if let Some(list) = value.as_array() {
        for one in list {
            add_keys(one, &format!("{path}[]"), keys);
        }
    }
    // Counts are by answer, and answers are no keys.
    let Some(object) = value.as_object().filter(|_| path != "counts") else {
        return;
    };
    for (key, value) in object {
        let key = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        add_keys(value, &key, keys);
        keys.insert(key);
    }
}

/// Holds the keys of `documents` against those that are documented for `call`. What stands in an
/// object that is nowhere in them cannot be compared.
fn check(call: &str, documents: &[serde_json::Value]) {
    let mut found = BTreeSet::new();
    for document in documents {
        add_keys(document, "", &mut found);
    }
    let documented = documented_keys(call);
    let unknown: Vec<&String> = found.difference(&documented).collect();
    assert!(unknown.is_empty(), "not in docs/json.md: {unknown:?}");
    for key in documented.difference(&found) {
        let parent = key.rsplit_once('.').map_or("", |(parent, _)| parent);
        let prefix = format!("{parent}.");
        let has_siblings = found.iter().any(|other| other.starts_with(&prefix));
        assert!(
            !has_siblings && !parent.is_empty(),
            "`{key}` is in docs/json.md alone"
        );
    }
}

#[test]
fn the_keys_of_advice_are_documented() {
    let place = Place::with_log();
    place.copy("run", "mine");
    let mut jobs = queue();
    jobs[0]["HoldReasonCode"] = 34.into();
    jobs[0]["HoldReasonSubCode"] = 102.into();
    place.write("queue.json", serde_json::to_vec(&jobs).expect("JSON"));
    let documents = [
        place.json("advise mine --log EventLog.xz --json"),
        place.json("advise mine --log EventLog.xz --queue queue.json --json"),
    ];
    check("advise --json", &documents);
    let checked = place.json("advise mine --log EventLog.xz --check --json");
    check("advise --check --json", &[checked]);
}
