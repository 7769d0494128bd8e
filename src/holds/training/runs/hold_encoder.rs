//! Encodes holds, each at any prediction time, as the inputs of models, in memory.

use anyhow::Result;

use crate::config::NetworkSettings;
use poolcast_base::parallel::map_items;
use poolcast_events::EventStore;
use poolcast_tensors::{
    PoolHistory, QueriedHold, SampleEncoder, StoredTokens, TensorSettings, TokenHistory, TokenRows,
};

/// `n` holds, encoded as the inputs of models.
#[derive(Debug)]
pub(crate) struct EncodedHolds {
    /// Number of holds, `n`.
    pub(crate) count: usize,
    /// Codes, `[n, m, j]`.
    pub(crate) codes: Vec<u8>,
    /// Bits for what each job shares with the held one, `[n, j]`. Empty unless the samples have it.
    shared: Vec<u8>,
    /// Static features, `[n, s]`. Empty if no model takes any.
    pub(crate) statics: Vec<f32>,
    /// Outcome tokens. `None` if no model reads any.
    tokens: Option<TokenRows>,
}

/// The inputs of one sample, of a hold in memory or of tensors.
pub(crate) struct SampleInputs<'a> {
    /// Codes, `[m, j]`.
    pub(crate) codes: &'a [u8],
    /// Bits for what each job shares with the held one, `[j]` or empty.
    pub(crate) shared: &'a [u8],
    /// Static features, `[s]` or empty.
    pub(crate) statics: &'a [f32],
    /// Outcome tokens, if the model reads them.
    pub(crate) tokens: Option<StoredTokens<'a>>,
}

impl EncodedHolds {
    /// Returns the inputs of hold `index`.
    pub(crate) fn inputs(&self, index: usize) -> SampleInputs<'_> {
        fn row<T>(all: &[T], count: usize, index: usize) -> &[T] {
            let width = all.len() / count;
            &all[index * width..][..width]
        }
        SampleInputs {
            codes: row(&self.codes, self.count, index),
            shared: row(&self.shared, self.count, index),
            statics: row(&self.statics, self.count, index),
            tokens: self.tokens.as_ref().map(|rows| rows.question(index)),
        }
    }
}

/// Encodes holds of the jobs in an event store.
#[derive(Debug)]
pub(crate) struct HoldEncoder<'a> {
    store: &'a EventStore,
    tensors: TensorSettings,
    encoder: SampleEncoder<'a>,
    /// History for static features; `None` if no model takes any.
    history: Option<PoolHistory>,
    /// History of outcome tokens; `None` if no model reads any.
    tokens: Option<TokenHistory<'a>>,
}

impl<'a> HoldEncoder<'a> {
    /// Creates an encoder of samples with the settings `tensors`.
    pub(crate) fn new(
        store: &'a EventStore,
        tensors: TensorSettings,
        takes_statics: bool,
        takes_tokens: bool,
    ) -> HoldEncoder<'a> {
        HoldEncoder {
            store,
            encoder: SampleEncoder::new(store, tensors.clone()),
            history: takes_statics.then(|| PoolHistory::new(store, tensors.timeframe_len_s)),
            tokens: takes_tokens.then(|| TokenHistory::new(store)),
            tensors,
        }
    }

    /// Creates an encoder of the samples of one network.
    pub(crate) fn of_network(
        store: &'a EventStore,
        settings: &NetworkSettings,
    ) -> Result<HoldEncoder<'a>> {
        let architecture = settings.training.architecture()?;
        Ok(HoldEncoder::new(
            store,
            settings.tensors.clone(),
            architecture.takes_statics(),
            architecture.takes_tokens(),
        ))
    }

    /// Encodes `holds`.
    pub(crate) fn encode(&self, holds: &[QueriedHold]) -> EncodedHolds {
        let mut encoded = EncodedHolds {
            count: holds.len(),
            codes: Vec::new(),
            shared: Vec::new(),
            statics: Vec::new(),
            tokens: self.tokens.as_ref().map(|history| history.rows(holds)),
        };
        for (codes, shared, statics) in map_items(holds, |&asked| self.encode_hold(asked)) {
            encoded.codes.extend(codes);
            encoded.shared.extend(shared);
            encoded.statics.extend(statics);
        }
        encoded
    }

    /// Returns the codes of a hold, what its jobs share, and its static features.
    fn encode_hold(&self, asked: QueriedHold) -> (Vec<u8>, Vec<u8>, Vec<f32>) {
        let mut codes = vec![0; self.tensors.m * self.tensors.j];
        let mut shared = vec![0; self.tensors.shared_bytes()];
        self.encoder.encode_hold(asked, &mut codes, &mut shared);

        let mut statics = Vec::new();
        if let Some(history) = &self.history {
            let job = self.store.jobs().get(asked.job as usize);
            let facts = history.facts(&job, &asked);
            facts.add_static_features(&self.tensors.features, &mut statics);
        }
        (codes, shared, statics)
    }
}
