//! Bytes → the places where a line that matters may begin. All other lines are never looked at.

/// How much text is searched at once: a bit of a word for each byte.
const BLOCK_BYTES: usize = u64::BITS as usize;

/// How many blocks are searched before the first mark among them is handed on. Records are told
/// apart between two windows, so that the search itself is a loop without branches.
const WINDOW_BLOCKS: usize = 16;

const WINDOW_BYTES: usize = WINDOW_BLOCKS * BLOCK_BYTES;

/// A window of text, and the byte that follows it.
type TextWindow = [u8; WINDOW_BYTES + 1];

/// The places in a text where a line begins that can begin or end a record: after a line feed a
/// digit, a dot, or the bracket of a ClassAd; and a digit after a NUL, as crashed file systems
/// leave runs of NULs before the next record.
pub(super) struct LineMarks<'a> {
    text: &'a [u8],
    /// Where the next window begins.
    next_window: usize,
    /// A bit for each byte of a window that may stand before a mark.
    window: [u64; WINDOW_BLOCKS],
    /// The next block of the window.
    next_block: usize,
    /// The bits of the block before it, but for those met already.
    candidates: u64,
}

impl<'a> LineMarks<'a> {
    /// The marks of `text` after the byte `from`.
    pub(super) fn new(text: &'a [u8], from: usize) -> LineMarks<'a> {
        LineMarks {
            text,
            next_window: from,
            window: [0; WINDOW_BLOCKS],
            next_block: WINDOW_BLOCKS,
            candidates: 0,
        }
    }

    /// Searches the next window, if there is one.
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
            // Most blocks hold no candidate: lines that matter stand every few hundred bytes.
            while self.candidates == 0 {
                if self.next_block == WINDOW_BLOCKS {
                    self.search_window()?;
                }
                self.candidates = self.window[self.next_block];
                self.next_block += 1;
            }

            let block = self.next_window - (WINDOW_BLOCKS + 1 - self.next_block) * BLOCK_BYTES;
            let before = block + self.candidates.trailing_zeros() as usize;
            // This takes the lowest bit away.
            self.candidates &= self.candidates - 1;
            if is_mark(&self.text[before..]) {
                return Some(before + 1);
            }
        }
    }
}

/// The last window of a text. What is filled in is no mark.
#[cold]
fn padded_window(rest: &[u8]) -> TextWindow {
    let mut window = [b'x'; WINDOW_BYTES + 1];
    window[..rest.len()].copy_from_slice(rest);
    window
}

fn is_mark(text: &[u8]) -> bool {
    matches!(
        text,
        [b'\n', b'0'..=b'9' | b'.' | b'{' | b'<', ..] | [0, b'0' | b'1', ..]
    )
}

/// A bit for each byte of a window that may stand before a mark: few others pass, and they are told
/// apart later.
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

/// The same for any processor. The compiler makes vectors of the baseline of the loop over bytes.
fn baseline_bits(window: &TextWindow) -> [u64; WINDOW_BLOCKS] {
    bits_of_parts(
        window,
        |before: [u8; BLOCK_BYTES], first: [u8; BLOCK_BYTES]| {
            // Before a mark stands a line feed or a NUL: bytes without other bits than those of a line
            // feed. A mark is a byte from `.` to `<`, or `{`, which is one of these with the bit 0x40.
            // Some bytes more pass, but two comparisons are all that the search costs.
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

/// A word of the lowest bit of each byte.
#[inline(always)]
fn gather_bits(bytes: [u8; BLOCK_BYTES]) -> u64 {
    // Eight bytes are a number whose bits 0, 8, 16 and so on are of interest. Times the sum of
    // 2^(56 - 7 i), its bit 8 i comes to stand at 56 + i, and no other product reaches there.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (parts, _) = bytes.as_chunks::<8>();
    let mut word = 0;
    for (place, part) in parts.iter().enumerate() {
        let gathered = u64::from_le_bytes(*part).wrapping_mul(GATHER) >> 56;
        word |= gathered << (8 * place);
    }
    word
}

/// The same with AVX2.
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

        // There is no comparison of unsigned bytes: equal to its minimum with a limit is at most
        // the limit.
        bits_of_parts(self.window, |before: [u8; 32], first: [u8; 32]| {
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

/// The same with AVX-512, which compares unsigned bytes, to a bit for each.
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

        bits_of_parts(self.window, |before: [u8; 64], first: [u8; 64]| {
            let ends = avx512bw._mm512_testn_epi8_mask(pulp::cast(before), splat(!b'\n'));
            let first = avx512f._mm512_and_si512(pulp::cast(first), splat(!0x40));
            let past_dot = avx512bw._mm512_sub_epi8(first, splat(b'.'));
            avx512bw._mm512_mask_cmple_epu8_mask(ends, past_dot, splat(b'<' - b'.'))
        })
    }
}

/// The words of a window, whose parts of `N` bytes `bits` looks at: what may stand before a mark,
/// and what follows.
#[inline(always)]
fn bits_of_parts<const N: usize>(
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
        fn marks_are_found_wherever_they_stand(
            text in proptest::collection::vec(proptest::sample::select(&b"019.{</x;\n\x0b\0"[..]), 0..3000),
            from in 0usize..3010,
        ) {
            let expected: Vec<usize> = (from + 1..text.len()).filter(|at| is_mark(&text[at - 1..])).collect();
            prop_assert_eq!(LineMarks::new(&text, from).collect::<Vec<_>>(), expected);
        }
    }

    /// What vectors of each width find, as far as this processor has them.
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
        fn vectors_of_all_widths_find_the_same(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"\n\0\x0b\x0a./09<=;{|nlL\x80\xff"[..])], WINDOW_BYTES + 1),
        ) {
            let window = bytes.try_into().expect("a window");
            let found = bits_at_all_widths(&window);
            prop_assert!(found.iter().all(|bits| *bits == found[0]));
        }
    }

    #[test]
    fn every_bit_has_its_place() {
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
    fn every_pair_of_bytes_is_judged_alike_by_all_processors() {
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
