//! Why a job is held: what only the truth knows.

/// Why a job is held: what the truth knows, and the code often does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldCause {
    /// The user held it.
    Person,
    /// Its input is missing on the access point, until somebody puts it there.
    MissingInput,
    /// The address of its input is wrong, until somebody corrects it.
    WrongUrl,
    /// The origin of its input is down.
    InputOutage,
    /// The transfer of its input failed without a lasting reason.
    InputGlitch,
    /// Its executable is missing, until somebody puts it there.
    MissingExecutable,
    /// The site could not start it.
    Site,
    /// It used more memory than it asked for.
    Memory,
    /// It ran longer than allowed.
    Duration,
    /// The user's policy holds failing exits.
    Policy,
    /// It never writes the output it declares, until somebody corrects that.
    MissingOutput,
    /// This run did not write its output.
    LostOutput,
    /// The origin of its output is down.
    OutputOutage,
    /// The transfer of its output failed without a lasting reason.
    OutputGlitch,
    /// The file system of the access point that its input is on is not mounted.
    MountOutage,
    /// The execution point spoils runs.
    BadHost,
}

impl HoldCause {
    /// All causes; a truth file holds their places in this list.
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

    /// Its name in truth files.
    pub fn name(self) -> String {
        let pieces = format!("{self:?}");
        let dashed = pieces.chars().enumerate().flat_map(|(at, letter)| {
            let dash = (at > 0 && letter.is_ascii_uppercase()).then_some('-');
            dash.into_iter().chain([letter.to_ascii_lowercase()])
        });
        dashed.collect()
    }
}
