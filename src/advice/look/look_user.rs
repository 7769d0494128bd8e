//! The user with whose rights files are looked at. Root sees everything, and would tell owners of jobs
//! what the files of others are: so the process that looks for root takes the rights of the owner first.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use poolcast_base::shared_text::SharedText;
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The name of the user who may do everything.
pub(super) const SUPER_USER: &str = "root";

/// The user with whose rights a path is looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LookUser {
    /// The user of this process.
    This,
    /// Another user of this machine, who owns the job.
    Owner(SharedText),
}

impl LookUser {
    /// Returns the user who looks for a job of `owner`; `None` if nobody does. Only root can look as
    /// someone else.
    pub(super) fn for_owner(owner: Option<&SharedText>) -> Option<LookUser> {
        if !geteuid().is_root() {
            return Some(LookUser::This);
        }
        match owner {
            Some(owner) if owner.as_str() == SUPER_USER => Some(LookUser::This),
            Some(owner) if is_user_name(owner) => Some(LookUser::Owner(owner.clone())),
            _ => None,
        }
    }

    /// The name of the other user.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            LookUser::This => None,
            LookUser::Owner(name) => Some(name.as_str()),
        }
    }
}

/// Returns true if `name`, which comes from a log or a queue, can be the name of a user. A number would
/// be taken for the number of one, and a hyphen for an option.
fn is_user_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    name.bytes().all(is_plain)
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !name.starts_with('-')
}

/// Gives this process the rights of `user` and of the user's groups, and no others, for good. Threads
/// that have begun before keep theirs.
///
/// # Errors
/// Fails if this machine has no such user, if that is root, or if this process is not root.
pub fn become_user(user: &str) -> Result<()> {
    ensure!(is_user_name(user), "`{user}` is not the name of a user");
    let only = |numbers: Vec<u32>| numbers.first().copied().context("`id` prints nothing");
    let uid = Uid::from_raw(only(ask_id("-u", user)?)?);
    let gid = Gid::from_raw(only(ask_id("-g", user)?)?);
    let groups = ask_id("-G", user)?.into_iter().map(Gid::from_raw);
    ensure!(!uid.is_root(), "`{user}` is another name of root");

    set_thread_groups(&groups.collect::<Vec<_>>()).context("cannot take the groups of the user")?;
    set_thread_res_gid(gid, gid, gid).context("cannot take the group of the user")?;
    set_thread_res_uid(uid, uid, uid).context("cannot take the rights of the user")?;
    ensure!(
        geteuid() == uid && getegid() == gid,
        "this process has the rights of another user"
    );
    Ok(())
}

/// Asks `id`, which also knows the users of a directory server, for numbers of `user`.
fn ask_id(which: &str, user: &str) -> Result<Vec<u32>> {
    let id = Command::new("id").args([which, "--", user]).output();
    let id = id.context("`id` cannot be started")?;
    ensure!(id.status.success(), "this machine has no user `{user}`");
    let text = String::from_utf8(id.stdout).context("`id` prints no numbers")?;
    let numbers = text.split_whitespace().map(str::parse);
    numbers
        .collect::<Result<_, _>>()
        .context("`id` prints no numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_no_numbers_and_no_options() {
        for name in ["ada", "a.b-c_d", "u1", "1u", "ada@example.edu"] {
            assert!(is_user_name(name), "{name}");
        }
        for name in [
            "", "0", "1000", "-u", "--help", "+0", "a b", "a\n", "../ada",
        ] {
            assert!(!is_user_name(name), "{name}");
            assert!(become_user(name).is_err(), "{name}");
        }
    }
}
