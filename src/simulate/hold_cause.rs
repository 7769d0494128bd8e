//! The true causes of holds, which only the simulation knows.

/// The true cause of a hold. The truth file has it, but the hold code often does not reveal it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldCause {
    /// The user held it.
    Person,
    /// The input file is missing on the access point until a person supplies it.
    MissingInput,
    /// The URL of the input is wrong until a person corrects it.
    WrongUrl,
    /// The origin of the input is down.
    InputOutage,
    /// The transfer of the input failed once, without a permanent cause.
    InputGlitch,
    /// The executable is missing until a person supplies it.
    MissingExecutable,
    /// The site could not start the job.
    Site,
    /// The job used more memory than it requested.
    Memory,
    /// The job ran longer than allowed.
    Duration,
    /// The user's policy turns failing exits into holds.
    Policy,
    /// The job never writes the declared output, until a person corrects the program.
    MissingOutput,
    /// The job did not write its output in this run.
    LostOutput,
    /// The origin of the output is down.
    OutputOutage,
    /// The transfer of the output failed once, without a permanent cause.
    OutputGlitch,
    /// The input is on a file system of the access point that is not mounted.
    MountOutage,
    /// The execution point is faulty and makes runs fail.
    BadHost,
}

impl HoldCause {
    /// All causes. A truth file stores the index of each cause in this list.
    pub const ALL: [HoldCause; 16] = [
        HoldCause::Person,
        HoldCause::MissingInput,
        HoldCause::WrongUrl,
        HoldCause::InputOutage,
        HoldCause::InputGlitch,
        HoldCause::MissingExecutable,
        HoldCause::Site,
        HoldCause::Memory,
        HoldCause::Duration,
        HoldCause::Policy,
        HoldCause::MissingOutput,
        HoldCause::LostOutput,
        HoldCause::OutputOutage,
        HoldCause::OutputGlitch,
        HoldCause::MountOutage,
        HoldCause::BadHost,
    ];

    /// Returns true if a file of the access point is missing until a person supplies it.
    pub(super) fn is_missing_file(self) -> bool {
        matches!(self, HoldCause::MissingInput | HoldCause::MissingExecutable)
    }

    /// The cause's name in truth files, such as `missing-input`.
    pub fn name(self) -> String {
        let pieces = format!("{self:?}");
        let dashed = pieces.chars().enumerate().flat_map(|(at, letter)| {
            let dash = (at > 0 && letter.is_ascii_uppercase()).then_some('-');
            dash.into_iter().chain([letter.to_ascii_lowercase()])
        });
        dashed.collect()
    }
}
