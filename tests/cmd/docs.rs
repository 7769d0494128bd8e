//! Tests of the documentation: its commands, output, configurations, code and links match the
//! program and the repository.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use crate::place::{LOG_TEXT, Outcome, Place};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(name: &str) -> String {
    fs_err::read_to_string(root().join(name)).expect("read")
}

/// Returns the fenced blocks of `text` in the language `language`.
pub(crate) fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a block"))
        .collect()
}

/// A test directory laid out like the top of the repository.
pub(crate) fn repository() -> Place {
    let place = Place::new();
    for name in ["tests", "config"] {
        symlink(root().join(name), place.path(name)).expect("linked");
    }
    place
}

/// Returns true if `found` matches `shown`, where a line `...` stands for any lines, and `...` at
/// the end of a line for any rest.
pub(crate) fn is_shown(found: &[&str], shown: &[&str]) -> bool {
    match shown {
        [] => found.is_empty(),
        ["...", rest @ ..] => (0..=found.len()).any(|skipped| is_shown(&found[skipped..], rest)),
        [line, rest @ ..] => found.split_first().is_some_and(|(first, others)| {
            let same = line
                .strip_suffix("...")
                .map_or(first == line, |begin| first.starts_with(begin));
            same && is_shown(others, rest)
        }),
    }
}

#[test]
fn documented_sessions_print_what_is_shown() {
    let chains = repository();
    for (document, count, place) in [
        ("docs/stages.md", 7, &repository()),
        ("docs/simulation.md", 2, &repository()),
        ("docs/dag.md", 3, &repository()),
        ("docs/pipelines.md", 4, &repository()),
        ("docs/provision.md", 10, &chains),
        // docs/provision.md has its commands, too, so they find their work done.
        ("README.md", 3, &chains),
    ] {
        let sessions = read(document);
        let sessions = blocks(&sessions, "console");
        assert_eq!(sessions.len(), count, "{document}");
        follow(place, &sessions);
    }
}

#[test]
fn documented_configurations_load() {
    let place = Place::new();
    let documents = [
        "docs/sweeps.md",
        "docs/dag.md",
        "docs/ospool.md",
        "docs/pipelines.md",
    ]
    .map(read)
    .concat();
    let configurations = blocks(&documents, "yaml");
    assert!(configurations.len() > 6);
    for text in configurations
        .into_iter()
        .chain([&read("config/sweep.yaml")[..]])
    {
        place.write("c.yaml", text);
        place.stdout("config c.yaml");
    }
}

/// Runs the commands of `sessions` and compares their output.
fn follow(place: &Place, sessions: &[&str]) {
    for session in sessions {
        let (command, shown) = session.split_once('\n').expect("a command and its output");
        let args = command
            .strip_prefix("$ poolcast ")
            .expect("a call of poolcast");
        let outcome = match args.split_once(" \"") {
            Some((args, quoted)) => {
                let mut command = place.command(args);
                let output = command.arg(quoted.trim_end_matches('"')).output();
                Outcome::of(output.expect("the program starts"))
            }
            None => place.run(args),
        };
        let found: Vec<&str> = outcome.stdout.lines().collect();
        assert!(
            is_shown(&found, &shown.lines().collect::<Vec<_>>()),
            "{command}\n{outcome}\nis not as shown\n{shown}"
        );
    }
}

#[test]
fn readme_commands_are_run_by_ci() {
    let readme = read("README.md");
    let commands: Vec<&str> = blocks(&readme, "sh")
        .into_iter()
        .map(str::trim_end)
        .collect();
    assert_eq!(
        commands.len(),
        5,
        "exactly five for a newcomer: {commands:?}"
    );
    assert_are_typed(commands[0], "ci/proof/packages");
    assert_are_typed(commands[1], "ci/proof/own-logs");
    assert_are_typed(commands[2], "ci/proof/held-jobs");
    let scripts = read("ci/proof/quickstart") + &read("ci/gate/test");
    for command in &commands[3..] {
        assert!(
            scripts.lines().any(|line| line.starts_with(command)),
            "`{command}` is not run by CI"
        );
    }
}

