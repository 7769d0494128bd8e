//! Evaluates the commands that pages print on the jobs of a queue, for the tests of these commands.

use super::id_ranges::ClusterProc;

/// A job in the queue, of any state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuedTestJob {
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) owner: &'static str,
    /// `JobStatus`.
    pub(super) status: i64,
    /// `EnteredCurrentStatus`.
    pub(super) since_s: i64,
}

impl QueuedTestJob {
    pub(super) fn number(&self) -> ClusterProc {
        (self.cluster, self.proc)
    }
}

/// Returns the ids of the jobs in `queue` that `command` affects, as a shell and HTCondor read it.
pub(super) fn affected(command: &str, queue: &[QueuedTestJob]) -> Vec<ClusterProc> {
    let constraints = constraints(command);
    let is_affected = |job: &&QueuedTestJob| constraints.iter().any(|one| is_true(one, job));
    queue
        .iter()
        .filter(is_affected)
        .map(QueuedTestJob::number)
        .collect()
}

/// Returns the constraints of the calls that `command` makes.
fn constraints(command: &str) -> Vec<String> {
    let Some((ids, call)) = command.split_once(" | xargs -n ") else {
        let (_, rest) = command.split_once(" -constraint '").expect("a constraint");
        return vec![rest.split_once('\'').expect("its end").0.to_owned()];
    };
    let ids: Vec<&str> = ids.strip_prefix("echo ").expect("ids").split(' ').collect();
    let (at_once, call) = call.split_once(" sh -c '").expect("a shell");
    let (_, rest) = call.split_once(" -constraint \"").expect("a constraint");
    let quoted = rest.rsplit_once("\"' -").expect("its end").0;
    let template = quoted.replace("\\\"", "\"");
    let parts = ids.chunks(at_once.parse().expect("a number"));
    parts
        .map(|part| template.replace("$*", &part.join(" ")))
        .collect()
}

/// Evaluates `expression` for `job`.
fn is_true(expression: &str, job: &QueuedTestJob) -> bool {
    let mut rest = Expression {
        text: expression,
        job,
    };
    let value = rest.any();
    assert_eq!(rest.text.trim(), "", "all of {expression} is read");
    value == Value::Truth(true)
}

#[derive(Debug, PartialEq, PartialOrd)]
enum Value {
    Number(i64),
    Text(String),
    Truth(bool),
}

impl Value {
    fn is_true(&self) -> bool {
        *self == Value::Truth(true)
    }

    fn words(&self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::Truth(_) => panic!("no words: {self:?}"),
        }
    }
}

/// The rest of an expression.
struct Expression<'a> {
    text: &'a str,
    job: &'a QueuedTestJob,
}

impl Expression<'_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.text.trim_start().strip_prefix(token);
        rest.inspect(|rest| self.text = rest).is_some()
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let text = self.text.trim_start();
        let (part, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
        self.text = rest;
        part.to_owned()
    }

    fn any(&mut self) -> Value {
        let mut value = self.all();
        while self.take("||") {
            value = Value::Truth(self.all().is_true() | value.is_true());
        }
        value
    }

    fn all(&mut self) -> Value {
        let mut value = self.comparison();
        while self.take("&&") {
            value = Value::Truth(self.comparison().is_true() & value.is_true());
        }
        value
    }

    fn comparison(&mut self) -> Value {
        let value = self.operand();
        // Comparisons of texts ignore the case.
        let folded = |value: Value| match value {
            Value::Text(text) => Value::Text(text.to_lowercase()),
            other => other,
        };
        if self.take("==") {
            Value::Truth(folded(value) == folded(self.operand()))
        } else if self.take("<=") {
            Value::Truth(value <= self.operand())
        } else if self.take(">=") {
            Value::Truth(value >= self.operand())
        } else {
            value
        }
    }

    fn operand(&mut self) -> Value {
        if self.take("(") {
            let value = self.any();
            assert!(self.take(")"), "a bracket is open: {}", self.text);
            return value;
        }
        if self.take("\"") {
            let (text, rest) = self.text.split_once('"').expect("the end of a text");
            self.text = rest;
            return Value::Text(text.to_owned());
        }
        let word = self.take_while(|c| c.is_ascii_alphanumeric());
        if self.take("(") {
            return self.call(&word);
        }
        match word.as_str() {
            "ClusterId" => Value::Number(self.job.cluster.into()),
            "ProcId" => Value::Number(self.job.proc.into()),
            "JobStatus" => Value::Number(self.job.status),
            "EnteredCurrentStatus" => Value::Number(self.job.since_s),
            "Owner" => Value::Text(self.job.owner.to_owned()),
            number => Value::Number(number.parse().expect("a number")),
        }
    }

    /// Evaluates the call of a function whose arguments follow.
    fn call(&mut self, function: &str) -> Value {
        let mut arguments = vec![self.any()];
        while self.take(",") {
            arguments.push(self.any());
        }
        assert!(self.take(")"), "a call is open: {}", self.text);
        match (function, &arguments[..]) {
            ("strcat", parts) => Value::Text(parts.iter().map(Value::words).collect()),
            ("stringListMember", [member, list]) => {
                let (member, list) = (member.words(), list.words());
                Value::Truth(list.split(' ').any(|listed| listed == member))
            }
            _ => panic!("no such function: {function}"),
        }
    }
}
