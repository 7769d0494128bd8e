//! Vectorised search for the offsets at which a significant line may begin. All other lines are
//! skipped.

/// Bytes per block of text: one per bit of a word.
const BLOCK_BYTES: usize = u64::BITS as usize;

/// Blocks that are searched before their first mark is returned. Records are parsed between two
/// windows, so that the search itself is a loop without branches.
const WINDOW_BLOCKS: usize = 16;

const WINDOW_BYTES: usize = WINDOW_BLOCKS * BLOCK_BYTES;

/// A window of text, and the byte after it.
type TextWindow = [u8; WINDOW_BYTES + 1];

/// Offsets in a text at which a line that may begin or end a record starts. After a line feed, such
/// a line starts with a digit, a dot, or the bracket of a ClassAd. After a NUL, it starts with 0 or
/// 1, because crashed file systems leave runs of NULs before the next record.
pub(super) struct LineMarks<'a> {
    text: &'a [u8],
    /// Offset of the next window.
    next_window: usize,
    /// One bit per byte of the window that may precede a mark.
    window: [u64; WINDOW_BLOCKS],
    /// Index of the next block in the window.
    next_block: usize,
    /// Remaining bits of the block before `next_block`.
    candidates: u64,
}

impl<'a> LineMarks<'a> {
    /// Creates an iterator over the marks of `text` after the byte `from`.
    pub(super) fn new(text: &'a [u8], from: usize) -> LineMarks<'a> {
        LineMarks {
            text,
            next_window: from,
            window: [0; WINDOW_BLOCKS],
            next_block: WINDOW_BLOCKS,
            candidates: 0,
        }
    }

    /// Searches the next window. Returns `None` at the end of the text.
    #[inline(never)]
    fn search_window(&mut self) -> Option<()> {
        let rest = self
            .text
            .get(self.next_window..)
            .filter(|rest| !rest.is_empty())?;
        self.window = match rest.first_chunk() {
            Some(window) => candidate_bits(window),
            None => candidate_bits(&padded_window(rest)),
        };
        self.next_window += WINDOW_BYTES;
        self.next_block = 0;
        Some(())
    }
}

impl Iterator for LineMarks<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        loop {
            // Most blocks have no candidate: significant lines are a few hundred bytes apart.
            while self.candidates == 0 {
                if self.next_block == WINDOW_BLOCKS {
                    self.search_window()?;
                }
                self.candidates = self.window[self.next_block];
                self.next_block += 1;
            }

            let block = self.next_window - (WINDOW_BLOCKS + 1 - self.next_block) * BLOCK_BYTES;
            let before = block + self.candidates.trailing_zeros() as usize;
            // This clears the lowest bit.
            self.candidates &= self.candidates - 1;
            if is_mark(&self.text[before..]) {
                return Some(before + 1);
            }
        }
    }
}

/// Pads the last window of a text. The padding is not a mark.
#[cold]
fn padded_window(rest: &[u8]) -> TextWindow {
    let mut window = [b'x'; WINDOW_BYTES + 1];
    window[..rest.len()].copy_from_slice(rest);
    window
}

/// Returns true if the byte at the start of `text` precedes a mark.
fn is_mark(text: &[u8]) -> bool {
    matches!(
        text,
        [b'\n', b'0'..=b'9' | b'.' | b'{' | b'<', ..] | [0, b'0' | b'1', ..]
    )
}

/// Returns one bit per byte of the window that may precede a mark. A few other bytes pass as well;
/// [`is_mark`] rejects them later.
fn candidate_bits(window: &TextWindow) -> [u64; WINDOW_BLOCKS] {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return simd.vectorize(Avx512Search { simd, window });
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return simd.vectorize(Avx2Search { simd, window });
        }
    }
    baseline_bits(window)
}

/// Portable version of [`candidate_bits`]. The compiler vectorises its loop over bytes for the
/// baseline processor.
fn baseline_bits(window: &TextWindow) -> [u64; WINDOW_BLOCKS] {
    bits_by_chunk(
        window,
        |before: [u8; BLOCK_BYTES], first: [u8; BLOCK_BYTES]| {
            // The byte before a mark is a line feed or a NUL, so it has no other bits than a line
            // feed. A mark is a byte from `.` to `<`, or `{`, which is such a byte plus the bit
            // 0x40. A few more bytes pass, but the search needs only two comparisons.
            let mut passes = [0; BLOCK_BYTES];
            for at in 0..BLOCK_BYTES {
                let ends = before[at] & !b'\n' == 0;
                let begins = (first[at] & !0x40).wrapping_sub(b'.') <= b'<' - b'.';
                passes[at] = u8::from(ends & begins);
            }
            gather_bits(passes)
        },
    )
}

/// Collects the lowest bit of each byte in a word.
#[inline(always)]
fn gather_bits(bytes: [u8; BLOCK_BYTES]) -> u64 {
    // Eight bytes are a number with relevant bits 0, 8, 16 and so on. The product with the sum of
    // 2^(56 - 7 i) moves bit 8 i to bit 56 + i, and no other product reaches these bits.
    const GATHER_FACTOR: u64 = 0x0102_0408_1020_4080;
    let (parts, _) = bytes.as_chunks::<8>();
    let mut word = 0;
    for (place, part) in parts.iter().enumerate() {
        let gathered = u64::from_le_bytes(*part).wrapping_mul(GATHER_FACTOR) >> 56;
        word |= gathered << (8 * place);
    }
    word
}

