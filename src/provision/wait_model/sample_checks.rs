//! Checks before the training: rejects samples that no model can learn from.

use anyhow::{Error, Result, bail, ensure};

use super::episodes::EpisodeSplit;
use crate::samples::{SAMPLES_FORMAT, WaitSamples};
use poolcast_base::error::hinted;

/// Rejects samples that no model can learn from.
///
/// # Errors
/// States the defect of the samples.
pub fn check_learnable(samples: &WaitSamples) -> Result<()> {
    check_samples(samples, &EpisodeSplit::new(samples)?)
}

/// Rejects samples with values that are not finite or spans below 0. Also rejects learned windows
/// in which no successor waits.
pub(super) fn check_samples(samples: &WaitSamples, split: &EpisodeSplit) -> Result<()> {
    for row in 0..samples.len() {
        let features = samples.features(row);
        if let Some(place) = features.iter().position(|x| !x.is_finite()) {
            let name = &samples.description.feature_names[place];
            bail!(not_finite(&format!("the feature `{name}` of row {row}")));
        }
        if samples.snapshots(row).iter().any(|x| !x.is_finite()) {
            bail!(not_finite(&format!("a snapshot of row {row}")));
        }
        ensure!(
            samples.wait_s[row] >= 0 && samples.left_s[row] >= 0,
            "row {row} of the samples has a negative duration"
        );
    }
    let rows = split.learned_rows();
    ensure!(
        rows.iter().any(|row| samples.wait_s[*row] > 0),
        hinted(
            "there is nothing to learn: no successor waits in any training window",
            "compare policies without a model with `poolcast provision validate`"
        )
    );
    Ok(())
}

fn not_finite(what: &str) -> Error {
    let hint = format!("recreate the samples with `{}`", SAMPLES_FORMAT.rebuild);
    hinted(format!("{what} is not a finite number"), hint).into()
}

#[cfg(test)]
pub(super) use tests::queue_samples;

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;
    use crate::model_inputs::{CHAIN_COLUMNS, QUEUE_COLUMNS, SNAPSHOTS};
    use crate::samples::{SamplesDescription, WaitSampleRow, WindowSamples};

    const HOUR_S: i64 = 3600;

    /// Creates windows whose waits follow from the amount of waiting work, with some noise. The
    /// first feature and the first snapshot column hold that amount.
    pub(in crate::wait_model) fn queue_samples(windows: u32, seed: u64) -> WaitSamples {
        let all: Vec<WindowSamples> = (0..windows)
            .map(|window| queue_window(window, seed))
            .collect();
        let description = SamplesDescription {
            job_nodes: 1,
            limit_s: 24 * HOUR_S,
            length_s: 24 * HOUR_S,
            zone: "UTC".to_owned(),
            cold_start: false,
            warmup_s: 0,
            workload_s: 5 * 86_400,
            interval_h: 6,
            probes: 6,
            windows: windows as usize,
            never_started: 0,
            first_s: 0,
            last_s: i64::from(windows) * 6 * HOUR_S,
            known_until_s: i64::from(windows) * 6 * HOUR_S + 60 * HOUR_S,
            feature_names: ["waiting_node_h", "hour", "noise"]
                .map(str::to_owned)
                .to_vec(),
            rows: 0,
            ..SamplesDescription::default()
        };
        let mut samples = WaitSamples::from_windows(description, &all);
        samples.key = format!("queue {windows} {seed}");
        samples
    }

    fn queue_window(window: u32, seed: u64) -> WindowSamples {
        let mut random = poolcast_base::seed::generator(seed, "window", &[i64::from(window)]);
        // The predecessor itself waits for two hours.
        let begin_s = i64::from(window) * 6 * HOUR_S;
        let end_s = begin_s + 26 * HOUR_S;
        let mut rows = Vec::new();
        let mut snapshots = Vec::new();
        for probe in 0..6 {
            let moment_s = begin_s + (end_s - begin_s) * probe / 5;
            let work_h: f32 = random.random_range(0.0..12.0);
            let noise_h: f32 = random.random_range(-0.5..0.5);
            for _ in 0..SNAPSHOTS {
                let mut snapshot = [0f32; QUEUE_COLUMNS];
                snapshot[0] = work_h;
                snapshot[1] = random.random();
                snapshots.extend(snapshot);
            }
            rows.push(WaitSampleRow {
                moment_s,
                left_s: end_s - moment_s,
                wait_s: ((work_h + noise_h).max(0.0) * 3600.0) as i64,
                features: vec![work_h, (moment_s / HOUR_S % 24) as f32, random.random()],
                chain: [1.0; CHAIN_COLUMNS],
                last_snapshot: snapshots.len() / QUEUE_COLUMNS - 1,
            });
        }
        WindowSamples {
            window,
            rows,
            snapshots,
        }
    }

    #[test]
    fn samples_with_invalid_numbers_are_rejected() {
        let samples = queue_samples(20, 1);
        let split = EpisodeSplit::new(&samples).expect("a split");
        check_samples(&samples, &split).expect("sound");

        let refusal = |change: &dyn Fn(&mut WindowSamples)| {
            let mut windows: Vec<WindowSamples> = (0..20).map(|w| queue_window(w, 1)).collect();
            windows.iter_mut().for_each(change);
            let samples = WaitSamples::from_windows(samples.description.clone(), &windows);
            check_samples(&samples, &split)
                .expect_err("refused")
                .to_string()
        };
        let feature = refusal(&|window| window.rows[1].features[2] = f32::NAN);
        assert!(
            feature.starts_with("the feature `noise` of row 1 is not a finite"),
            "{feature}"
        );
        let snapshot = refusal(&|window| window.snapshots[7] = f32::INFINITY);
        assert!(
            snapshot.starts_with("a snapshot of row 0 is not"),
            "{snapshot}"
        );
        let span = refusal(&|window| window.rows[0].wait_s = -1);
        assert!(span.contains("negative duration"), "{span}");
        let still = refusal(&|window| window.rows.iter_mut().for_each(|row| row.wait_s = 0));
        assert!(still.contains("no successor waits in any"), "{still}");
    }
}
