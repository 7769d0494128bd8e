//! `poolcast site init`: the files of a service.

use std::process::Command;

use crate::json_documents::{PrintedKeys, print_all};
use crate::place::Place;

/// The call for a site whose log and program have their usual paths.
const CALL: &str = "site init -o root --program /usr/bin/poolcast --log /var/log/condor/EventLog";

pub(crate) fn site_documents() -> PrintedKeys {
    let place = Place::new();
    print_all(&place, &[&format!("{CALL} --json")])
}

#[test]
fn files_are_shown_before_they_are_written() {
    let place = Place::new();
    let shown = place.run(CALL);
    assert_eq!(shown.code, Some(0), "{shown}");
    insta::assert_snapshot!(shown.stdout);
    assert!(shown.stderr.contains("nothing was written"), "{shown}");
    assert!(!place.path("root").exists());

    let written = place.stdout(&format!("{CALL} --yes"));
    assert!(written.contains("systemctl enable --now poolcast-collect.timer"));
    assert_eq!(place.files("root").len(), 8);
    // The second call has nothing to write, and a changed file is kept.
    place.stdout(&format!("{CALL} --yes"));
    place.write("root/etc/tmpfiles.d/poolcast.conf", "mine");
    let refused = place.run(&format!("{CALL} --yes"));
    assert!(
        refused.code == Some(2) && refused.stderr.contains("exists with another content"),
        "{refused}"
    );
    let kept = place.files("root")["etc/tmpfiles.d/poolcast.conf"].clone();
    assert_eq!(kept, b"mine");
    place.stdout(&format!("{CALL} --yes --overwrite"));
    assert_ne!(place.files("root")["etc/tmpfiles.d/poolcast.conf"], b"mine");
}

#[test]
fn schedd_can_start_the_service() {
    let place = Place::new();
    insta::assert_snapshot!(place.stdout(&format!("{CALL} --schedd-cron")));
    place.stdout(&format!("{CALL} --schedd-cron --yes"));
    let script = place.path("root/usr/local/libexec/poolcast-cron");
    let checked = Command::new("sh").arg("-n").arg(script).status();
    assert!(checked.expect("a shell").success());
}

/// Runs the part that learns of the schedd's script, with the directories of the service in `place`;
/// returns the calls of the program.
fn calls_of_script(place: &Place, night: &str) -> Vec<String> {
    place.put_program("date", &format!("echo {night}"));
    let path = format!("{}:/usr/bin:/bin", place.path("").display());
    let script = Command::new("sh")
        .arg(place.path("script"))
        .arg("learn")
        .env("PATH", path)
        .status();
    script.expect("a shell");
    let calls = fs_err::read_to_string(place.path("calls")).unwrap_or_default();
    place.write("calls", "");
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn schedd_learns_at_once_and_then_each_night() {
    let place = Place::new();
    let dir = place.path("").display().to_string();
    let dir = dir.trim_end_matches('/');
    let call = CALL.replace("/usr/bin/poolcast", &format!("{dir}/program"));
    place.stdout(&format!("{call} --schedd-cron --yes"));
    let script = place.files("root")["usr/local/libexec/poolcast-cron"].clone();
    let script = String::from_utf8(script).expect("text");
    let script = ["/var/lib/poolcast", "/var/log/poolcast"]
        .iter()
        .fold(script, |script, name| script.replace(name, dir));
    place.write("script", script);
    place.put_program(
        "program",
        "echo \"$@\" >>calls\n[ \"$*\" != \"$(cat fails)\" ]",
    );
    place.write("fails", "");
    let learn = ["-q --threads 2 learn --log archive", "publish out -o model"];
    let nothing: [&str; 0] = [];

    assert_eq!(calls_of_script(&place, "2026-11-20"), nothing, "no archive");
    fs_err::create_dir(place.path("archive")).expect("made");
    place.write("archive/manifest.json", "");
    assert_eq!(calls_of_script(&place, "2026-11-20"), learn);
    assert_eq!(
        calls_of_script(&place, "2026-11-20"),
        nothing,
        "once a night"
    );
    assert_eq!(calls_of_script(&place, "2026-11-21"), learn);

    // The first model comes from the history if the archive teaches nothing.
    place.write("fails", learn[0]);
    let history = [
        "-q --threads 2 learn --history now -o history",
        "publish history -o model",
    ];
    let calls = calls_of_script(&place, "2026-11-22");
    assert_eq!(calls, [&learn[..1], &history].concat());
    fs_err::create_dir(place.path("model")).expect("made");
    place.write("model/manifest.json", "");
    assert_eq!(calls_of_script(&place, "2026-11-23"), learn[..1]);
}

#[test]
fn site_without_an_event_log_gets_one() {
    let place = Place::new();
    let call = CALL.replace(" --log /var/log/condor/EventLog", " --yes");
    place.stdout(&call);
    let file = "etc/condor/config.d/60-poolcast-event-log.conf";
    let text = String::from_utf8(place.files("root")[file].clone()).expect("text");
    assert!(
        text.contains("\nEVENT_LOG = /var/log/condor/EventLog\n"),
        "{text}"
    );
}

/// The units are checked by systemd itself, if it is here.
#[test]
fn systemd_accepts_the_units() {
    let place = Place::new();
    place.stdout(&format!(
        "{} --yes",
        CALL.replace("/usr/bin/poolcast", "/bin/true")
    ));
    let units: Vec<String> = place
        .files("root")
        .into_keys()
        .filter(|name| name.ends_with(".service") || name.ends_with(".timer"))
        .map(|name| place.path("root").join(name).display().to_string())
        .collect();
    assert_eq!(units.len(), 6);
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(&units)
        .output();
    let Ok(verified) = verified else {
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    // It also reports units of this machine.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("poolcast"))
        .collect();
    assert_eq!(ours, [""; 0], "{said}");
}
