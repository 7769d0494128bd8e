//! Tests that reading the output of other programs, and files that others have written, takes work and
//! memory in proportion to its size. So does the advice on jobs that are held at once.
//!
//! No clock is read. `cargo test` counts allocations, which are the same on every machine. A search
//! that allocates nothing shows in instructions alone, which `ci/proof/growth` counts under valgrind,
//! with the same tests.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use htcondor_eventlog::ReadOptions;
use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use poolcast_advice::{AdviceModel, JobAdvice, JobQueue, ModelOrigin, advise};
use poolcast_base::salt::OwnerSalt;
use poolcast_events::{IngestListener, read_into_memory};
use poolcast_holds::answers::LearnedAnswers;
use poolcast_pipelines::FittedPipeline;
use poolcast_provision::trace::read_accounting;
use poolcast_slurm::live::{NodeListing, QueueListing};
use poolcast_sweep::config::Config;
use poolcast_tables::MetadataTable;
use serde_json::{Value, json};

// The names are none of keys of the configuration, which the advice reads.
/// Environment variable that lets the tests count instructions instead of allocations.
const COUNT_INSTRUCTIONS: &str = "GROWTH_INSTRUCTIONS";

/// Environment variable with the number of rows that a process reads whose instructions are counted.
const ROWS: &str = "GROWTH_ROWS";

/// Increase of each count that is allowed if there are four times as many rows. Counts are exact, and
/// sorts and growing tables need little more than four times the work.
const MOST_GROWTH: f64 = 4.5;

