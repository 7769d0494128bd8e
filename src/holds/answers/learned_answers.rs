//! The directory of an answer model: the members that answer, and the limits that a rehearsal gave them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::answer_calibration::AnswerCalibration;
use super::answer_limits::AnswerLimits;
use super::answer_model::{AnswerModel, every_member};
use super::contribution::origin_of;
use super::hold_history::HoldHistory;
use super::learned_member::{LearnedMember, LearnedQuestion};
use super::member_files::MemberSummary;
use super::prior_model::PriorModel;
use super::taught_rows::TaughtRows;
use crate::config::AdviceConfig;
use poolcast_base::error::unavailable;
use poolcast_base::files::StagedDirectory;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;
use poolcast_events::EventStore;

/// Format of directories of answer models.
pub const ANSWERS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "answers",
    version: 16,
    rebuild: "poolcast run CONFIG",
};

/// An answer model, and the limits of its answers.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedAnswers {
    /// The model.
    pub model: AnswerModel,
    /// The limits that the answers of a rehearsal earned.
    pub limits: AnswerLimits,
    /// End of the time that the model learned from, epoch ms.
    pub known_ms: i64,
}

/// Body of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct AnswersSummary {
    known_ms: i64,
    max_age: f64,
    faults_here: Vec<u32>,
    faults_elsewhere: Vec<u32>,
    calibration: AnswerCalibration,
    limits: AnswerLimits,
    now: QuestionSummary,
    later: QuestionSummary,
}

/// The kind of a question's model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QuestionSummary {
    /// The members that answer, each in a directory with its number, counted from 1, in the directory of
    /// the question.
    Members(Vec<MemberSummary>),
    /// The success rate of all rows.
    Rate(f64),
}

impl LearnedAnswers {
    /// Learns from the outcomes that `store` shows at `known_ms`, beside the prior if `advice` asks
    /// for it, for advice without a run. No rehearsal has tried these answers, so none of them has
    /// earned a limit. Where no outcome is known, the model that ships with the program answers, whatever
    /// the seed. Returns `None` if no job is held at `known_ms`, or if too few outcomes are known to
    /// tell one cause from another.
    ///
    /// # Errors
    /// Fails if the model cannot be fitted.
    pub fn without_run(
        store: &EventStore,
        known_ms: i64,
        advice: &AdviceConfig,
        seed: u64,
    ) -> Result<Option<LearnedAnswers>> {
        let history = HoldHistory::new(store);
        if history.held_at(known_ms).is_empty() {
            return Ok(None);
        }
        let of_prior = if advice.prior && !TaughtRows::exist(&history, known_ms) {
            PriorModel::embedded()?.beside(&origin_of(store)).cloned()
        } else {
            None
        };
        let base_alone = AdviceConfig {
            members: advice.members.iter().take(1).cloned().collect(),
            ..advice.clone()
        };
        let model = match of_prior {
            Some(model) => Some(model),
            None => AnswerModel::learn(&history, known_ms, &base_alone, seed, &|| false)?,
        };
        let model = model.filter(AnswerModel::tells_causes_apart);
        Ok(model.map(|model| LearnedAnswers {
            model,
            limits: AnswerLimits::default(),
            known_ms,
        }))
    }

    /// Writes the model to the directory `dir`, which is replaced, with `key` as the digest of what
    /// it was made from.
    pub fn write(&self, dir: &Path, key: &str) -> Result<()> {
        let staging = StagedDirectory::new(dir, true)?;
        let summary = AnswersSummary {
            known_ms: self.known_ms,
            max_age: self.model.max_age,
            faults_here: self.model.faults_here.clone(),
            faults_elsewhere: self.model.faults_elsewhere.clone(),
            calibration: self.model.calibration.clone(),
            limits: self.limits.clone(),
            now: self.write_question(&self.model.now, &staging.path().join("now"))?,
            later: self.write_question(&self.model.later, &staging.path().join("later"))?,
        };
        manifest::write(staging.path(), ANSWERS_FORMAT, key, &summary)?;
        staging.commit()
    }

