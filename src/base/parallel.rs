//! Work that is spread over all threads, with the results in order.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Maximum number of tasks that [`map_numbers`] makes.
const MAX_TASKS: usize = 512;

/// Calls `map` on all threads with consecutive ranges that cover `0..len`, and returns the results in
/// the order of the ranges. Each range has `range_len` numbers, or fewer if it is the last one.
pub fn map_ranges<T: Send>(
    len: usize,
    range_len: usize,
    map: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let ranges = len.div_ceil(range_len);
    let results: Vec<Mutex<Option<T>>> = (0..ranges).map(|_| Mutex::new(None)).collect();
    for_each_number(ranges, &|number| {
        let begin = number * range_len;
        let result = map(begin..len.min(begin + range_len));
        *results[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// Calls `map` on all threads with each number below `count`, and returns the results in order.
pub fn map_numbers<T: Send>(count: usize, map: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let numbers_per_task = count.div_ceil(MAX_TASKS).max(1);
    let parts = map_ranges(count, numbers_per_task, |range| {
        range.map(&map).collect::<Vec<T>>()
    });
    parts.into_iter().flatten().collect()
}

/// Calls `map` on all threads with each of `items`, and returns the results in the order of the items.
pub fn map_items<I: Sync, T: Send>(items: &[I], map: impl Fn(&I) -> T + Sync) -> Vec<T> {
    map_numbers(items.len(), |number| map(&items[number]))
}

/// Calls `task` on all threads with each number below `count`. It is not generic, so that the loop of
/// rayon is compiled once and not for each type of result: it was a quarter of the code of `tensors`
/// that the compiler optimised.
fn for_each_number(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(task);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_everything_in_order() {
        let ranges = |len, range_len| map_ranges(len, range_len, |range| (range.start, range.end));
        assert_eq!(ranges(7, 3), [(0, 3), (3, 6), (6, 7)]);
        assert_eq!(ranges(6, 3), [(0, 3), (3, 6)]);
        assert_eq!(ranges(2, 3), [(0, 2)]);
        assert!(ranges(0, 3).is_empty());
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for len in [0, 1, MAX_TASKS, MAX_TASKS + 1, 10 * MAX_TASKS - 1] {
            let items: Vec<usize> = (0..len).collect();
            let expected: Vec<usize> = (0..len).map(|item| 2 * item).collect();
            assert_eq!(map_items(&items, |item| 2 * item), expected);
        }
    }
}
