//! An item and its state ⇄ the name of its file.

use serde::{Deserialize, Serialize};

/// What is to be done: a trial, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Item {
    /// Counted from 1.
    pub trial: usize,
    /// The most epochs that the trial may have when it has ended.
    pub budget: usize,
}

impl Item {
    /// What the beginning of a name says.
    pub(super) fn parse(name: &str) -> Option<Item> {
        let (trial, budget) = name.strip_prefix('t')?.split_once("-e")?;
        Some(Item { trial: trial.parse().ok()?, budget: budget.parse().ok()? })
    }
}

impl std::fmt::Display for Item {
    /// As names begin.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t{:06}-e{:06}", self.trial, self.budget)
    }
}

/// Where an item stands. The words are a worker's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Anybody may take it.
    Ready,
    /// A worker has it, for as long as its heart beats.
    Leased(String),
    /// Its result is on disk.
    Done(String),
    /// It will never work, and why is on disk.
    Failed(String),
    /// Too many workers died of it; the last of them.
    Quarantined(String),
}

impl State {
    /// Whether nothing more will happen to the item.
    pub fn is_last(&self) -> bool {
        !matches!(self, State::Ready | State::Leased(_))
    }

    /// The worker that it names.
    pub fn worker(&self) -> Option<&str> {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            State::Ready => ("ready", None),
            State::Leased(worker) => ("leased", Some(worker)),
            State::Done(worker) => ("done", Some(worker)),
            State::Failed(worker) => ("failed", Some(worker)),
            State::Quarantined(worker) => ("quarantined", Some(worker)),
        }
    }

    fn of(word: &str, worker: Option<&str>) -> Option<State> {
        let named: fn(String) -> State = match word {
            "ready" => return worker.is_none().then_some(State::Ready),
            "leased" => State::Leased,
            "done" => State::Done,
            "failed" => State::Failed,
            "quarantined" => State::Quarantined,
            _ => return None,
        };
        worker.filter(|name| is_worker(name)).map(|name| named(name.to_owned()))
    }
}

/// An item with its state: what the name of its file says, as `t000017-e000030.a2.leased.node7-4711-9f3c2a1b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The item.
    pub item: Item,
    /// Which attempt at it this is, counted from 1; one more each time a lease is lost.
    pub attempt: u32,
    /// Where it stands.
    pub state: State,
}

impl Token {
    /// The item before anybody took it.
    pub fn new(item: Item) -> Token {
        Token { item, attempt: 1, state: State::Ready }
    }

    /// The same attempt in another state.
    pub fn with(&self, state: State) -> Token {
        Token { state, ..self.clone() }
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        let (word, worker) = self.state.parts();
        let worker = worker.map_or(String::new(), |worker| format!(".{worker}"));
        format!("{}.a{}.{word}{worker}", self.item, self.attempt)
    }

    /// Whether nothing more will happen to the item.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state, State::Ready | State::Leased(_))
    }

    /// What the file `name` says; `None` for any other file.
    pub fn parse(name: &str) -> Option<Token> {
        let mut parts = name.split('.');
        let item = Item::parse(parts.next()?)?;
        let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
        let state = State::of(parts.next()?, parts.next())?;
        // Numbers that are written in another way would be another file.
        Some(Token { item, attempt, state }).filter(|token| token.name() == name)
    }
}

/// Whether `name` can be that of a worker, and so of a file.
pub(super) fn is_worker(name: &str) -> bool {
    (1..=100).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::process::Process;

    fn any_token() -> impl Strategy<Value = Token> {
        let states = (0..5_usize, "[a-zA-Z0-9_-]{1,100}").prop_map(|(state, worker)| match state {
            0 => State::Ready,
            1 => State::Leased(worker),
            2 => State::Done(worker),
            3 => State::Failed(worker),
            _ => State::Quarantined(worker),
        });
        (any::<usize>(), any::<usize>(), any::<u32>(), states).prop_map(|(trial, budget, attempt, state)| Token {
            item: Item { trial, budget },
            attempt,
            state,
        })
    }

    proptest! {
        #[test]
        fn names_are_read_back(token in any_token()) {
            prop_assert_eq!(Token::parse(&token.name()), Some(token));
        }

        #[test]
        fn no_name_is_read_as_another(name in "\\PC{0,60}|t[0-9]{0,8}-e[0-9]{0,8}\\.a[0-9]{0,3}\\.[a-z]{0,9}(\\.[a-z/.]{0,5})?") {
            if let Some(token) = Token::parse(&name) {
                prop_assert_eq!(token.name(), name);
            }
        }
    }

    #[test]
    fn strange_names_are_no_tokens() {
        let worker = "t000001-e000002.a1.leased.";
        for name in [
            "",
            ".nfs000000000012",
            "t1-e2.a1.ready",
            "t000001-e000002.a1.ready.w",
            "t000001-e000002.a1.leased",
            "t000001-e000002.a1.leased.",
            "t000001-e000002.a1.leased.a.b",
            "t000001-e000002.a+1.ready",
            &format!("{worker}../../x"),
            &format!("{worker}{}", "x".repeat(101)),
        ] {
            assert_eq!(Token::parse(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_workers_differ_and_are_names() {
        let mut current = Process::current();
        current.host = "über.example.org".to_owned();
        let (a, b) = (current.worker_name(), current.worker_name());
        assert!(a != b && is_worker(&a), "{a} {b}");
        assert!(a.starts_with("ber-"), "{a}");
    }
}