    /// Returns the end of the time that the model in `dir` learned from, epoch ms; `None` if there is
    /// no model.
    ///
    /// # Errors
    /// Fails if its manifest is damaged or of another version.
    pub fn learned_ms(dir: &Path) -> Result<Option<i64>> {
        if !dir.join(manifest::FILE).is_file() {
            return Ok(None);
        }
        let summary = manifest::read::<AnswersSummary>(dir, ANSWERS_FORMAT)?;
        Ok(Some(summary.body.known_ms))
    }

    /// Opens the model in `dir`. Returns `None` if there is none, or if too few outcomes were known to tell one cause
    /// from another.
    ///
    /// # Errors
    /// Fails if a file is damaged or of another version.
    pub fn open(dir: &Path) -> Result<Option<LearnedAnswers>> {
        if !dir.join(manifest::FILE).is_file() {
            return Ok(None);
        }
        let summary = manifest::read::<AnswersSummary>(dir, ANSWERS_FORMAT)?.body;
        let now = open_question(&summary.now, &dir.join("now"))?;
        let later = open_question(&summary.later, &dir.join("later"))?;
        let model = AnswerModel {
            answering: every_member(&now, &later),
            now,
            later,
            max_age: summary.max_age,
            faults_here: summary.faults_here,
            faults_elsewhere: summary.faults_elsewhere,
            calibration: summary.calibration,
        };
        ensure!(
            model.has_current_columns() && model.calibration.is_valid(),
            unavailable(
                format!("`{}` was learned from other columns", dir.display()),
                format!("learn again with `{}`", ANSWERS_FORMAT.rebuild)
            )
        );
        ensure!(
            summary.limits.is_valid() && model.max_age.is_finite() && model.max_age >= 0.0,
            unavailable(
                format!("`{}` has numbers that no rehearsal gives", dir.display()),
                format!("learn again with `{}`", ANSWERS_FORMAT.rebuild)
            )
        );
        let answers = LearnedAnswers {
            model,
            limits: summary.limits,
            known_ms: summary.known_ms,
        };
        Ok(Some(answers).filter(|answers| answers.model.tells_causes_apart()))
    }

    /// Writes the members that answer a question to its directory `dir`.
    fn write_question(&self, question: &LearnedQuestion, dir: &Path) -> Result<QuestionSummary> {
        let members = match question {
            LearnedQuestion::Rate(rate) => return Ok(QuestionSummary::Rate(*rate)),
            LearnedQuestion::Members(members) => members,
        };
        let answering = self.model.answering.iter();
        let answering = answering.filter_map(|&index| members.get(index));
        let write = |(number, member): (usize, &LearnedMember)| {
            MemberSummary::write(member, &member_dir(dir, number))
        };
        let written: Result<_> = (1..).zip(answering).map(write).collect();
        Ok(QuestionSummary::Members(written?))
    }
}

fn open_question(question: &QuestionSummary, dir: &Path) -> Result<LearnedQuestion> {
    match question {
        QuestionSummary::Rate(rate) => Ok(LearnedQuestion::Rate(rate.clamp(0.0, 1.0))),
        QuestionSummary::Members(written) => {
            let open = |(number, member): (usize, &MemberSummary)| {
                let dir = member_dir(dir, number);
                let opened = member.open(&dir);
                opened.with_context(|| format!("cannot open the model in `{}`", dir.display()))
            };
            let members: Result<_> = (1..).zip(written).map(open).collect();
            Ok(LearnedQuestion::Members(members?))
        }
    }
}

/// Returns the directory of the member `number`, counted from 1, in the directory `dir` of a question.
fn member_dir(dir: &Path, number: usize) -> PathBuf {
    dir.join(number.to_string())
}

