//! The flags of a network's hyper-parameters, generated from the table of hyper-parameters.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use serde_json::{Value, json};

use poolcast_config::{HyperParameter, NetworkParameters, ParameterRange, TrialParameters as _};

/// Hyper-parameters that the user gave, by name.
#[derive(Debug, Default)]
pub struct NetworkFlags(pub Vec<(&'static str, Value)>);

impl NetworkFlags {
    /// The flag of `parameter`, if it has one.
    fn flag(parameter: &HyperParameter) -> Option<Arg> {
        let flag = parameter.flag?;
        let arg = Arg::new(parameter.name)
            .long(flag.name)
            .value_name(flag.value_name)
            .help(flag.about);
        Some(match parameter.range {
            ParameterRange::Whole(..) => arg.value_parser(value_parser!(u32)),
            _ => arg
                .value_parser(value_parser!(f64))
                .allow_negative_numbers(true),
        })
    }
}

impl Args for NetworkFlags {
    fn augment_args(command: Command) -> Command {
        command.args(
            NetworkParameters::TABLE
                .iter()
                .filter_map(NetworkFlags::flag),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        NetworkFlags::augment_args(command)
    }
}

impl FromArgMatches for NetworkFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<NetworkFlags, Error> {
        let mut given = Vec::new();
        for parameter in NetworkParameters::TABLE {
            if parameter.flag.is_none() {
                continue;
            }
            let name = parameter.name;
            let value = match parameter.range {
                ParameterRange::Whole(..) => matches.get_one::<u32>(name).map(|value| json!(value)),
                _ => matches.get_one::<f64>(name).map(|value| json!(value)),
            };
            given.extend(value.map(|value| (name, value)));
        }
        Ok(NetworkFlags(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = NetworkFlags::from_arg_matches(matches)?;
        Ok(())
    }
}