/// Version of [`candidate_bits`] for AVX2.
#[cfg(target_arch = "x86_64")]
struct Avx2Search<'a> {
    simd: pulp::x86::V3,
    window: &'a TextWindow,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Avx2Search<'_> {
    type Output = [u64; WINDOW_BLOCKS];

    #[inline(always)]
    fn call(self) -> Self::Output {
        let pulp::x86::V3 { avx, avx2, .. } = self.simd;
        let splat = |byte: u8| avx._mm256_set1_epi8(byte.cast_signed());

        // AVX2 has no comparison of unsigned bytes. A byte is at most the limit if it equals its
        // minimum with the limit.
        bits_by_chunk(self.window, |before: [u8; 32], first: [u8; 32]| {
            let before = pulp::cast(before);
            let first = pulp::cast(first);
            let ends =
                avx2._mm256_cmpeq_epi8(avx2._mm256_and_si256(before, splat(!b'\n')), splat(0));
            let past_dot =
                avx2._mm256_sub_epi8(avx2._mm256_and_si256(first, splat(!0x40)), splat(b'.'));
            let begins = avx2
                ._mm256_cmpeq_epi8(avx2._mm256_min_epu8(past_dot, splat(b'<' - b'.')), past_dot);
            u64::from(
                avx2._mm256_movemask_epi8(avx2._mm256_and_si256(ends, begins))
                    .cast_unsigned(),
            )
        })
    }
}

/// Version of [`candidate_bits`] for AVX-512, which compares unsigned bytes to one bit each.
#[cfg(target_arch = "x86_64")]
struct Avx512Search<'a> {
    simd: pulp::x86::V4,
    window: &'a TextWindow,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Avx512Search<'_> {
    type Output = [u64; WINDOW_BLOCKS];

    #[inline(always)]
    fn call(self) -> Self::Output {
        let pulp::x86::V4 {
            avx512f, avx512bw, ..
        } = self.simd;
        let splat = |byte: u8| avx512f._mm512_set1_epi8(byte.cast_signed());

        bits_by_chunk(self.window, |before: [u8; 64], first: [u8; 64]| {
            let ends = avx512bw._mm512_testn_epi8_mask(pulp::cast(before), splat(!b'\n'));
            let first = avx512f._mm512_and_si512(pulp::cast(first), splat(!0x40));
            let past_dot = avx512bw._mm512_sub_epi8(first, splat(b'.'));
            avx512bw._mm512_mask_cmple_epu8_mask(ends, past_dot, splat(b'<' - b'.'))
        })
    }
}

/// Calls `bits` on chunks of `N` bytes and combines the results into the words of the window.
/// `bits` gets the bytes before possible marks, and the bytes that follow them.
#[inline(always)]
fn bits_by_chunk<const N: usize>(
    window: &TextWindow,
    bits: impl Fn([u8; N], [u8; N]) -> u64,
) -> [u64; WINDOW_BLOCKS] {
    let part = |at: usize| window[at..at + N].try_into().expect("N bytes");
    std::array::from_fn(|block| {
        let start = block * BLOCK_BYTES;
        let parts = (0..BLOCK_BYTES).step_by(N);
        parts.fold(0, |word, at| {
            word | bits(part(start + at), part(start + at + 1)) << at
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_are_found_at_every_offset(
            text in proptest::collection::vec(proptest::sample::select(&b"019.{</x;\n\x0b\0"[..]), 0..3000),
            from in 0usize..3010,
        ) {
            let expected: Vec<usize> = (from + 1..text.len()).filter(|at| is_mark(&text[at - 1..])).collect();
            prop_assert_eq!(LineMarks::new(&text, from).collect::<Vec<_>>(), expected);
        }
    }

    /// Returns the bits for each vector width that this processor supports.
    fn bits_at_all_widths(window: &TextWindow) -> Vec<[u64; WINDOW_BLOCKS]> {
        let mut found = vec![baseline_bits(window)];
        #[cfg(target_arch = "x86_64")]
        {
            let narrow = pulp::x86::V3::try_new();
            found.extend(narrow.map(|simd| simd.vectorize(Avx2Search { simd, window })));
            let wide = pulp::x86::V4::try_new();
            found.extend(wide.map(|simd| simd.vectorize(Avx512Search { simd, window })));
        }
        found
    }

    proptest! {
        #[test]
        fn all_vector_widths_find_the_same_bits(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"\n\0\x0b\x0a./09<=;{|nlL\x80\xff"[..])], WINDOW_BYTES + 1),
        ) {
            let window = bytes.try_into().expect("a window");
            let found = bits_at_all_widths(&window);
            prop_assert!(found.iter().all(|bits| *bits == found[0]));
        }
    }

    #[test]
    fn each_mark_sets_its_own_bit() {
        for at in 0..WINDOW_BYTES {
            let mut window = [b'x'; WINDOW_BYTES + 1];
            (window[at], window[at + 1]) = (b'\n', b'.');
            let mut expected = [0; WINDOW_BLOCKS];
            expected[at / BLOCK_BYTES] = 1 << (at % BLOCK_BYTES);
            for found in bits_at_all_widths(&window) {
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn all_vector_widths_agree_on_every_byte_pair() {
        for before in 0..=u8::MAX {
            let mut window = [b'x'; WINDOW_BYTES + 1];
            for (first, pair) in (0..=u8::MAX).zip(window.chunks_exact_mut(2)) {
                pair.copy_from_slice(&[before, first]);
            }
            let found = bits_at_all_widths(&window);
            assert!(found.iter().all(|bits| *bits == found[0]), "{before}");
        }
    }
}
