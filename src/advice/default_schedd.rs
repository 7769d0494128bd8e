//! The access point that HTCondor's programs ask by default. Commands on jobs of
//! others name their access point.

use std::net::IpAddr;

use super::job_advice::JobAdvice;
use super::restart_loops::RestartLoop;
use super::same_host::is_same_host;
use super::unheld_jobs::UnheldJobs;
use poolcast_base::shared_text::SharedText;

/// The access point that HTCondor's programs here ask by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultSchedd {
    /// Its names: of its host, and of its schedd if it has another one.
    names: Vec<String>,
}

/// The way to the jobs of an access point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// HTCondor's programs ask it by default.
    Default,
    /// They need its name.
    ByName,
    /// Its name is not known.
    Unknown,
}

impl DefaultSchedd {
    /// Creates the access point with these names.
    pub fn new(names: Vec<String>) -> DefaultSchedd {
        DefaultSchedd { names }
    }

    fn reach(&self, access_point: &str) -> Reach {
        let is_it = |name: &String| {
            let names_schedd = name.contains('@') || access_point.contains('@');
            if names_schedd {
                name.eq_ignore_ascii_case(access_point)
            } else {
                is_same_host(name, access_point)
            }
        };
        // A log of one user's jobs may have no more than the address of the access point.
        let is_unnamed = matches!(access_point, "" | "unknown") || is_address(access_point);
        if is_unnamed {
            Reach::Unknown
        } else if access_point == "localhost" || self.names.iter().any(is_it) {
            Reach::Default
        } else {
            Reach::ByName
        }
    }

    /// Lets the commands on `advice` name the access point where they must, or where one of several
    /// access points may be another.
    pub fn name_others(&self, advice: &mut [JobAdvice]) {
        let has_several = advice.windows(2).any(|two| two[0].job.ap != two[1].job.ap);
        for one in advice {
            one.set_schedd(self.name_of(&one.job.ap, has_several));
        }
    }

    /// Like [`DefaultSchedd::name_others`], for jobs that are not held.
    pub fn name_others_of_unheld(&self, jobs: &mut UnheldJobs) {
        let has_several = jobs.jobs.windows(2).any(|two| two[0].ap != two[1].ap);
        for job in &mut jobs.jobs {
            job.schedd = self.name_of(&job.ap, has_several);
        }
    }

    /// Like [`DefaultSchedd::name_others`], for jobs that start and are put back again.
    pub fn name_others_of_loops(&self, loops: &mut [RestartLoop]) {
        let has_several = loops.iter().any(|one| one.ap != loops[0].ap);
        for one in loops {
            one.schedd = self.name_of(&one.ap, has_several);
        }
    }

    fn name_of(&self, access_point: &SharedText, has_several: bool) -> Option<SharedText> {
        let is_named = match self.reach(access_point) {
            Reach::Default => false,
            Reach::ByName => true,
            Reach::Unknown => has_several,
        };
        is_named.then(|| access_point.clone())
    }
}

fn is_address(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::cause_groups::cause_groups;
    use super::super::job_queue::JobQueue;
    use super::*;

    fn reach(names: &[&str], access_point: &str) -> Reach {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        DefaultSchedd::new(names).reach(access_point)
    }

    #[test]
    fn access_points_are_told_apart_by_their_names() {
        let here = ["ap40.example", "s@ap40.example"];
        for name in [
            "ap40.example",
            "AP40.example",
            "ap40",
            "s@ap40.example",
            "localhost",
        ] {
            assert_eq!(reach(&here, name), Reach::Default, "{name}");
        }
        for name in [
            "ap41.example",
            "ap40.other",
            "t@ap40.example",
            "-all",
            "a b",
        ] {
            assert_eq!(reach(&here, name), Reach::ByName, "{name}");
        }
        for name in ["", "unknown", "10.0.0.1", "fe80::1", "[fe80::1]"] {
            assert_eq!(reach(&here, name), Reach::Unknown, "{name}");
        }
        assert_eq!(reach(&[], "ap40"), Reach::ByName);
    }

    /// Returns the commands on held jobs of these access points, where `ap1` is the default.
    fn commands(access_points: &[&str]) -> Vec<Option<String>> {
        let ad = |(cluster, ap): (usize, &&str)| {
            format!(
                r#"{{"ClusterId": {cluster}, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2,
                    "EnteredCurrentStatus": 100, "GlobalJobId": "{ap}#{cluster}.0#9"}}"#
            )
        };
        let ads: Vec<String> = access_points.iter().enumerate().map(ad).collect();
        let queue = JobQueue::read(format!("[{}]", ads.join(",")).as_bytes()).expect("a queue");
        let (mut advice, _) = queue.correct(Vec::new(), "ap1", 200_000);
        DefaultSchedd::new(vec!["ap1".to_owned()]).name_others(&mut advice);
        let chosen: Vec<&JobAdvice> = advice.iter().collect();
        let groups = cause_groups(&chosen);
        for group in &groups {
            let of_group = group.then.as_ref().map(ToString::to_string);
            let of_job = advice
                .iter()
                .find(|one| &*one.job.ap == group.ap)
                .expect("a job");
            assert_eq!(
                of_job.verdict.then.as_ref().map(ToString::to_string),
                of_group
            );
        }
        let then = groups.iter().map(|group| group.then.as_ref());
        then.map(|command| command.map(ToString::to_string))
            .collect()
    }

    #[test]
    fn commands_name_another_access_point() {
        let guard = |job: &str| {
            format!(
                "-constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && ClusterId=={job} && ProcId==0'"
            )
        };
        assert_eq!(
            commands(&["ap1"]),
            [Some(format!("condor_release {}", guard("0")))]
        );
        assert_eq!(
            commands(&["ap1", "ap2"]),
            [
                Some(format!("condor_release {}", guard("0"))),
                Some(format!("condor_release -name ap2 {}", guard("1")))
            ]
        );
        assert_eq!(
            commands(&["10.0.0.1"]),
            [Some(format!("condor_release {}", guard("0")))]
        );
        assert_eq!(commands(&["ap2; id"]), [None], "no plain name");
    }
}
