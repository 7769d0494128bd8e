//! The known name that an unknown one is likely to mean.

/// The one of `known` that `name` is likely to mean: but for a few letters, or their case, the same
/// word.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name);
    let (distance, known) = known
        .map(|known| (distance(known), known))
        .min_by_key(|(distance, _)| *distance)?;
    (3 * distance <= name.chars().count().min(known.chars().count())).then_some(known)
}
