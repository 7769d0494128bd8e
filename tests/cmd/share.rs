//! `poolcast share`: what an access point can teach others.

use crate::place::Place;

/// Returns a directory with the events of a simulated pool.
fn place() -> Place {
    let place = Place::new();
    place.stdout("simulate -o EventLog --truth truth --jobs 3000 --days 7 --seed 3");
    place.stdout("parse EventLog -o events");
    place
}

#[test]
fn rows_are_counted_before_they_are_written() {
    let place = place();
    let shown = place.stdout("share events");
    insta::assert_snapshot!(shown);
    assert!(!place.path("rows").exists());

    let written = place.stdout("share events -o rows");
    assert!(written.contains("written to rows"), "{written}");
    let bytes = place.files("")["rows"].clone();
    place.stdout("share events -o rows --threads 1");
    assert_eq!(place.files("")["rows"], bytes);

    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    for question in ["now", "later"] {
        let rows = rows_of_combinations(&tensors, question);
        assert!(rows.iter().all(|&rows| rows >= 3), "{question}: {rows:?}");
    }
    let mut names = tensors.names();
    names.sort();
    let of = |question: &str| {
        ["columns", "is_success", "stated", "weight"].map(|name| format!("{question}.{name}"))
    };
    assert_eq!(names, [of("later"), of("now")].concat());
}

/// Returns the number of rows with each combination of numbers, about `question`.
fn rows_of_combinations(tensors: &safetensors::SafeTensors<'_>, question: &str) -> Vec<usize> {
    let tensor = |name: &str| {
        tensors
            .tensor(&format!("{question}.{name}"))
            .expect("there")
    };
    let (columns, weights, stated) = (tensor("columns"), tensor("weight"), tensor("stated"));
    let rows = weights.shape()[0];
    let mut combinations: std::collections::HashMap<Vec<u8>, usize> = Default::default();
    for row in 0..rows {
        let columns = columns.data().chunks(2 * rows);
        let mut key: Vec<u8> = columns
            .flat_map(|column| column[2 * row..2 * row + 2].to_vec())
            .collect();
        key.extend(&weights.data()[2 * row..2 * row + 2]);
        key.extend(&stated.data()[4 * row..4 * row + 4]);
        *combinations.entry(key).or_default() += 1;
    }
    combinations.into_values().collect()
}

#[test]
fn groups_of_few_owners_stay_at_home() {
    let document = place().json("share events --json");
    let groups = document["groups"].as_array().expect("groups");
    assert!(groups.len() > 3, "{document}");
    assert!(
        groups
            .iter()
            .all(|group| group["owners"].as_u64() >= Some(3))
    );
    assert!(document["groups_left_out"].as_u64() > Some(0));
    assert!(document["file"].is_null());
}

#[test]
fn directory_without_events_is_refused() {
    let place = Place::new();
    let refused = place.run("share .");
    assert_eq!(refused.code, Some(2), "{refused}");
}
