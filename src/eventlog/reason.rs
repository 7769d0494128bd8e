//! Converts a hold reason to its template. Only words on a list stay, so that a template contains
//! no names, paths or other free text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::event::JobEvent;

/// Maximum number of templates. Those with the lowest hashes are kept, so that the result does not
/// depend on the order of reading.
const MAX_REASONS: usize = 4096;

/// Templates of hold reasons, by the hash that represents them in events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReasonTemplates(BTreeMap<u32, String>);

impl ReasonTemplates {
    /// Adds a template, unless it is already there.
    pub fn add(&mut self, hash: u32, template: impl FnOnce() -> String) {
        if hash != 0 {
            self.0.entry(hash).or_insert_with(template);
        }
        if self.0.len() > MAX_REASONS {
            self.0.pop_last();
        }
    }

    /// Returns true if there are no templates.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if adding a template with this hash would change nothing.
    pub(super) fn is_settled(&self, hash: u32) -> bool {
        if hash == 0 || self.0.contains_key(&hash) {
            return true;
        }
        let last = self.0.last_key_value();
        self.0.len() == MAX_REASONS && last.is_some_and(|(last, _)| hash > *last)
    }

    /// Adds the templates of `others`.
    pub fn extend(&mut self, others: ReasonTemplates) {
        for (hash, template) in others.0 {
            self.add(hash, || template);
        }
    }

    /// Iterates over the hashes and templates, in order of the hashes.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (self.0.iter()).map(|(hash, template)| (*hash, template.as_str()))
    }

    /// Returns the template of a hold; `None` if it is not stored.
    pub fn get(&self, hold: &JobEvent) -> Option<&str> {
        self.0.get(&hold.value.cast_unsigned()).map(String::as_str)
    }
}

/// Words of the hold reasons that HTCondor's daemons and file transfer plugins write, and of Unix
/// errors. The numbers are status codes of HTTP: curl's plugin names a missing file by nothing else. The
/// directories at the end have what is installed on a machine, and not what a job brings.
const WORDS: &str = "
    a aborted abnormal access address after all allowed already an and any apptainer are argument as at attempt attempts
    attribute authentication authorization available bad be because been before being bind block bound broken busy but by
    bytes cache called can cannot checkpoint checksum claim cluster code command condor_hold condor_submit connect
    connection consider container copy corrupt could cpu cpus create credential credentials cross-device daemon data
    deadlock deadline denied descriptor destination details detected device did directory disconnected disk docker does
    download due duration empty enough environment error errno evaluated evicted exceed exceeded exceeds exec executable
    execute execution exist exists exit exited expired expression failed failure failures false fault file files first
    for format found from full gateway get gone gpu gpus grid group had handshake has have held hold host hung id image
    in initial initialize input internal interrupted into invalid invoke io is it its job job's jobs kerberos keyboard kill
    killed last launch limit limits link load local lock log long longer lost macro many match max maximum measured
    megabytes memory message migrate minutes missing mkdir mount name network new no non-zero normal not null number
    oauth object of on onexithold only open operation or order osdf origin out output over owner peak pelican perform
    periodichold periodicremove permanently permission permitted pid pin plugin point policy pool port possible problem
    process protocol proxy put queue quota range read read-only reading reason receive received reconnect refused remote
    removed request request's request_cpus request_disk request_gpus request_memory requested required reset resolve
    resource resources resubmitting retries return returned run running sandbox schedd seconds see seek segmentation
    send sending sent server setup shadow shared shutdown signal single singularity size slot socket space specified
    spool spooled spooling standard stale start startd started starter status stderr stdin stdout stop stopped storage
    submit submitted submitting such supported switch symbolic system temporarily
    text than that the this time timed timeout to token too total transfer transferring true try type unable unavailable
    undefined universe unknown unreachable unspecified unsupported up upload url usage used user user's using value version
    via vm wait waiting wall was when where while will with within without working write writing wrong xfer your zero
    400 401 403 404 408 410 416 429 500 502 503 504
    /bin /cvmfs /lib /lib64 /opt /sbin /usr
";

/// Hash table of the listed words, because there are many holds. Each word is in the first slot of
/// its [`probe_slots`] that was free.
static LISTED_WORDS: LazyLock<Box<[u128; 1 << SLOT_BITS]>> = LazyLock::new(|| {
    let mut table = Box::new([0; 1 << SLOT_BITS]);
    for word in WORDS.split_whitespace() {
        let Some(word) = pack_word(word.as_bytes(), word.len()) else {
            continue;
        };
        if let Some(free) = probe_slots(word).find(|&slot| table[slot] == 0) {
            table[free] = word;
        }
    }
    table
});

/// Bits of a slot's index: the table has about four slots per listed word.
const SLOT_BITS: u32 = 11;

/// Returns the slots in which a word may be, most likely first.
fn probe_slots(word: u128) -> impl Iterator<Item = usize> {
    let first = (mix_word(0, word) >> (64 - SLOT_BITS)) as usize;
    (first..first + (1 << SLOT_BITS)).map(|slot| slot % (1 << SLOT_BITS))
}

/// Returns true if the packed `word` is listed.
fn is_listed(word: u128) -> bool {
    probe_slots(word)
        .map(|slot| LISTED_WORDS[slot])
        .take_while(|&found| found != 0)
        .any(|found| found == word)
}

