//! The facts that a hold reason states.

use serde::Serialize;

use super::scan::path_in_sandbox;

/// Declares an enum without values, whose variants have numbers in a store.
macro_rules! stored_enum {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$variant_about:meta])* $variant:ident,)* }) => {
        $(#[$about])*
        pub enum $name { $($(#[$variant_about])* $variant,)* }

        impl $name {
            /// All variants, in the order of their numbers.
            const ALL: &[$name] = &[$($name::$variant,)*];

            /// Returns the variant with this number; the first if a later version has stored it.
            fn numbered(number: u32) -> $name {
                $name::ALL.get(number as usize).copied().unwrap_or_default()
            }
        }
    };
}

stored_enum! {
    /// The part of HTCondor, the program or the person whose words the reason has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[expect(missing_docs, reason = "the names say it")]
    pub enum Speaker {
        #[default]
        Unknown,
        Shadow,
        Starter,
        Schedd,
        Gridmanager,
        /// A transfer plug-in.
        Plugin,
        /// A policy of an access point or an execution point.
        SitePolicy,
        /// The job's own policy.
        JobPolicy,
        Person,
        /// A script of the site that prepares or ends jobs.
        Hook,
    }
}

impl Speaker {
    /// Returns true for a policy of the job or of a site.
    pub(super) fn is_policy(self) -> bool {
        matches!(self, Speaker::JobPolicy | Speaker::SitePolicy)
    }
}

/// The direction of a transfer, as the job sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Direction {
    Input,
    Output,
}

stored_enum! {
    /// The side on which something failed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[expect(missing_docs, reason = "the names say it")]
    pub enum Side {
        #[default]
        Unknown,
        AccessPoint,
        ExecutionPoint,
        Server,
    }
}

stored_enum! {
    /// The thing that an operation failed on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Thing {
        /// The reason does not say it.
        #[default]
        Unknown,
        /// A file or a directory that is no other thing here.
        File,
        /// A file in the directory that the job had on a machine.
        SandboxFile,
        /// The place that output is renamed to.
        OutputName,
        /// Standard input.
        StandardInput,
        /// Standard output or standard error.
        StandardOutput,
        /// The program of the job.
        Program,
        /// A program that is not sent with the job: it is installed on the machine, or on a file system that
        /// machines share.
        InstalledProgram,
        /// A program of the job in a directory of its own, such as one that machines share with the access point.
        SharedProgram,
        /// The program that the first line of a script names.
        Interpreter,
        /// The directory that the job starts in.
        WorkingDirectory,
        /// The job's event log.
        UserLog,
        /// The data behind an address.
        Object,
        /// A transfer plug-in.
        Plugin,
        /// A container image.
        Image,
        /// The software that runs containers.
        ContainerSoftware,
        /// A proxy, a token, or another credential.
        Credential,
        /// The memory that the job uses.
        Memory,
        /// The disk space that the job uses.
        Disk,
        /// The CPUs that the job uses.
        Cpus,
        /// The time that the job takes.
        Time,
        /// The number of times that the job was started.
        Starts,
        /// The size of the files to transfer.
        TransferSize,
        /// The way in which the job's program ended.
        ProgramEnd,
        /// An expression of a policy.
        Expression,
        /// The decision of a person.
        Decision,
        /// The job's files, which wait to be sent to the access point.
        Spool,
        /// A script of the site.
        Hook,
        /// A script of the job that runs before or after its program.
        Script,
        /// A checkpoint of the job.
        Checkpoint,
        /// The start times of the job.
        Schedule,
        /// The user's account.
        Account,
        /// Another batch system, or a service for jobs elsewhere.
        RemoteSystem,
        /// The request of the job to another batch system.
        RemoteRequest,
        /// HTCondor's own software.
        OwnSoftware,
        /// A device of the machine, such as a GPU.
        Device,
        /// The job's request for resources.
        Request,
        /// A resource that the reason does not name.
        Resource,
    }
}

stored_enum! {
    /// The operation that failed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[expect(missing_docs, reason = "the names say it")]
    pub enum Operation {
        #[default]
        Unknown,
        Read,
        Write,
        CreateDirectory,
        Open,
        Execute,
        Receive,
        Send,
        Pull,
        Start,
        Authenticate,
        Submit,
        Evaluate,
        /// Using more or less of something than is allowed.
        Use,
        Hold,
        Cancel,
    }
}

stored_enum! {
    /// The way in which an operation ended, from a number or from words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Outcome {
        /// The reason does not say it.
        #[default]
        Unknown,
        /// It does not exist.
        Absent,
        /// It is not allowed.
        Denied,
        /// It is there already.
        Exists,
        /// Something that was valid is not any more.
        Expired,
        /// A directory stands where a file is needed, or the reverse, or a link leads nowhere.
        WrongKind,
        /// It has no meaning, or is not supported.
        Invalid,
        /// No space is left.
        Full,
        /// The user may not store more.
        Quota,
        /// Nothing can be written there.
        ReadOnly,
        /// A disk or a mounted file system does not work.
        MountLost,
        /// No answer came in time.
        TimedOut,
        /// No connection, or it broke.
        Disconnected,
        /// The host's name is not known.
        Unresolved,
        /// It is busy, or asks to wait.
        Busy,
        /// The server fails.
        Unavailable,
        /// The data are not what was sent.
        Corrupt,
        /// The certificate of a server is not accepted.
        BadCertificate,
        /// The file is for another kind of machine, or is no program.
        WrongFormat,
        /// It is larger or longer than is possible.
        TooLarge,
        /// The machine has no memory left.
        NoMemory,
        /// A limit was passed.
        Exceeded,
        /// Far less was used than was requested.
        Wasted,
        /// It ended by a signal or without a word.
        Died,
        /// It ended with an error that is not known here.
        Failed,
        /// An expression has no value.
        Undefined,
        /// Nothing failed: it is so on purpose.
        Intended,
    }
}

