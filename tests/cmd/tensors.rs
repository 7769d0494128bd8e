//! Tests of `poolcast tensors`: samples of the bundled log, and unusable event shards.

use crate::place::Place;

#[test]
fn the_bundled_log() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("tensors events -o new --j 5 --m 6 --timeframe-len 10"), @"
    exit 0
    2,119 hold cycles; samples of j = 5 jobs, m = 6 frames of 10 s, split by time
      train                            940  26.5 % success
      validate                         311  37.0 % success
      test                             322  37.6 % success
      not used: still held               8
      not used: removed while held     396
      not used: removed after release    3
      not used: hold code excluded     106  78.8 % success  among 85
      not used: decided too late        33  57.6 % success
    writing 1.51 MB to `new`
    ");
    let json = place.json("tensors events -o json --j 5 --m 6 --timeframe-len 10 --json");
    assert_eq!(
        json["cycles_total"], 2119,
        "as many as the log has records 012, but for six that are there twice"
    );
    let samples: u64 = ["train", "validate", "test"]
        .iter()
        .map(|s| json["splits"][s]["samples"].as_u64().expect("n"))
        .sum();
    let left_out: u64 = json["left_out"]
        .as_object()
        .expect("a map")
        .values()
        .map(|of_reason| of_reason["cycles"].as_u64().expect("n"))
        .sum();
    assert_eq!(
        samples + left_out,
        2119,
        "every hold cycle is a sample or is counted as left out"
    );
    assert_eq!(
        place.files("new"),
        place.files("json"),
        "the same call gives the same bytes"
    );
}

/// A manifest is written last, so a call that is killed leaves no tensors without their configuration.
/// Directories of earlier versions get it by the next call.
#[test]
fn tensors_are_complete_with_their_configuration() {
    let place = Place::with_run();
    let call = "tensors events -o new --j 3 --m 4 --timeframe-len 10";
    place.stdout(call);
    let config = place.path("new/config.yaml");
    let written = |name: &str| {
        let file = fs_err::metadata(place.path("new").join(name)).expect("there");
        file.modified().expect("a time")
    };
    assert!(written("config.yaml") <= written("manifest.json"));

    let text = fs_err::read(&config).expect("read");
    fs_err::remove_file(&config).expect("removed");
    place.stdout(call);
    assert_eq!(fs_err::read(&config).expect("read"), text);
}

#[test]
fn tensors_depend_on_the_seed_but_not_on_thread_count() {
    let place = Place::with_run();
    let files = |name: &str, flags: &str| {
        place.stdout(&format!(
            "{flags} tensors events -o {name} --j 9 --m 4 --timeframe-len 30"
        ));
        place.files(name)
    };
    let one = files("one", "--threads 1");
    assert_eq!(
        (
            files("two", "--threads 2") == one,
            files("eight", "--threads 8") == one
        ),
        (true, true)
    );
    place.stdout("tensors events -o seed --j 9 --m 4 --timeframe-len 30 --seed 2");
    assert_ne!(
        place.files("seed")["train-00000.safetensors"],
        one["train-00000.safetensors"]
    );
}