/// Checks that the script types each command of `block`, which may have comments at its end.
fn assert_are_typed(block: &str, script: &str) {
    let script = read(script);
    for line in block.replace("\\\n", "\\").lines() {
        let command = line.split("  # ").next().expect("a command").trim_end();
        let words: Vec<&str> = command
            .split(['\\', ' '])
            .filter(|word| !word.is_empty())
            .collect();
        let command = words.join(" ");
        assert!(
            script.contains(&format!("{command}'")),
            "`{command}` is not typed"
        );
    }
}

#[test]
fn commands_of_the_page_on_installation_are_run_by_ci() {
    let (page, readme) = (read("docs/installing.md"), read("README.md"));
    let commands = blocks(&page, "sh");
    assert_eq!(commands.len(), 2);
    assert_eq!(commands[0], blocks(&readme, "sh")[0]);
    for block in commands {
        assert_are_typed(block, "ci/proof/packages");
    }

    let version = env!("CARGO_PKG_VERSION");
    let is_this_version = |name: &str| name.starts_with(version);
    let named = page
        .match_indices("poolcast-")
        .chain(page.match_indices("poolcast_"));
    for (at, begin) in named {
        assert!(
            is_this_version(&page[at + begin.len()..]),
            "{}",
            &page[at..at + 20]
        );
    }
}

#[test]
fn documented_dag_script_matches_its_file() {
    let (page, script) = (read("docs/advice.md"), read("condor/held-node.sh"));
    let lines = blocks(&page, "shell")[0];
    assert!(script.ends_with(&format!("set -u\n{lines}")), "{script}");
    let typed = read("ci/proof/held-jobs");
    let line = "SCRIPT HOLD ALL_NODES /home/tester/held-jobs/held-node.sh $JOB\n";
    assert!(typed.contains(line) && page.contains(&line.replace("tester", "me")));
    assert!(script.contains(&line.replace("tester", "me")));
}

/// Returns the shell commands in a systemd unit, with `$HOME` in place of `%h`.
fn unit_commands(unit: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for line in unit.lines() {
        let quoted = line
            .strip_prefix("ExecStart=/bin/sh -c '")
            .and_then(|rest| rest.strip_suffix('\''));
        commands.extend(quoted.map(|command| command.replace("%h", "$HOME")));
    }
    commands
}

/// A home directory with the program, the first half of the bundled log, and a `condor_config_val`
/// that names the log.
pub(crate) fn home() -> Place {
    let place = Place::with_log();
    let log = &*LOG_TEXT;
    let middle = log.find(") 11/21 02:05:00").expect("a record of then");
    let middle = log[..middle].rfind("...\n").expect("the end of one") + 4;
    place.write("EventLog", &log[..middle]);

    let programs = place.path(".local/bin");
    fs_err::create_dir_all(&programs).expect("made");
    symlink(env!("CARGO_BIN_EXE_poolcast"), programs.join("poolcast")).expect("linked");
    let script = "[ \"$1\" = EVENT_LOG ] && echo \"$HOME/EventLog\"";
    place.put_program(".local/bin/condor_config_val", script);
    place
}

/// Runs `command` in a shell, with settings for small searches.
pub(crate) fn type_command(home: &Place, command: &str) -> Outcome {
    let path = format!("{}:/usr/bin:/bin", home.path(".local/bin").display());
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-ec", command])
        .current_dir(home.path("."))
        .env_clear()
        .envs([
            ("HOME", home.path(".").as_os_str()),
            ("PATH", path.as_ref()),
        ])
        .env("POOLCAST_OWNER_SALT", "the salt of all tests")
        .env("POOLCAST_RUNS", "1")
        .env("POOLCAST_EPOCHS", "1")
        .env("POOLCAST_TRAINING__TIME_CUTS", "1")
        .env("POOLCAST_ADVICE__REHEARSED_MODELS", "1")
        .env("POOLCAST_ADVICE__PRIOR", "false")
        .env("POOLCAST_EVALUATION__RESAMPLES", "10")
        .env("POOLCAST_PIPELINES__XGB__PARAMETERS__N_ESTIMATORS", "5");
    Outcome::of(shell.output().expect("a shell"))
}

