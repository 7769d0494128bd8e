//! Classifies the cause of a hold by its code and subcode.

/// Kinds of causes. The numbers are stored in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SubcodeFamily {
    /// No subcode.
    None = 0,
    /// A file or directory is missing: ENOENT.
    Missing = 1,
    /// Not allowed: EPERM, EACCES.
    Permission = 2,
    /// A disk or quota is full: ENOSPC, EDQUOT, or the request for disk was exceeded.
    Disk = 3,
    /// Something took too long: ETIME, ETIMEDOUT.
    Timeout = 4,
    /// A connection failed: ENETDOWN to ECONNRESET, ECONNREFUSED to EHOSTUNREACH.
    Network = 5,
    /// A file transfer plugin failed. Its exit code is in the upper bytes.
    Plugin = 6,
    /// The request for memory was exceeded.
    Memory = 7,
    /// The request for processors was exceeded.
    Cpu = 8,
    /// Anything else: other error numbers, and numbers chosen by users and administrators.
    Other = 9,
}

/// Returns the kind of cause of a hold.
///
/// Subcodes of transfers and files are Unix error numbers, or the exit code of a plugin times 256.
/// Subcodes of resource holds are 101 (processors), 102 (memory) and 104 (disk), from HTCondor's
/// policy templates.
pub(crate) fn subcode_family(hold_code: i32, hold_subcode: i32) -> SubcodeFamily {
    match (hold_code, hold_subcode) {
        (_, 0) => SubcodeFamily::None,
        (21 | 26 | 34, 101) => SubcodeFamily::Cpu,
        (21 | 26 | 34, 102) => SubcodeFamily::Memory,
        (21 | 26 | 34, 104) => SubcodeFamily::Disk,
        (3 | 21 | 26 | 34, _) => SubcodeFamily::Other,
        (_, 2) => SubcodeFamily::Missing,
        (_, 1 | 13) => SubcodeFamily::Permission,
        (_, 28 | 122) => SubcodeFamily::Disk,
        (_, 62 | 110) => SubcodeFamily::Timeout,
        (_, 100..=104 | 111..=113) => SubcodeFamily::Network,
        (_, plugin) if plugin >= 256 && plugin % 256 == 0 => SubcodeFamily::Plugin,
        _ => SubcodeFamily::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcode_family_depends_on_the_hold_code() {
        assert_eq!(subcode_family(13, 2), SubcodeFamily::Missing);
        assert_eq!(subcode_family(13, 256), SubcodeFamily::Plugin);
        assert_eq!(subcode_family(34, 102), SubcodeFamily::Memory);
        assert_eq!(subcode_family(13, 102), SubcodeFamily::Network);
        assert_eq!(
            subcode_family(3, 2),
            SubcodeFamily::Other,
            "a user's own number"
        );
        assert_eq!(subcode_family(12, 0), SubcodeFamily::None);
        assert_eq!(subcode_family(12, -256), SubcodeFamily::Other);
    }
}
