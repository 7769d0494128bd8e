//! Conservative backfill: reserves for each waiting job the earliest slots with enough free nodes.
//! Jobs whose first slot is the current one start.

/// A segment of the plan: consecutive slots with the same number of free nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlanSegment {
    /// The slot after the last one of the segment.
    end: u32,
    free: i32,
}

/// Number of free nodes in each slot from now on.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotPlan {
    /// The segments, in order, up to the end of the plan. They are far fewer than the slots.
    stretches: Vec<PlanSegment>,
    /// Reused memory for the nodes that become free, by slot.
    freed: Vec<(u32, i32)>,
}

impl SlotPlan {
    /// Starts a new plan. `free` nodes are free now. Each item of `freed` is a delay in ticks, and
    /// the number of nodes that become free after it.
    pub(super) fn begin(
        &mut self,
        free: i64,
        slots: u32,
        slot: i64,
        freed: impl Iterator<Item = (i64, u32)>,
    ) {
        self.freed.clear();
        for (ticks, nodes) in freed {
            // A job beyond its limit may end at any time, but its nodes are not free now.
            let first = (ticks + slot - 1).div_euclid(slot).max(1);
            if first < i64::from(slots) {
                self.freed.push((first as u32, nodes as i32));
            }
        }
        self.freed.sort_unstable();

        self.stretches.clear();
        let mut free = free as i32;
        for (first, nodes) in &self.freed {
            let begun = self.stretches.last().map_or(0, |stretch| stretch.end);
            if *first > begun {
                self.stretches.push(PlanSegment { end: *first, free });
            }
            free += nodes;
        }
        self.stretches.push(PlanSegment { end: slots, free });
    }

    /// Returns the number of nodes that are free now and not reserved.
    pub(super) fn free_now(&self) -> i64 {
        i64::from(self.stretches[0].free)
    }

    /// Reserves `nodes` nodes for `length` slots, cut at the end of the plan. Returns the first
    /// slot, or `None` if there are never enough nodes.
    pub(super) fn reserve(&mut self, nodes: u32, length: u32) -> Option<u32> {
        let nodes = nodes as i32;
        let (first, place) = self.find_earliest(nodes, length)?;
        let slots = self.stretches[self.stretches.len() - 1].end;
        let end = first.saturating_add(length).min(slots);

        // If the reservation begins within the segment at `place`, split the segment there.
        let begun = place
            .checked_sub(1)
            .map_or(0, |before| self.stretches[before].end);
        let mut place = place;
        if begun < first {
            let free = self.stretches[place].free;
            self.stretches
                .insert(place, PlanSegment { end: first, free });
            place += 1;
        }
        loop {
            let stretch = self.stretches[place];
            if stretch.end > end {
                let free = stretch.free - nodes;
                self.stretches.insert(place, PlanSegment { end, free });
                return Some(first);
            }
            self.stretches[place].free -= nodes;
            if stretch.end == end {
                return Some(first);
            }
            place += 1;
        }
    }

    /// Finds the earliest fit. Returns its first slot, and the index of the segment that contains
    /// it.
    fn find_earliest(&self, nodes: i32, length: u32) -> Option<(u32, usize)> {
        let (mut first, mut first_place) = (0, 0);
        for (place, stretch) in self.stretches.iter().enumerate() {
            if stretch.free < nodes {
                first = stretch.end;
                first_place = place + 1;
            } else if stretch.end - first >= length {
                return Some((first, first_place));
            }
        }
        (first_place < self.stretches.len()).then_some((first, first_place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_get_the_earliest_slots_that_fit() {
        let mut plan = SlotPlan::default();
        // One node is free now, two more after 15 ticks, and one more after 40.
        plan.begin(1, 4, 10, [(15, 2), (40, 1)].into_iter());
        assert_eq!(plan.reserve(3, 1), Some(2));
        assert_eq!(plan.reserve(1, 2), Some(0));
        assert_eq!(plan.free_now(), 0);
        assert_eq!(plan.reserve(3, 9), Some(3), "cut at the end");
        assert_eq!(plan.reserve(4, 1), None);
        assert_eq!(plan.reserve(1, 1), None);
    }

    #[test]
    fn jobs_beyond_their_limit_still_hold_nodes() {
        let mut plan = SlotPlan::default();
        plan.begin(0, 3, 10, [(-25, 2)].into_iter());
        assert_eq!((plan.free_now(), plan.reserve(2, 1)), (0, Some(1)));
    }

    /// The reference is a plan that stores each slot separately.
    #[test]
    fn segments_agree_with_single_slots() {
        use rand::Rng as _;
        let mut random = poolcast_base::seed::generator(1, "plans", &[]);
        for _ in 0..200 {
            let freed: Vec<(i64, u32)> = (0..random.random_range(0..6))
                .map(|_| (random.random_range(-5..80), random.random_range(1..5)))
                .collect();
            let mut plan = SlotPlan::default();
            plan.begin(3, 6, 10, freed.iter().copied());
            let mut slots = [3i64; 6];
            for (ticks, nodes) in &freed {
                let first = (*ticks as f64 / 10.0).ceil().max(1.0) as usize;
                slots
                    .iter_mut()
                    .skip(first)
                    .for_each(|free| *free += i64::from(*nodes));
            }
            for _ in 0..8 {
                let (nodes, length) = (random.random_range(1..8u32), random.random_range(1..8));
                let fits = |first: &usize| {
                    let end = (first + length).min(6);
                    slots[*first..end]
                        .iter()
                        .all(|free| *free >= i64::from(nodes))
                };
                let first = (0..6).find(fits);
                assert_eq!(
                    plan.reserve(nodes, length as u32),
                    first.map(|first| first as u32)
                );
                if let Some(first) = first {
                    let end = (first + length).min(6);
                    slots[first..end]
                        .iter_mut()
                        .for_each(|free| *free -= i64::from(nodes));
                }
                assert_eq!(plan.free_now(), slots[0]);
            }
        }
    }
}
