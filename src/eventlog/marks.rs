//! Bytes → the places where a line that matters may begin. All other lines are never looked at.

use wide::u8x16;

/// How much text is searched at once: four vectors of the kind that every processor has.
const BLOCK_BYTES: usize = 64;

/// The places in a text where a line begins that can begin or end a record: after a line feed a digit, a dot, or the
/// bracket of a ClassAd; and a digit after a NUL, as crashed file systems leave runs of NULs before the next record.
pub(super) struct Marks<'a> {
    text: &'a [u8],
    block: usize,
    /// A bit for each byte of the block that may stand before a mark; those met already are gone.
    candidates: u64,
    next_block: usize,
}

impl<'a> Marks<'a> {
    /// The marks of `text` after the byte `from`.
    pub(super) fn new(text: &'a [u8], from: usize) -> Marks<'a> {
        Marks { text, block: from, candidates: 0, next_block: from }
    }
}

impl Iterator for Marks<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        loop {
            while self.candidates == 0 {
                let rest = self.text.get(self.next_block..).filter(|rest| !rest.is_empty())?;
                self.candidates = match rest.first_chunk() {
                    Some(window) => candidates(window),
                    None => candidates(&padded(rest)),
                };
                self.block = self.next_block;
                self.next_block += BLOCK_BYTES;
            }
            let before = self.block + self.candidates.trailing_zeros() as usize;
            self.candidates &= self.candidates - 1;
            if is_mark(&self.text[before..]) {
                return Some(before + 1);
            }
        }
    }
}

/// The last block of a text, with the byte that follows it; what is filled in is no mark.
#[cold]
fn padded(rest: &[u8]) -> [u8; BLOCK_BYTES + 1] {
    let mut window = [b'x'; BLOCK_BYTES + 1];
    window[..rest.len()].copy_from_slice(rest);
    window
}

fn is_mark(text: &[u8]) -> bool {
    matches!(text, [b'\n', b'0'..=b'9' | b'.' | b'{' | b'<', ..] | [0, b'0' | b'1', ..])
}

/// A bit for each byte of a block that may stand before a mark: few others pass, and they are told apart later.
#[inline(always)]
fn candidates(window: &[u8; BLOCK_BYTES + 1]) -> u64 {
    let passes: [u8x16; 4] = std::array::from_fn(|part| {
        let lanes = |at: usize| u8x16::new(window[at..at + 16].try_into().expect("16 bytes"));
        let (before, first) = (lanes(16 * part), lanes(16 * part + 1));
        let ends = (before & u8x16::splat(!b'\n')).simd_eq(u8x16::splat(0));
        let past_dot = (first & u8x16::splat(!0x40)) - u8x16::splat(b'.');
        let begins = past_dot.min(u8x16::splat(b'<' - b'.')).simd_eq(past_dot);
        ends & begins
    });
    if !passes.iter().fold(u8x16::splat(0), |any, pass| any | *pass).any() {
        return 0;
    }
    passes.iter().rev().fold(0, |bits, pass| bits << 16 | u64::from(pass.to_bitmask()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_are_found_wherever_they_stand(
            text in proptest::collection::vec(proptest::sample::select(&b"019.{</x;\n\x0b\0"[..]), 0..300),
            from in 0usize..310,
        ) {
            let expected: Vec<usize> = (from + 1..text.len()).filter(|at| is_mark(&text[at - 1..])).collect();
            prop_assert_eq!(Marks::new(&text, from).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn every_bit_has_its_place() {
        for at in 0..BLOCK_BYTES {
            let mut window = [b'x'; BLOCK_BYTES + 1];
            (window[at], window[at + 1]) = (b'\n', b'.');
            assert_eq!(candidates(&window), 1 << at);
        }
    }
}