/// The cost of a reading, by the name of the count.
type Cost = Vec<(&'static str, u64)>;

/// Fails if reading 4 `rows` costs more than [`MOST_GROWTH`] times as much as reading `rows`. `write` makes the
/// input, and `read` reads it. `test` is the name of the calling test.
fn check_growth<T>(test: &str, rows: usize, write: fn(usize) -> Vec<u8>, read: fn(&[u8]) -> T) {
    // Both counts are of one thread.
    let this_thread = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread();
    let _this_thread = this_thread.build().expect("a pool");

    if let Some(rows) = std::env::var(ROWS).ok().and_then(|rows| rows.parse().ok()) {
        drop(read_alone(&write(rows), read));
        return;
    }
    let cost = |rows| match std::env::var_os(COUNT_INSTRUCTIONS) {
        Some(_) => vec![("instructions", instructions(test, rows))],
        None => allocations(&write(rows), read),
    };
    for ((name, few), (_, many)) in cost(rows).into_iter().zip(cost(4 * rows)) {
        assert!(
            many as f64 <= MOST_GROWTH * few as f64,
            "{name}: {few} for {rows} rows, {many} for four times as many"
        );
    }
}

/// Counts what `read` allocates.
fn allocations<T>(input: &[u8], read: fn(&[u8]) -> T) -> Cost {
    let mut result = None;
    let counted = allocation_counter::measure(|| result = Some(read(input)));
    drop(result);
    vec![
        ("allocations", counted.count_total),
        ("allocated bytes", counted.bytes_total),
        ("most bytes at once", counted.bytes_max),
    ]
}

/// Counts the instructions of [`read_alone`] in a process of `test` that reads `rows`.
fn instructions(test: &str, rows: usize) -> u64 {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*read_alone*")
        .arg(program)
        .args(["--exact", test])
        .env(ROWS, rows.to_string())
        .output()
        .expect("valgrind starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let counted = counted.and_then(|(_, counted)| counted.trim().parse().ok());
    counted.filter(|counted| *counted > 0).expect(&said)
}

/// Reads `input`, in a function that valgrind finds by its name.
#[inline(never)]
fn read_alone<T>(input: &[u8], read: fn(&[u8]) -> T) -> T {
    read(input)
}

#[test]
#[should_panic(expected = "for four times as many")]
fn quadratic_reading_is_found() {
    check_growth(
        "quadratic_reading_is_found",
        1_000,
        |rows| (0..rows).map(|row| row as u8).collect(),
        |rows| {
            let firsts = (0..rows.len()).map(|count| rows[..count].to_vec());
            firsts.map(|first| first.len()).sum::<usize>()
        },
    );
}

/// Returns a seed of the fuzz targets as JSON.
fn seed(name: &str) -> Value {
    let path = format!("{}/tests/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&fs_err::read(path).expect("read")).expect("JSON")
}

/// Returns `document` with `rows` copies of the first item of the list at `pointer`, which
/// `number` makes differ.
fn with_rows(
    mut document: Value,
    pointer: &str,
    rows: usize,
    number: fn(&mut Value, usize),
) -> Vec<u8> {
    let list = document.pointer_mut(pointer).expect("a list");
    let first = list[0].clone();
    let mut written = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut item = first.clone();
        number(&mut item, row);
        written.push(item);
    }
    *list = Value::Array(written);
    serde_json::to_vec(&document).expect("JSON")
}

fn condor_q(rows: usize) -> Vec<u8> {
    with_rows(seed("condor_q/real.json"), "", rows, |job, row| {
        job["ClusterId"] = json!(row + 1);
        job["GlobalJobId"] = json!(format!("ap{}#{}.0#1795227668", row % 7, row + 1));
        job["Owner"] = json!(format!("user{row}"));
        job["RequestMemory"] = json!(row);
        job["HoldReason"] = json!(format!("Error from slot1@node{row}: no such file"));
    })
}

#[test]
fn condor_q_is_read_in_linear_work_and_memory() {
    check_growth(
        "condor_q_is_read_in_linear_work_and_memory",
        2_000,
        condor_q,
        |text| {
            let queue = JobQueue::read(text).expect("a queue");
            queue.correct(Vec::new(), "ap", 0)
        },
    );
}

fn squeue_json(rows: usize) -> Vec<u8> {
    with_rows(
        seed("slurm_queue/squeue-22.05.json"),
        "/jobs",
        rows,
        |job, row| {
            job["job_id"] = json!(row + 1);
            job["user_name"] = json!(format!("user{row}"));
            job["partition"] = json!(format!("partition{row}"));
        },
    )
}

fn squeue_text(rows: usize) -> Vec<u8> {
    let mut text = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|STATE|REASON|USER|UID|PARTITION|ACCOUNT|QOS|NODES|TIME_LIMIT|SUBMIT_TIME|START_TIME|END_TIME|PRIORITY|NODELIST\n".to_owned();
    for row in 1..=rows {
        text += &format!(
            "{row}|{row}|N/A|RUNNING|None|user{row}|1000|part{row}|(null)|normal|2|3:00|1000|1002|1182|42|n[1-2]\n"
        );
    }
    text.into_bytes()
}

#[test]
fn squeue_json_is_read_in_linear_work_and_memory() {
    check_growth(
        "squeue_json_is_read_in_linear_work_and_memory",
        1_000,
        squeue_json,
        |text| QueueListing::parse(text).expect("jobs"),
    );
}

#[test]
fn squeue_text_is_read_in_linear_work_and_memory() {
    check_growth(
        "squeue_text_is_read_in_linear_work_and_memory",
        4_000,
        squeue_text,
        |text| QueueListing::parse(text).expect("jobs"),
    );
}

fn sinfo_json(rows: usize) -> Vec<u8> {
    let nodes = (0..rows).map(|row| {
        json!({"name": format!("n{row}"), "state": ["MIXED"], "partitions": ["all", format!("p{}", row % 1000)]})
    });
    serde_json::to_vec(&json!({"nodes": nodes.collect::<Vec<_>>()})).expect("JSON")
}

fn sinfo_text(rows: usize) -> Vec<u8> {
    let mut text = "NODELIST|STATE|PARTITION\n".to_owned();
    for row in 0..rows {
        text += &format!("n{row}|mixed|p{}\n", row % 1000);
    }
    text.into_bytes()
}

#[test]
fn sinfo_json_is_read_in_linear_work_and_memory() {
    check_growth(
        "sinfo_json_is_read_in_linear_work_and_memory",
        1_000,
        sinfo_json,
        |text| NodeListing::parse(text).expect("nodes"),
    );
}

#[test]
fn sinfo_text_is_read_in_linear_work_and_memory() {
    check_growth(
        "sinfo_text_is_read_in_linear_work_and_memory",
        4_000,
        sinfo_text,
        |text| NodeListing::parse(text).expect("nodes"),
    );
}

fn sacct_text(rows: usize) -> Vec<u8> {
    let mut text = "JobID|User|Submit|Start|End|TimelimitRaw|NNodes|State\n".to_owned();
    for row in 1..=rows {
        let submit_s = 1_677_164_293 + row / 10;
        text += &format!(
            "{row}|user{row}|{submit_s}|{}|{}|2880|4|COMPLETED\n",
            submit_s + 60,
            submit_s + 3600
        );
    }
    text.into_bytes()
}

fn sacct_json(rows: usize) -> Vec<u8> {
    with_rows(seed("sacct/sacct-22.05.json"), "/jobs", rows, |job, row| {
        job["job_id"] = json!(row + 1);
        job["user"] = json!(format!("user{row}"));
    })
}

fn read_sacct(text: &[u8]) -> impl Sized + use<> {
    let salt = OwnerSalt::random().expect("a salt");
    let trace = read_accounting(text.to_vec(), &salt).expect("a trace");
    assert!(!trace.jobs.is_empty());
    trace
}

#[test]
fn sacct_text_is_read_in_linear_work_and_memory() {
    check_growth(
        "sacct_text_is_read_in_linear_work_and_memory",
        4_000,
        sacct_text,
        read_sacct,
    );
}

#[test]
fn sacct_json_is_read_in_linear_work_and_memory() {
    check_growth(
        "sacct_json_is_read_in_linear_work_and_memory",
        2_000,
        sacct_json,
        read_sacct,
    );
}

/// Writes a Parquet file with an index, which differs in each row, and a column of numbers.
fn parquet_table(rows: usize) -> Vec<u8> {
    let schema = "message schema { REQUIRED INT64 run; OPTIONAL DOUBLE a; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).expect("a file");
    let mut group = file.next_row_group().expect("a group");
    let runs: Vec<i64> = (0..rows as i64).collect();
    let mut column = group.next_column().expect("written").expect("a column");
    (column.typed::<Int64Type>().write_batch(&runs, None, None)).expect("written");
    column.close().expect("closed");

    let numbers: Vec<f64> = runs.iter().map(|run| *run as f64 / 7.0).collect();
    let mut column = group.next_column().expect("written").expect("a column");
    let is_present = vec![1; rows];
    (column.typed::<DoubleType>())
        .write_batch(&numbers, Some(&is_present), None)
        .expect("written");
    column.close().expect("closed");
    group.close().expect("closed");
    file.into_inner().expect("written")
}

#[test]
fn parquet_is_read_in_linear_work_and_memory() {
    check_growth(
        "parquet_is_read_in_linear_work_and_memory",
        4_000,
        parquet_table,
        |bytes| {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(bytes).expect("written");
            MetadataTable::read(file.path(), "run").expect("a table")
        },
    );
}

fn boosted_trees(rows: usize) -> Vec<u8> {
    let trees = "/body/target/classes/model/boosted/trees";
    with_rows(seed("pipeline/xgb.json"), trees, rows, |_, _| {})
}

#[test]
fn pipelines_are_read_in_linear_work_and_memory() {
    check_growth(
        "pipelines_are_read_in_linear_work_and_memory",
        1_000,
        boosted_trees,
        |bytes| {
            let path = std::path::Path::new("pipeline.json");
            FittedPipeline::from_bytes(bytes, path).expect("a pipeline")
        },
    );
}

/// Second at which an outage holds all jobs, after 12:00.
const OUTAGE_S: usize = 3 * 3600;

/// Returns the stamp `s` seconds after 12:00.
fn stamp(s: usize) -> String {
    let (minute, s) = (s / 60, s % 60);
    format!(
        "2026-11-21 {:02}:{:02}:{s:02}",
        12 + minute / 60,
        minute % 60
    )
}

/// Writes the log of a server that fails. At one second it holds three of four of `rows` jobs, of
/// five procs in each cluster. A third of them were held before, released and held again. The other
/// jobs got past such a hold. `file` returns the file that a cluster reads.
fn outage(rows: usize, file: fn(usize) -> String) -> Vec<u8> {
    let mut records: Vec<(usize, String)> = Vec::new();
    for row in 0..rows {
        let (cluster, proc, begin) = (row / 5 + 1, row % 5, row % 60);
        let mut add = |number: u16, s: usize, body: &str| {
            let record = format!(
                "{number:03} ({cluster}.{proc}.0) {} {body}\n...\n",
                stamp(s)
            );
            records.push((s, record));
        };
        let url = format!("http://data.example.org/set/{}", file(cluster));
        let held = format!(
            "Job was held.\n\tTransfer input files failure at execution point slot1@node{}.example using protocol http. \
             Details: {url}: server returned 503 Service Unavailable ( URL file = {url} )|\n\tCode 13 Subcode 256",
            cluster % 90
        );
        let owner = format!("Owner = \"user{}\"", cluster % 7);
        add(0, begin, "Job submitted from host: <10.0.0.1:9618>");
        add(
            28,
            begin,
            &format!("Job ad information event triggered.\n{owner}"),
        );
        if row % 4 < 2 {
            let released = "Job was released.\n\tvia condor_release (by user x)";
            add(12, 600 + begin, &held);
            add(13, 1200 + begin, released);
        }
        if row % 4 == 0 {
            let ended = "Job terminated.\n\t(1) Normal termination (return value 0)";
            add(1, 1800 + begin, "Job executing on host: <10.0.0.2:9618>");
            add(5, 3600 + begin, ended);
        } else {
            add(12, OUTAGE_S, &held);
        }
    }
    records.sort_by_key(|(s, _)| *s);
    let text: String = records.into_iter().map(|(_, record)| record).collect();
    text.into_bytes()
}

/// Returns the advice on the jobs that the log `text` shows as held, without a model.
fn advice(text: &[u8]) -> Vec<JobAdvice> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text).expect("written");
    let listener = IngestListener {
        on_bytes: Arc::new(|_| {}),
        on_step: &|_| {},
    };
    let logs = [file.path().to_owned()];
    let options = ReadOptions::default();
    let store =
        read_into_memory(&logs, None, &options, None, &listener, &mut |_| {}).expect("read");
    let config = Config::load_built_in(&BTreeMap::new()).expect("the defaults");
    let asked_ms = store.summary.end_ms;
    let answers = LearnedAnswers::without_run(&store, asked_ms, &config.advice, config.seed);
    let answers = answers.expect("learned").expect("outcomes");
    let model = AdviceModel {
        answers: &answers,
        origin: &ModelOrigin::default(),
    };
    let all = advise(&store, Some(model), &config.advice, None).expect("advice");
    assert!(!all.is_empty());
    all
}

#[test]
fn jobs_held_for_one_server_are_judged_in_linear_time_and_memory() {
    check_growth(
        "jobs_held_for_one_server_are_judged_in_linear_time_and_memory",
        800,
        |rows| outage(rows, |cluster| format!("part{cluster}.tar")),
        advice,
    );
}

#[test]
fn jobs_held_for_one_file_are_judged_in_linear_time_and_memory() {
    check_growth(
        "jobs_held_for_one_file_are_judged_in_linear_time_and_memory",
        800,
        |rows| outage(rows, |_| "all.tar".to_owned()),
        advice,
    );
}