/// Adds a packed word to a hash.
fn mix_word(hash: u64, word: u128) -> u64 {
    (hash.rotate_left(5) ^ (word >> 64) as u64 ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Packs the first `length` letters of `text`, in lower case, into a number. Returns `None` if
/// `length` is more than 16, the maximum of a listed word.
#[inline]
fn pack_word(text: &[u8], length: usize) -> Option<u128> {
    if length > 16 {
        return None;
    }
    // Reads 16 bytes, including text after the word, which is faster than reading only the word.
    let mut letters = text.first_chunk().copied().unwrap_or_else(|| {
        let mut letters = [0; 16];
        letters[..length].copy_from_slice(&text[..length]);
        letters
    });
    letters.make_ascii_lowercase();
    // The shift is less than 128 bits: a word has at least one letter.
    Some(
        u128::from_be_bytes(letters)
            .checked_shr(8 * (16 - length as u32))
            .unwrap_or(0),
    )
}

/// Returns the first directory of an absolute path, such as `/usr`, and other words as they are.
fn first_directory(word: &[u8]) -> &[u8] {
    let is_end = |&(at, byte): &(usize, &u8)| at > 0 && *byte == b'/';
    match word.first() {
        Some(b'/') => {
            let end = word.iter().enumerate().find(is_end);
            &word[..end.map_or(word.len(), |(at, _)| at)]
        }
        _ => word,
    }
}

/// Returns the words of `text`: the packed word if it is listed, else `None`.
fn template_words(text: &[u8]) -> impl Iterator<Item = Option<u128>> {
    let user = pack_word(b"user", 4);
    let mut rest = text;
    let mut follows_user = false;

    std::iter::from_fn(move || {
        let word = rest.trim_ascii_start();
        let length = word
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(word.len());
        rest = &word[length..];
        (length > 0).then(|| {
            // Quotes, brackets and full stops around a word are not part of it.
            let begin = word[..length].iter().position(u8::is_ascii_alphanumeric)?;
            let end = word[..length].iter().rposition(u8::is_ascii_alphanumeric)? + 1;
            let begin = begin - usize::from(word[..begin].ends_with(b"/"));
            let word = pack_word(&word[begin..], first_directory(&word[begin..end]).len());

            // The word after "user" is a name, even if it is listed: "max" and "will" are names,
            // too.
            let after_user = std::mem::replace(&mut follows_user, word == user);
            word.filter(|&word| !after_user && is_listed(word))
        })
    })
}

/// Returns the hash that represents the template of `reason` in events; 0 for an empty reason.
pub(super) fn template_hash(reason: &[u8]) -> u32 {
    let mut hash = 0;
    let mut was_masked = false;
    for word in template_words(reason) {
        // Consecutive unlisted words are one `*` in the template, so they count once.
        if word.is_some() || !was_masked {
            hash = mix_word(hash, word.unwrap_or(1));
        }
        was_masked = word.is_none();
    }
    (hash >> 32) as u32
}

/// Returns the words of `reason` that are listed, in lower case, with `*` in place of others.
pub fn reason_template(reason: &[u8]) -> String {
    let mut kept: Vec<String> = template_words(reason)
        .map(|word| word.map_or_else(|| "*".to_owned(), unpack_word))
        .collect();
    kept.dedup_by(|next, last| next == "*" && last == "*");
    kept.join(" ")
}

/// Returns the letters of a word that was packed by [`pack_word`].
fn unpack_word(word: u128) -> String {
    let letters = word.to_be_bytes().into_iter().filter(|byte| *byte != 0);
    letters.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_keep_only_listed_words() {
        let transfer = "Transfer output files failure at execution point slot1_2@ep.example while sending files to access \
            point ap40. Details: 1 total failures: first failure: reading from file /home/ada/secret.dat: (errno 2) No \
            such file or directory";
        assert_eq!(
            reason_template(transfer.as_bytes()),
            "transfer output files failure at execution point * while sending files to access point * details * total \
             failures first failure reading from file * errno * no such file or directory"
        );
        assert_eq!(
            reason_template(b"via condor_hold (by user max)"),
            "via condor_hold by user *"
        );
        assert_eq!(
            reason_template(b"waiting for Bob Smith's grant (by user bob)"),
            "waiting for * by user *"
        );
        assert_eq!(reason_template(b"\xff\xfe /no/such/file  "), "*");
        assert_eq!(
            reason_template(
                b"Failed to execute '/usr/bin/singularity': (errno=2) in /tmp/usr, (/cvmfs)"
            ),
            "failed to execute /usr * in * /cvmfs"
        );
        assert_eq!(reason_template(b""), "");
    }

    #[test]
    fn equal_templates_have_equal_hashes() {
        let same = |a: &str, b: &str| {
            assert_eq!(
                reason_template(a.as_bytes()) == reason_template(b.as_bytes()),
                template_hash(a.as_bytes()) == template_hash(b.as_bytes())
            );
        };
        same(
            "Job has gone over memory limit of 100 megabytes",
            "job has gone over memory limit of 2048 megabytes.",
        );
        same("file x not found", "file x y not found");
        same("file x not found", "file not found");
        same("read error", "error read");
        assert_eq!(template_hash(b" \t"), 0);
    }

    #[test]
    fn kept_templates_do_not_depend_on_order() {
        let (mut up, mut down) = (ReasonTemplates::default(), ReasonTemplates::default());
        (1..5000).for_each(|n| up.add(n, String::new));
        (1..5000).rev().for_each(|n| down.add(n, String::new));
        assert_eq!((up.0.len(), &up), (MAX_REASONS, &down));
    }

    #[test]
    fn listed_words_are_lowercase_and_fit_16_bytes() {
        assert!(
            WORDS
                .split_whitespace()
                .all(|word| word.len() <= 16 && word.to_lowercase() == word)
        );
    }
}