impl Outcome {
    /// Returns true if the operation may succeed later although nobody repairs anything.
    pub fn passes(self) -> bool {
        matches!(
            self,
            Outcome::TimedOut
                | Outcome::Disconnected
                | Outcome::Unresolved
                | Outcome::Busy
                | Outcome::Unavailable
                | Outcome::Corrupt
                | Outcome::BadCertificate
                | Outcome::MountLost
        )
    }

    /// Returns the outcome in the few words that programs use for it, such as `permission denied`.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Unknown => "unknown",
            Outcome::Absent => "no such file",
            Outcome::Denied => "permission denied",
            Outcome::Exists => "it exists already",
            Outcome::Expired => "expired",
            Outcome::WrongKind => "not the right kind of file",
            Outcome::Invalid => "not valid",
            Outcome::Full => "no space left",
            Outcome::Quota => "quota exceeded",
            Outcome::ReadOnly => "read-only file system",
            Outcome::MountLost => "file system does not work",
            Outcome::TimedOut => "timed out",
            Outcome::Disconnected => "connection failed",
            Outcome::Unresolved => "unknown host",
            Outcome::Busy => "busy",
            Outcome::Unavailable => "server fails",
            Outcome::Corrupt => "damaged data",
            Outcome::BadCertificate => "bad certificate",
            Outcome::WrongFormat => "wrong format",
            Outcome::TooLarge => "too large",
            Outcome::NoMemory => "no memory left",
            Outcome::Exceeded => "limit exceeded",
            Outcome::Wasted => "hardly used",
            Outcome::Died => "ended without a message",
            Outcome::Failed => "failed",
            Outcome::Undefined => "no value",
            Outcome::Intended => "on purpose",
        }
    }
}

/// The number with which an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Number {
    /// A Unix error.
    Errno(i32),
    /// A status of HTTP.
    Http(i32),
    /// A signal that ended a process.
    Signal(i32),
    /// The exit code of a process.
    Exit(i32),
}

/// An amount of something, in one unit per kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Memory or disk, MiB.
    Mib(u64),
    /// A time, s.
    Seconds(u64),
}

impl Amount {
    /// Returns the amount in MiB; `None` for a time.
    pub fn mib(self) -> Option<u64> {
        match self {
            Amount::Mib(mib) => Some(mib),
            Amount::Seconds(_) => None,
        }
    }
}

