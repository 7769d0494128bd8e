//! The indices of access points by name, while a store is built.

use std::collections::HashMap;

/// The names of the access points of a store in order of their indices, with a lookup by name.
#[derive(Debug, Default)]
pub(super) struct AccessPoints {
    names: Vec<String>,
    index_by_name: HashMap<String, u32>,
}

impl AccessPoints {
    /// Creates access points with the indices that they have in `names`.
    pub(super) fn new(names: &[String]) -> AccessPoints {
        let mut all = AccessPoints::default();
        for name in names {
            all.index(name);
        }
        all
    }

    /// Returns the index of the access point `name`; adds it if it is new.
    pub(super) fn index(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.index_by_name.get(name) {
            return index;
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.index_by_name.insert(name.to_owned(), index);
        index
    }

    /// Returns the names in order of their indices.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_keeps_its_index() {
        let mut all = AccessPoints::new(&["b".to_owned(), "a".to_owned()]);
        assert_eq!(
            ["a", "b", "c", "a"].map(|name| all.index(name)),
            [1, 0, 2, 1]
        );
        assert_eq!(all.into_names(), ["b", "a", "c"]);
    }
}