/// Answers that were learned from a small log.
#[cfg(test)]
pub(crate) fn learned_test_answers() -> LearnedAnswers {
    let store = test_stores::log_with_outages(8).store();
    let history = HoldHistory::new(&store);
    let advice = crate::test_config::TestConfig::without_prior();
    let model = AnswerModel::learn(&history, store.summary.end_ms, &advice, 1, &|| false);
    LearnedAnswers {
        model: model.expect("learned").expect("outcomes are known"),
        limits: AnswerLimits::default(),
        known_ms: store.summary.end_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer_model::LearnedFrom;
    use super::super::hold_history::HoldHistory;
    use super::*;
    use crate::config::{AnswerMember, NetworkSettings};
    use crate::test_config::TestConfig;
    use htcondor_eventlog::ReasonKind;
    use htcondor_holdreasons::read_reason;
    use test_stores::{TestLog, log_with_outages};

    #[test]
    fn written_answers_are_read_back() {
        let answers = learned_test_answers();
        assert!(matches!(answers.model.now, LearnedQuestion::Members(_)));
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("answers");
        assert_eq!(LearnedAnswers::open(&place).expect("nothing"), None);
        answers.write(&place, "key").expect("written");
        assert_eq!(
            LearnedAnswers::open(&place).expect("opened").as_ref(),
            Some(&answers)
        );

        fs_err::write(place.join("now/1/pipeline.json"), "{}").expect("damaged");
        assert!(LearnedAnswers::open(&place).is_err());
    }

    #[test]
    fn members_that_answer_are_read_back_without_the_others() {
        let members = serde_json::json!([{"et": {"n_estimators": 5}}, {"ridge": {}}]);
        let changes = [("advice.members", members), ("advice.prior", false.into())];
        let advice = TestConfig::load(&changes).advice;
        let store = log_with_outages(8).store();
        let history = HoldHistory::new(&store);
        let known_ms = store.summary.end_ms;
        let model = AnswerModel::learn(&history, known_ms, &advice, 1, &|| false);
        let mut answers = LearnedAnswers {
            model: model.expect("learned").expect("outcomes are known"),
            limits: AnswerLimits::default(),
            known_ms,
        };
        let dir = tempfile::tempdir().expect("a directory");
        let read_back = |answers: &LearnedAnswers| {
            let place = dir.path().join("answers");
            answers.write(&place, "key").expect("written");
            let opened = LearnedAnswers::open(&place).expect("opened");
            opened.expect("there")
        };
        let odds = |answers: &LearnedAnswers| {
            let odds = answers.model.odds(&history, &[0], known_ms);
            odds.expect("asked")[0].uncalibrated
        };
        let of_base = odds(&answers);
        let base = read_back(&answers);
        assert_eq!(
            (base.model.members(), odds(&base)),
            (vec!["et".to_owned()], of_base)
        );

        answers.model.set_answering(vec![0, 1]);
        assert_eq!(read_back(&answers), answers);
        assert_eq!(answers.model.members(), ["et", "ridge"]);
        let alone = answers.model.odds_of_members(&history, &[0], known_ms);
        let alone = &alone.expect("asked")[0];
        assert_eq!((alone.len(), alone[0].now), (2, of_base));
        let together = odds(&answers);
        let [low, high] = [
            alone[0].now.min(alone[1].now),
            alone[0].now.max(alone[1].now),
        ];
        assert!(low < together && together < high, "{alone:?}: {together}");
    }

    /// Returns the settings of a base and of three networks, all of them small.
    fn advice_of_networks() -> AdviceConfig {
        let network = |model: &str| {
            let config = TestConfig::load(&[
                ("preprocessing.parameters.j", 3.into()),
                ("preprocessing.parameters.m", 2.into()),
                ("preprocessing.parameters.context", "related".into()),
                ("training.parameters.model", model.into()),
                ("training.parameters.hidden_size", 4.into()),
                ("epochs", 2.into()),
            ]);
            let (training, tensors) = (config.training_settings(), config.tensor_settings());
            let settings = NetworkSettings::new(training, tensors).expect("settings");
            AnswerMember::Resolved(Box::new(settings))
        };
        let mut advice = TestConfig::without_prior();
        advice
            .members
            .extend(["lstm", "outcomes", "mlp"].map(network));
        advice
    }

    #[test]
    fn networks_answer_the_same_after_they_are_read_back() {
        let store = log_with_outages(8).store();
        let history = HoldHistory::new(&store);
        let known_ms = store.summary.end_ms;
        let advice = advice_of_networks();
        let learn = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let learn = || AnswerModel::learn(&history, known_ms, &advice, 1, &|| false);
            let model = pool.expect("a pool").install(learn);
            model.expect("learned").expect("outcomes are known")
        };
        let mut model = learn(1);
        assert_eq!(model, learn(3));
        model.set_answering(vec![0, 1, 2, 3]);
        assert_eq!(model.members(), ["et", "lstm", "outcomes", "mlp"]);

        let answers = LearnedAnswers {
            model,
            limits: AnswerLimits::default(),
            known_ms,
        };
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("answers");
        answers.write(&place, "key").expect("written");
        let opened = LearnedAnswers::open(&place)
            .expect("opened")
            .expect("there");
        assert_eq!(opened, answers);
        let holds: Vec<usize> = (0..history.holds.len()).collect();
        let odds = |answers: &LearnedAnswers| {
            let odds = answers.model.odds_of_members(&history, &holds, known_ms);
            odds.expect("asked")
        };
        let members = odds(&answers);
        assert_eq!(odds(&opened), members);
        for network in 1..4 {
            let is_same = |of_hold: &Vec<_>| of_hold[network] == members[0][network];
            assert!(!members.iter().all(is_same), "network {network}");
        }

        for (file, from, to) in [
            ("manifest.json", "\"temperature\": ", "\"temperature\": -"),
            ("manifest.json", "\"j\": 3", "\"j\": 4"),
            ("manifest.json", "\"j\": 3", "\"j\": 0"),
            ("manifest.json", "\"model\": \"lstm\"", "\"model\": \"gru\""),
        ] {
            let path = place.join(file);
            let text = fs_err::read_to_string(&path).expect("read");
            assert!(text.contains(from), "{text}");
            fs_err::write(&path, text.replacen(from, to, 1)).expect("written");
            assert!(LearnedAnswers::open(&place).is_err(), "{to}");
            fs_err::write(&path, text).expect("written");
        }
        fs_err::write(place.join("later/2/model.safetensors"), "{}").expect("damaged");
        assert!(LearnedAnswers::open(&place).is_err());

        let networks = without_base(&advice);
        let stopped = AnswerModel::learn(&history, known_ms, &networks, 1, &|| true);
        assert!(stopped.is_err());
    }

    fn without_base(advice: &AdviceConfig) -> AdviceConfig {
        AdviceConfig {
            members: advice.members[1..].to_vec(),
            ..advice.clone()
        }
    }

    #[test]
    fn network_without_outcomes_to_learn_from_answers_with_the_rate() {
        let mut log = TestLog::default();
        log.add_released(8, 10_200, 10_300, true);
        log.add_held(7, 10_400);
        let store = log.store();
        let history = HoldHistory::new(&store);
        let advice = AdviceConfig {
            prior: true,
            ..advice_of_networks()
        };
        let end_ms = store.summary.end_ms;
        let learn = |advice: &AdviceConfig| {
            let model = AnswerModel::learn(&history, end_ms, advice, 1, &|| false);
            model.expect("learned").expect("a model")
        };
        let model = learn(&advice);
        let held = history.held_at(end_ms);
        let odds = model.odds_of_members(&history, &held, end_ms);
        let odds = &odds.expect("asked")[0];
        assert!(odds[1] == odds[2] && odds[0] != odds[1], "{odds:?}");
        assert!(model.uses_prior() && model.tells_causes_apart());

        let networks = learn(&without_base(&advice));
        assert!(!networks.uses_prior() && !networks.tells_causes_apart());
    }

    #[test]
    fn model_learns_that_the_server_is_up_again() {
        // File 7 is up in the last stretch, and file 9 never was.
        let mut log = log_with_outages(8);
        for at in 0..4 {
            log.add_held(7, 17_100 + at);
            log.add_held(9, 17_100 + at);
        }
        let store = log.store();
        let history = HoldHistory::new(&store);
        let end_ms = store.summary.end_ms;
        let model =
            AnswerModel::learn(&history, end_ms, &TestConfig::without_prior(), 1, &|| false)
                .expect("learned")
                .expect("outcomes are known");
        let held = history.held_at(end_ms);
        let odds = model.odds(&history, &held, end_ms).expect("asked");
        assert_eq!(held.len(), 8);
        for (index, odds) in held.iter().zip(odds) {
            let job = store.jobs().get(history.holds[*index].job as usize);
            let is_up = job.cluster % 2 == 1;
            assert!(
                (odds.now > 0.6) == is_up && (odds.now < 0.3) != is_up,
                "{}: {odds:?}",
                job.id()
            );
        }
    }

    /// Returns what the reason of a failed transfer states, whose server answers with `status`.
    fn stated_by(status: u16) -> ReasonKind {
        let reason = format!(
            "Transfer input files failure at execution point slot1@e using protocol http. Details: The requested URL \
             returned error: {status} ( URL file = http://files.example:8000/in/a.dat )"
        );
        read_reason(&reason, Some((13, 256))).kind
    }

    #[test]
    fn model_knows_in_the_log_of_a_user_what_its_own_log_taught() {
        let learned_with_rare = |rare_clusters, taught, stated| {
            let mut log = log_with_outages(8);
            log.state(.., taught);
            log.state(..=rare_clusters, stated_by(504));
            let store = log.store();
            let history = HoldHistory::new(&store);
            let end_ms = store.summary.end_ms;
            let advice = TestConfig::without_prior();
            let model = AnswerModel::learn(&history, end_ms, &advice, 1, &|| false);
            let model = model.expect("learned");

            let mut log = TestLog::default();
            log.add_held(7, 20_000);
            log.state(.., stated);
            let store = log.store();
            let history = HoldHistory::new(&store);
            let end_ms = store.summary.end_ms;
            let model = model.expect("outcomes are known");
            model.odds(&history, &[0], end_ms).expect("asked")[0].learned_from
        };
        let learned_from = |taught, stated| learned_with_rare(0, taught, stated);
        let server = stated_by(503);
        assert_eq!(learned_from(server, server), LearnedFrom::ThisLog);
        // Another statement of the same fault, which stands first and is rare, hides nothing.
        let with_rare = learned_with_rare(1, server, server);
        assert_eq!(with_rare, LearnedFrom::ThisLog);
        assert_eq!(learned_from(server, stated_by(404)), LearnedFrom::Nothing);
        let unknown = ReasonKind::default();
        assert_eq!(learned_from(unknown, unknown), LearnedFrom::Nothing);
    }

    #[test]
    fn log_without_outcomes_is_answered_by_the_prior() {
        let mut log = TestLog::default();
        let odds_of = |log: &mut TestLog, prior, stated| {
            log.state(.., stated);
            let store = log.store();
            let history = HoldHistory::new(&store);
            let end_ms = store.summary.end_ms;
            let advice = AdviceConfig {
                prior,
                ..TestConfig::without_prior()
            };
            let model = AnswerModel::learn(&history, end_ms, &advice, 1, &|| false);
            let model = model.expect("learned");
            let held = history.held_at(end_ms);
            model.map(|model| model.odds(&history, &held, end_ms).expect("asked"))
        };
        log.add_held(7, 10_000);
        log.add_held(7, 10_100);
        let server = stated_by(503);
        assert_eq!(odds_of(&mut log, false, server), None);
        let learned_from = |log: &mut TestLog, stated| {
            let odds = odds_of(log, true, stated).expect("a model");
            let first = odds[0].learned_from;
            assert!(odds.iter().all(|odds| odds.learned_from == first));
            first
        };
        assert_eq!(learned_from(&mut log, server), LearnedFrom::OtherLogs);
        let unknown = ReasonKind::default();
        assert_eq!(learned_from(&mut log, unknown), LearnedFrom::Nothing);

        log.add_released(8, 10_200, 10_300, true);
        log.add_held(7, 10_400);
        assert_eq!(learned_from(&mut log, server), LearnedFrom::ThisLog);
        let of_one = learned_from(&mut log, unknown);
        assert_eq!(of_one, LearnedFrom::Nothing, "one outcome says little");
        for at in 0..2 {
            log.add_released(8, 10_200 + at, 10_300 + at, true);
        }
        // Reasons that were not understood are the same if their words are.
        assert_eq!(learned_from(&mut log, unknown), LearnedFrom::Nothing);
        for at in 0..3 {
            log.add_released(7, 10_200 + at, 10_300 + at, true);
        }
        assert_eq!(learned_from(&mut log, unknown), LearnedFrom::ThisLog);
    }
}