#[test]
fn every_choice_of_the_contract_is_there() {
    let place = Place::with_run();
    let text = |flags: &str| {
        place.stdout(&format!(
            "tensors events -o out --overwrite --j 3 --m 4 --timeframe-len 10 {flags}"
        ))
    };
    insta::assert_snapshot!(text("--window life --label final --split random"), @"
    2,119 hold cycles; samples of j = 3 jobs, m = 4 frames of 10 s, split by random
      train                         1,194  36.3 % success
      validate                        398  33.2 % success
      test                            397  37.3 % success
      not used: log ends               24
      not used: hold code excluded    106  67.9 % success
    ");
    insta::assert_snapshot!(text("--cycles first --split cluster"), @"
    2,119 hold cycles; samples of j = 3 jobs, m = 4 frames of 10 s, split by cluster
      train                              550  37.3 % success
      validate                           182  36.8 % success
      test                               182  34.6 % success
      not used: removed after release      3
      not used: hold code excluded       106  78.8 % success   among 85
      not used: not the first hold     1,096  24.4 % success  among 692
    ");
}

#[test]
fn events_that_cannot_be_used_are_named() {
    let place = Place::with_run();
    place.copy("events", "corrupt");
    let shard = place.path("corrupt/events-00000.safetensors");
    let bytes = fs_err::read(&shard).expect("read");
    fs_err::write(&shard, &bytes[..bytes.len() / 2]).expect("written");
    insta::assert_snapshot!(place.run("tensors corrupt -o out"), @"
    exit 2
    error: `corrupt/events-00000.safetensors` is not a usable events shard
      caused by: not a safetensors file
      caused by: incomplete metadata, file not fully covered

    hint: rebuild it with `poolcast parse LOG... -o DIR`
    ");
    fs_err::remove_file(&shard).expect("removed");
    insta::assert_snapshot!(place.run("tensors corrupt -o out"), @"
    exit 2
    error: `corrupt/events-00000.safetensors` is not a usable events shard
      caused by: failed to open file `corrupt/events-00000.safetensors`: No such file or directory (os error 2)

    hint: rebuild it with `poolcast parse LOG... -o DIR`
    ");
    fs_err::write(&shard, "no tensors at all").expect("written");
    insta::assert_snapshot!(place.run("tensors corrupt -o out"), @"
    exit 2
    error: `corrupt/events-00000.safetensors` is not a usable events shard
      caused by: not a safetensors file
      caused by: header too large

    hint: rebuild it with `poolcast parse LOG... -o DIR`
    ");
    place.copy("tensors", "swapped");
    fs_err::copy(place.path("swapped/train-00000.safetensors"), &shard).expect("copied");
    insta::assert_snapshot!(place.run("tensors corrupt -o out"), @"
    exit 2
    error: `corrupt/events-00000.safetensors` is not a usable events shard
      caused by: it holds tensors, not events

    hint: rebuild it with `poolcast parse LOG... -o DIR`
    ");
    place.copy("events", "old");
    let manifest = fs_err::read_to_string(place.path("old/manifest.json")).expect("read");
    place.write(
        "old/manifest.json",
        manifest.replace("\"format_version\": 13", "\"format_version\": 4"),
    );
    insta::assert_snapshot!(place.run("tensors old -o out"), @"
    exit 2
    error: `old` has events format version 4, and this program reads version 13

    hint: make it with `poolcast parse LOG... -o DIR`
    ");
    insta::assert_snapshot!(place.run("tensors tensors -o out"), @"
    exit 2
    error: `tensors` holds tensors, not events

    hint: make it with `poolcast parse LOG... -o DIR`
    ");
    insta::assert_snapshot!(place.run("tensors EventLog.xz -o out"), @"
    exit 2
    error: `EventLog.xz` holds no events (no manifest.json)

    hint: make it with `poolcast parse LOG... -o DIR`
    ");
    assert!(!place.path("out").exists());
}

#[test]
fn values_out_of_range_are_refused_before_anything_is_written() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("tensors events -o out --j 0"), @"
    exit 2
    error: cannot use the configuration
      caused by: `j` must be between 1 and 10000, got 0

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(place.run("tensors events -o out --window past"), @"
    exit 2
    error: invalid value 'past' for '--window <WINDOW>'
      [possible values: release, hold, life]

    For more information, try '--help'.
    ");
    place.write(
        "c.yaml",
        "preprocessing: {parameters: {m: {min: 5, max: 9}}}",
    );
    insta::assert_snapshot!(place.run("tensors events -o out --config c.yaml"), @"
    exit 2
    error: `m` is a distribution, which only a sweep draws from

    hint: give one value with `--m`
    ");
    assert!(!place.path("out").exists());
    place.copy("tensors", "mine");
    let before = place.files("mine");
    insta::assert_snapshot!(place.run("tensors events -o mine"), @"
    exit 2
    error: `mine` already exists

    hint: name another directory, or replace it with the flag that `--help` lists
    ");
    let again = place.run("tensors events -o mine --j 5 --m 6 --timeframe-len 10");
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (Some(0), "nothing new: `mine` already holds these tensors\n")
    );
    assert_eq!(place.files("mine"), before);
}

#[test]
fn a_log_without_an_outcome_gives_no_samples() {
    let place = Place::new();
    place.write(
        "EventLog",
        "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
         012 (1.0.0) 2026-11-21 01:50:20 Job was held.\n\tx\n\tCode 12 Subcode 2\n...\n",
    );
    place.stdout("parse EventLog -o events");
    insta::assert_snapshot!(place.run("tensors events -o out"), @"
    exit 2
    error: the events have 1 hold cycle, none with a known outcome

    hint: parse a longer log: held jobs must be released and end, or be held again, within it
    ");
}

#[test]
fn an_audit_shows_what_a_random_split_leaks() {
    let place = Place::with_run();
    let audit = |flags: &str| {
        place.stdout(&format!(
            "tensors events -o out --overwrite --j 1 --m 4 --audit {flags}"
        ))
    };
    insta::assert_snapshot!(audit(""), @"
    2,119 hold cycles; samples of j = 1 job, m = 4 frames of 60 s, split by time
      train                            940  26.5 % success
      validate                         311  37.0 % success
      test                             322  37.6 % success
      not used: still held               8
      not used: removed while held     396
      not used: removed after release    3
      not used: hold code excluded     106  78.8 % success  among 85
      not used: decided too late        33  57.6 % success
    leaks across the splits  clusters  seconds  equal codes  and label  late windows  late outcomes
      train and validate           27        0          301        188             0              0
      train and test                0        0          318        198             0              0
      validate and test            23        0          311        158             0              0
    success by hold code       train   validate        test
      12/2                195 of 743  92 of 227  105 of 250
      13/2                 54 of 197   23 of 84    16 of 72
    ");
    insta::assert_snapshot!(audit("--split random --window life"), @"
    2,119 hold cycles; samples of j = 1 job, m = 4 frames of 60 s, split by random
      train                            964  31.5 % success
      validate                         321  34.0 % success
      test                             321  28.3 % success
      not used: still held               8
      not used: removed while held     396
      not used: removed after release    3
      not used: hold code excluded     106  78.8 % success  among 85
    leaks across the splits  clusters  seconds  equal codes  and label  late windows  late outcomes
      train and validate          189      158          316        280           964            964
      train and test              182      148          315        274           964            964
      validate and test           120       78          299        261           321            321
    success by hold code       train   validate       test
      12/2                252 of 757  86 of 252  71 of 239
      13/2                 52 of 207   23 of 69   20 of 82
    ");
    let json = place.json("tensors events -o out --overwrite --j 1 --m 4 --audit --json");
    for shared in json["audit"]["shared"].as_array().expect("pairs") {
        assert_eq!(shared["late_outcomes"], 0, "{shared}");
        assert_eq!(shared["late_windows"], 0, "{shared}");
    }
    assert_eq!(json["audit"]["by_code"][0]["hold_code"], 12);

    place.write("separate.yaml", "preprocessing: {split_clusters: separate}");
    let json = place.json("tensors events -o out --overwrite -c separate.yaml --audit --json");
    for shared in json["audit"]["shared"].as_array().expect("pairs") {
        assert_eq!(shared["clusters"], 0, "{shared}");
    }
    insta::assert_snapshot!(place.run("tensors events -o out -c separate.yaml --split random"), @"
    exit 2
    error: cannot use `separate.yaml`
      caused by: `preprocessing.split_clusters: separate` requires `split: time`, got `split: random`
    ");
}

#[test]
fn contexts_and_vocabularies_change_the_samples() {
    let place = Place::with_run();
    let shards = |name: &str, flags: &str| {
        place.stdout(&format!(
            "tensors events -o {name} --j 9 --m 4 --timeframe-len 30 {flags}"
        ));
        place
            .files(name)
            .remove("train-00000.safetensors")
            .expect("a shard")
    };
    let all = [
        shards("uniform", ""),
        shards("recent", "--context recent"),
        shards("codes", "--vocabulary hold-codes"),
    ];
    assert!(
        (0..3).all(|a| (0..a).all(|b| all[a] != all[b])),
        "each choice gives other samples"
    );
    assert_eq!(shards("again", "--context recent --threads 3"), all[1]);
    assert_eq!(
        shards("owner", "--context same-owner-first"),
        all[0],
        "one owner owns all jobs of this log"
    );
    let listed = "0,input-transfer,1,12,output-transfer,5";
    assert_ne!(shards("listed", &format!("--states {listed}")), all[0]);
    let json = place.json(&format!(
        "tensors events -o six --j 2 --m 4 --timeframe-len 30 --states {listed} --json"
    ));
    assert_eq!(json["e"], 6, "{json}");
    for (states, wrong) in [
        ("12,12", "12 twice"),
        ("40,input-transfer", "parts of it"),
        ("28", "ignore_events"),
        ("x", "got x"),
    ] {
        let refusal = place.run(&format!("tensors events -o none --states {states}"));
        assert!(
            refusal.code == Some(2) && refusal.stderr.contains(wrong),
            "{refusal}"
        );
    }
    let refusal = place.run("tensors events -o none --context newest");
    assert_eq!(refusal.code, Some(2), "{refusal}");
}
