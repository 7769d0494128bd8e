//! The flags of hyper-parameters, generated from a table of hyper-parameters.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use serde_json::{Value, json};

use poolcast_config::{HyperParameter, ParameterRange, TrialParameters};

/// Hyper-parameters of the table of `P` that the user gave, by name.
#[derive(Debug)]
pub struct ParameterFlags<P> {
    given: BTreeMap<&'static str, Value>,
    of_trial: PhantomData<P>,
}

impl<P> ParameterFlags<P> {
    /// Returns the keys of the configuration's section `section` that the flags override, with
    /// their values.
    pub fn keys(&self, section: &str) -> BTreeMap<String, Value> {
        let given = self.given.iter();
        given
            .map(|(name, value)| (format!("{section}.{name}"), value.clone()))
            .collect()
    }
}

/// Returns the flag of `parameter`, if it has one.
fn flag_of(parameter: &HyperParameter) -> Option<Arg> {
    let flag = parameter.flag?;
    let arg = Arg::new(parameter.name)
        .long(flag.name)
        .value_name(flag.value_name)
        .help(flag.about);
    Some(match parameter.range {
        ParameterRange::Whole(..) => arg.value_parser(value_parser!(u32)),
        ParameterRange::Choice(choices) => arg.value_parser(PossibleValuesParser::new(choices())),
        _ => arg
            .value_parser(value_parser!(f64))
            .allow_negative_numbers(true),
    })
}

/// Returns the value of `parameter` that the user gave.
fn given_value(parameter: &HyperParameter, matches: &ArgMatches) -> Option<Value> {
    parameter.flag?;
    let name = parameter.name;
    match parameter.range {
        ParameterRange::Whole(..) => matches.get_one::<u32>(name).map(|value| json!(value)),
        ParameterRange::Choice(_) => matches.get_one::<String>(name).map(|value| json!(value)),
        _ => matches.get_one::<f64>(name).map(|value| json!(value)),
    }
}

impl<P: TrialParameters> Args for ParameterFlags<P> {
    fn augment_args(command: Command) -> Command {
        command.args(P::TABLE.iter().filter_map(flag_of))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ParameterFlags::<P>::augment_args(command)
    }
}

impl<P: TrialParameters> FromArgMatches for ParameterFlags<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ParameterFlags<P>, Error> {
        let given = P::TABLE.iter().filter_map(|parameter| {
            given_value(parameter, matches).map(|value| (parameter.name, value))
        });
        Ok(ParameterFlags {
            given: given.collect(),
            of_trial: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = ParameterFlags::from_arg_matches(matches)?;
        Ok(())
    }
}