/// The statements of a hold reason without names and numbers: the part that rules are for, and that a store
/// keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct ReasonKind {
    /// The speaker of the reason.
    pub speaker: Speaker,
    /// The side on which it failed.
    pub side: Side,
    /// The thing that failed.
    pub thing: Thing,
    /// The operation that failed.
    pub operation: Operation,
    /// The outcome.
    pub outcome: Outcome,
    /// The direction of the transfer that failed.
    pub direction: Option<Direction>,
}

/// Bits of the speaker, the side, the thing, the operation and the outcome in a packed kind.
const FIELD_BITS: [u32; 5] = [4, 2, 6, 4, 5];
/// Bits of all of these. The direction is above them.
const FAULT_BITS: u32 = 21;

impl ReasonKind {
    /// Bits of a packed kind.
    pub const PACKED_BITS: u32 = FAULT_BITS + 2;

    /// The numbers of the speaker, the side, the thing, the operation and the outcome; 0 for an unknown one.
    pub fn numbers(self) -> [u32; 5] {
        [
            self.speaker as u32,
            self.side as u32,
            self.thing as u32,
            self.operation as u32,
            self.outcome as u32,
        ]
    }

    /// Packs the kind into a number; 0 if nothing was read.
    pub fn packed(self) -> u32 {
        let direction = self.direction.map_or(0, |direction| direction as u32 + 1);
        direction << FAULT_BITS | self.packed_fault()
    }

    /// Packs the kind without its direction: equal faults teach the same, whichever way the files went.
    pub fn packed_fault(self) -> u32 {
        let fields = FIELD_BITS.into_iter().zip(self.numbers());
        fields.fold(0, |packed, (bits, number)| packed << bits | number)
    }

    /// Unpacks what [`ReasonKind::packed`] or [`ReasonKind::packed_fault`] has packed. What is unknown in any
    /// other number is `Unknown`.
    pub fn from_packed(packed: u32) -> ReasonKind {
        let mut numbers = [0; FIELD_BITS.len()];
        let mut rest = packed;
        for (number, bits) in numbers.iter_mut().zip(FIELD_BITS).rev() {
            *number = rest & ((1 << bits) - 1);
            rest >>= bits;
        }
        let [speaker, side, thing, operation, outcome] = numbers;
        ReasonKind {
            speaker: Speaker::numbered(speaker),
            side: Side::numbered(side),
            thing: Thing::numbered(thing),
            operation: Operation::numbered(operation),
            outcome: Outcome::numbered(outcome),
            direction: match rest {
                1 => Some(Direction::Input),
                2 => Some(Direction::Output),
                _ => None,
            },
        }
    }

    /// Returns true if input files did not arrive.
    pub fn is_input_transfer(self) -> bool {
        self.direction == Some(Direction::Input)
    }

    /// Returns true if output files did not arrive.
    pub fn is_output_transfer(self) -> bool {
        self.direction == Some(Direction::Output)
    }

    /// Returns true if a transfer of files by a plug-in failed.
    pub fn is_plugin_transfer(self) -> bool {
        self.speaker == Speaker::Plugin
    }

    /// Returns true if a file or a directory could not be used that other jobs may use, too: an input file, or what the
    /// job starts from. A job that was held for the same reason, and now gets past it, shows that it is there.
    pub fn is_of_file(self) -> bool {
        self.is_input_transfer() || self.is_of_start_file() || self.thing == Thing::UserLog
    }

    /// Returns true if a machine could not use a file that the job starts from. A job that was held there for such a
    /// file, and now gets past it, shows that the machine may be at fault and not the file.
    pub fn is_of_start_file(self) -> bool {
        matches!(
            self.thing,
            Thing::StandardInput
                | Thing::StandardOutput
                | Thing::Program
                | Thing::InstalledProgram
                | Thing::SharedProgram
                | Thing::Interpreter
                | Thing::WorkingDirectory
        )
    }