#[test]
fn commands_about_held_jobs_succeed() {
    let page = read("docs/held-jobs.md") + &read("docs/advice.md");
    let mut commands: Vec<String> = Vec::new();
    for (at, block) in blocks(&page, "sh").into_iter().enumerate() {
        let directory = if at < 2 { "" } else { "cd ~/held-jobs\n" };
        commands.push(format!("{directory}{block}"));
    }
    assert_eq!(commands.len(), 4);
    for line in blocks(&page, "crontab")[0].lines() {
        let command = line.splitn(6, ' ').nth(5).expect("a command");
        assert!(!command.contains('%'), "cron reads it as the end of a line");
        commands.push(command.to_owned());
    }
    commands.extend(unit_commands(blocks(&page, "ini")[0]));
    assert_eq!(commands.len(), 8);

    let home = home();
    write_own_logs(&home);
    let mut printed = Vec::new();
    for command in &commands {
        let outcome = type_command(&home, command);
        assert_eq!(outcome.code, Some(0), "{command}\n{outcome}");
        printed.push(outcome.stdout);
    }

    assert!(printed[0].contains("1 held job: "), "{}", printed[0]);
    assert!(printed[1].contains("Advice on the "), "{}", printed[1]);
    assert!(!printed[2].is_empty());
    assert!(printed[3].contains("periodic_release"), "{}", printed[3]);
    let learned = fs_err::read_to_string(home.path("held-jobs/learned.txt")).expect("read");
    assert!(learned.contains("Advice on the "), "{learned}");
}

/// The lists are those that HTCondor 25.14.1 has printed.
#[test]
fn documented_explanations_are_printed() {
    let page = read("docs/hold-reasons.md");
    let sessions = blocks(&page, "console");
    assert_eq!(sessions.len(), 3);
    let home = home();
    home.copy_all(&root().join("tests/data/feeds"), "feeds");
    let printed = "case \"$*\" in -hold) cat $HOME/feeds/hold-table ;; *) sed 's/^[0-9]* [0-9]* //' $HOME/feeds/numbered ;; esac";
    home.put_program(".local/bin/condor_q", printed);
    for session in sessions {
        let (line, shown) = session.split_once('\n').expect("a command and its output");
        let command = line.strip_prefix("$ ").expect("a command");
        let outcome = type_command(&home, command);
        let found: Vec<&str> = outcome.stdout.lines().collect();
        let shown: Vec<&str> = shown.lines().collect();
        assert!(is_shown(&found, &shown), "{command}\n{outcome}");
    }
}

/// Writes the log of a held job and of a removed one as `job.log` and into `proj`, and a `condor_q`
/// and a `condor_history` that name it.
fn write_own_logs(home: &Place) {
    let submitted = |job| {
        format!(
            "000 ({job}.000.000) 2026-11-21 01:10:00 Job submitted from host: <10.0.0.1:9618>\n...\n"
        )
    };
    let held = "012 (1085.000.000) 2026-11-21 01:20:00 Job was held.\n\tno reason\n\tCode 13 Subcode 2\n...\n";
    let removed = "009 (1086.000.000) 2026-11-21 01:20:00 Job was aborted.\n...\n";
    let log = submitted(1085) + &submitted(1086) + held + removed;
    fs_err::create_dir(home.path("proj")).expect("made");
    home.write("job.log", &log);
    home.write("proj/job.log", &log);

    let ads = r#"[{"ClusterId": 1085, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2,
        "UserLog": "job.log", "Iwd": "'$HOME'"}]"#;
    for program in ["condor_q", "condor_history"] {
        home.put_program(&format!(".local/bin/{program}"), &format!("echo '{ads}'"));
    }
}

#[test]
fn commands_about_own_logs_succeed() {
    let page = read("docs/held-jobs.md");
    let typed = page.lines().filter_map(|line| {
        let cell = line.strip_prefix("| `poolcast advise")?.split('`').next()?;
        Some(format!("poolcast advise{cell}"))
    });
    let typed: Vec<String> = typed.collect();
    assert_eq!(typed.len(), 6);
    let home = home();
    write_own_logs(&home);
    for command in typed {
        let outcome = type_command(&home, &format!("export USER=me; {command}"));
        assert_eq!(outcome.code, Some(0), "{command}\n{outcome}");
        let expected = if command.contains("1086.0") {
            "job 1086.0 was removed"
        } else {
            "1 held job: 1 to fix first"
        };
        assert!(outcome.stdout.contains(expected), "{command}\n{outcome}");
    }
}

