//! Finds the known name that a misspelt name probably means.

/// Returns the name in `known` that `name` probably means: the nearest one by edit distance,
/// ignoring case. Returns `None` if more than a third of the letters differ.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name);
    let (distance, known) = known
        .map(|known| (distance(known), known))
        .min_by_key(|(distance, _)| *distance)?;
    (3 * distance <= name.chars().count().min(known.chars().count())).then_some(known)
}