    /// Returns true if the program of the job, or its container, could not be started.
    pub fn is_program_start(self) -> bool {
        let is_start = matches!(self.operation, Operation::Execute | Operation::Start);
        let is_of_program = matches!(
            self.thing,
            Thing::Program
                | Thing::InstalledProgram
                | Thing::SharedProgram
                | Thing::Interpreter
                | Thing::WorkingDirectory
                | Thing::Image
                | Thing::ContainerSoftware
                | Thing::Memory
        );
        // Without its software, an access point starts no job of any program.
        let is_of_starter = self.thing == Thing::OwnSoftware && self.side == Side::ExecutionPoint;
        is_start && (is_of_program || is_of_starter)
    }
}

/// The statements of a hold reason. A part that was not understood is `Unknown` or absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReasonFacts {
    /// The facts without names and numbers.
    #[serde(flatten)]
    pub kind: ReasonKind,
    /// The number with which it ended.
    pub number: Option<Number>,
    /// The path, address, image, host or person that the reason names.
    pub name: Option<String>,
    /// The slot or the machine that the reason names.
    pub machine: Option<String>,
    /// The limit that was passed.
    pub limit: Option<Amount>,
    /// The amount that was used.
    pub used: Option<Amount>,
    /// The innermost message, as it was written.
    pub message: String,
    /// True if the text was not understood, and what failed follows from the hold code.
    pub is_by_code: bool,
}

impl ReasonFacts {
    /// Returns the name that the reason gives; of a file in a sandbox, only its path there.
    pub fn shown_name(&self) -> Option<&str> {
        let name = self.name.as_deref()?;
        Some(match self.kind.thing {
            Thing::SandboxFile | Thing::Program => path_in_sandbox(name),
            _ => name,
        })
    }

    /// Returns facts about an operation on `thing`, and how it ended.
    pub(super) fn of(thing: Thing, operation: Operation, outcome: Outcome) -> ReasonFacts {
        ReasonKind {
            thing,
            operation,
            outcome,
            ..ReasonKind::default()
        }
        .into()
    }

    /// Sets the side on which it failed.
    pub(super) fn on(mut self, side: Side) -> ReasonFacts {
        self.kind.side = side;
        self
    }

    /// Sets who speaks.
    pub(super) fn said_by(mut self, speaker: Speaker) -> ReasonFacts {
        self.kind.speaker = speaker;
        self
    }

    /// Sets the number with which it ended.
    pub(super) fn numbered(mut self, number: Option<Number>) -> ReasonFacts {
        self.number = number;
        self
    }

    /// Sets what the reason names.
    pub(super) fn named(mut self, name: Option<&str>) -> ReasonFacts {
        self.name = name.map(str::to_owned);
        self
    }
}

impl From<ReasonKind> for ReasonFacts {
    fn from(kind: ReasonKind) -> ReasonFacts {
        ReasonFacts {
            kind,
            ..ReasonFacts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_unpacked_as_they_were_packed() {
        for &thing in Thing::ALL {
            for &outcome in Outcome::ALL {
                let kind = ReasonKind {
                    speaker: Speaker::Hook,
                    side: Side::Server,
                    thing,
                    operation: Operation::Hold,
                    outcome,
                    direction: None,
                };
                for direction in [None, Some(Direction::Input), Some(Direction::Output)] {
                    let directed = ReasonKind { direction, ..kind };
                    assert_eq!(ReasonKind::from_packed(directed.packed()), directed);
                    assert_eq!(ReasonKind::from_packed(directed.packed_fault()), kind);
                }
            }
        }
        assert_eq!(ReasonKind::default().packed(), 0);
        let lengths = [
            Speaker::ALL.len(),
            Side::ALL.len(),
            Thing::ALL.len(),
            Operation::ALL.len(),
            Outcome::ALL.len(),
        ];
        let fits = |(length, bits): (usize, u32)| length <= 1 << bits;
        assert!(lengths.into_iter().zip(FIELD_BITS).all(fits));
        assert_eq!(FIELD_BITS.iter().sum::<u32>(), FAULT_BITS);
        assert_eq!(ReasonKind::from_packed(u32::MAX).thing, Thing::Unknown);
    }
}