/// CI runs the documented Podman commands, and the image has the version of the program.
#[test]
fn documented_container_commands_are_run_by_ci() {
    let version = env!("CARGO_PKG_VERSION");
    let script = read("ci/image/podman")
        .replace("$name", "poolcast")
        .replace("$version", version);
    let document = read("docs/containers.md");
    let typed =
        |line: &&str| line.starts_with("    podman load ") || line.starts_with("    podman run ");
    let commands: Vec<&str> = document
        .lines()
        .filter(typed)
        .map(str::trim_start)
        .collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        assert!(
            script.lines().any(|line| line == command),
            "`{command}` is not run by CI"
        );
    }
    assert!(
        read("Containerfile")
            .lines()
            .any(|line| line == format!("ARG VERSION={version}"))
    );
    assert_eq!(read(".dockerignore"), read(".containerignore"));
}

/// Returns the Rust and YAML blocks of a document, each with the file that is named before it.
fn shown_code(document: &str) -> Vec<(&str, &str)> {
    let mut shown = Vec::new();
    for (at, fence) in document.match_indices("```") {
        let code = &document[at + fence.len()..];
        let code = code
            .strip_prefix("rust\n")
            .or_else(|| code.strip_prefix("yaml\n"));
        if let Some(code) = code {
            let file = document[..at].rsplit('`').nth(1);
            shown.push((
                file.expect("a file named before the code"),
                code.split("```").next().expect("code"),
            ));
        }
    }
    shown
}

#[test]
fn new_model_document_matches_the_sources() {
    let document = read("docs/new-model.md");
    let shown = shown_code(&document);
    assert_eq!(shown.len(), 4);
    for (file, code) in shown {
        let source = read(file);
        assert!(source.contains(code), "{file} does not contain\n{code}");
        assert!(
            code.lines().count() == 1 || source == code,
            "{file} is not all of\n{code}"
        );
    }
}

#[test]
fn code_in_contributing_matches_the_sources() {
    let document = read("CONTRIBUTING.md");
    let shown = shown_code(&document);
    assert_eq!(shown.len(), 7);
    for (file, code) in shown {
        assert!(read(file).contains(code), "{file} does not contain\n{code}");
    }
}

/// Returns the paths of all documents, from the top of the repository.
fn documents() -> Vec<String> {
    let mut documents = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
    ]
    .map(str::to_owned)
    .to_vec();
    for file in fs_err::read_dir(root().join("docs")).expect("listed") {
        let name = file.expect("a file").file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".md") {
            documents.push(format!("docs/{name}"));
        }
    }
    documents
}

#[test]
fn links_and_named_files_exist() {
    for document in documents() {
        let text = read(&document);
        let is_file = |word: &&str| {
            ["src/", "ci/", "docs/", "tests/", "config/", ".ci/"]
                .iter()
                .any(|top| word.starts_with(top))
        };
        for word in text.split('`').skip(1).step_by(2).filter(is_file) {
            assert!(
                root().join(word).exists(),
                "{document} names `{word}`, which does not exist"
            );
        }

        let beside = root().join(&document);
        for rest in text.split("](").skip(1) {
            let link = rest.split([')', '#']).next().unwrap_or_default();
            if link.starts_with("http") {
                continue;
            }
            assert!(
                beside.with_file_name(link).exists(),
                "{document} leads to `{link}`, which does not exist"
            );
        }
    }
}

#[test]
fn the_index_names_every_document() {
    let index = read("docs/README.md");
    for document in documents() {
        let Some(name) = document.strip_prefix("docs/") else {
            continue;
        };
        assert!(
            name == "README.md" || index.contains(&format!("]({name})")),
            "docs/README.md does not name {document}"
        );
    }
}

#[test]
fn the_check_on_a_gpu_has_every_model() {
    let script = read("ci/proof/check-gpu");
    let list = script
        .split("models='")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    let checked: Vec<&str> = list.expect("a list").split(' ').collect();
    let known: Vec<&str> = poolcast_models::ARCHITECTURES
        .iter()
        .map(|architecture| architecture.name())
        .collect();
    assert_eq!(checked, known);

    let page = read("docs/gpu.md");
    let (_, check) = page
        .split_once("## The check to make on a GPU")
        .expect("a chapter");
    for model in known {
        assert!(
            check.contains(&format!("`{model}`")),
            "{model} is missing in docs/gpu.md"
        );
    }
}
