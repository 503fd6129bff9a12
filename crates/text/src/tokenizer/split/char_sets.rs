//! Sets of characters that the published rules of some models spell out as ranges.

/// Inclusive ranges in ascending order.
pub(super) type Ranges = &'static [(char, char)];

/// Whether a character lies in one of the ranges.
#[inline]
pub(super) fn contains(ranges: Ranges, c: char) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= c);
    after > 0 && ranges.get(after - 1).is_some_and(|(_, last)| c <= *last)
}

/// Ideographs and kana.
pub(super) const HAN_AND_KANA: Ranges = &[('\u{3040}', '\u{30ff}'), ('\u{4e00}', '\u{9fa5}')];

/// "CJK" of the first DeepSeek models: in fact everything from U+0800 to the ideographs, and Hangul.
pub(super) const DEEPSEEK_CJK: Ranges = &[('\u{800}', '\u{9fa5}'), ('\u{ac00}', '\u{d7ff}')];

/// Punctuation of DeepSeek LLM: ASCII (letters are cut off before), its full-width forms, quotation marks.
pub(super) const DEEPSEEK_PUNCTUATION: Ranges = &[
    ('!', '/'),
    (':', '~'),
    ('\u{2018}', '\u{201f}'),
    ('\u{3000}', '\u{3002}'),
    ('\u{ff01}', '\u{ff0f}'),
    ('\u{ff1a}', '\u{ff5e}'),
];

/// Scripts that Trinity's rule keeps apart: ideographs, kana, Hangul, Thai, Lao, Khmer, Burmese. The range that
/// begins at U+8C48 was meant to be the compatibility ideographs; the rule in use has it so.
pub(super) const ASIAN_SCRIPTS: Ranges = &[
    ('\u{e40}', '\u{e7f}'),
    ('\u{e80}', '\u{eff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1100}', '\u{11ff}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{2f00}', '\u{2fdf}'),
    ('\u{3040}', '\u{30ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{d7ff}'),
    ('\u{e000}', '\u{faff}'),
    ('\u{ff65}', '\u{ff9f}'),
];

/// Hangul, as Youtu's rule has it.
pub(super) const HANGUL: Ranges = &[('\u{3131}', '\u{318e}'), ('\u{ac00}', '\u{d7a3}')];
/// Chinese punctuation, as Youtu's rule has it.
pub(super) const CHINESE_PUNCTUATION: Ranges = &[
    ('\u{2014}', '\u{2014}'),
    ('\u{2018}', '\u{2019}'),
    ('\u{201c}', '\u{201d}'),
    ('\u{2026}', '\u{2026}'),
    ('\u{3001}', '\u{303f}'),
    ('\u{fe30}', '\u{fe4f}'),
    ('\u{ff01}', '\u{ff01}'),
    ('\u{ff0c}', '\u{ff0c}'),
    ('\u{ff1a}', '\u{ff1b}'),
];
/// Bopomofo, as Youtu's rule has it.
pub(super) const BOPOMOFO: Ranges = &[('\u{3105}', '\u{312f}')];

/// Letters of DeepSeek LLM: those that had a case when its rule was written.
pub(super) const DEEPSEEK_LETTERS: Ranges = &[
    ('\u{41}', '\u{5a}'),
    ('\u{61}', '\u{7a}'),
    ('\u{b5}', '\u{b5}'),
    ('\u{c0}', '\u{d6}'),
    ('\u{d8}', '\u{f6}'),
    ('\u{f8}', '\u{1ba}'),
    ('\u{1bc}', '\u{1bf}'),
    ('\u{1c4}', '\u{293}'),
    ('\u{295}', '\u{2af}'),
    ('\u{370}', '\u{373}'),
    ('\u{376}', '\u{377}'),
    ('\u{37b}', '\u{37d}'),
    ('\u{37f}', '\u{37f}'),
    ('\u{386}', '\u{386}'),
    ('\u{388}', '\u{38a}'),
    ('\u{38c}', '\u{38c}'),
    ('\u{38e}', '\u{3a1}'),
    ('\u{3a3}', '\u{3f5}'),
    ('\u{3f7}', '\u{481}'),
    ('\u{48a}', '\u{52f}'),
    ('\u{531}', '\u{556}'),
    ('\u{10a0}', '\u{10c5}'),
    ('\u{13a0}', '\u{13f5}'),
    ('\u{13f8}', '\u{13fd}'),
    ('\u{1c90}', '\u{1cba}'),
    ('\u{1cbd}', '\u{1cbf}'),
    ('\u{1d00}', '\u{1d2b}'),
    ('\u{1d6b}', '\u{1d77}'),
    ('\u{1d79}', '\u{1d9a}'),
    ('\u{1e00}', '\u{1f15}'),
    ('\u{1f18}', '\u{1f1d}'),
    ('\u{1f20}', '\u{1f45}'),
    ('\u{1f48}', '\u{1f4d}'),
    ('\u{1f50}', '\u{1f57}'),
    ('\u{1f59}', '\u{1f59}'),
    ('\u{1f5b}', '\u{1f5b}'),
    ('\u{1f5d}', '\u{1f5d}'),
    ('\u{1f5f}', '\u{1f7d}'),
    ('\u{1f80}', '\u{1fb4}'),
    ('\u{1fb6}', '\u{1fbc}'),
    ('\u{1fbe}', '\u{1fbe}'),
    ('\u{1fc2}', '\u{1fc4}'),
    ('\u{1fc6}', '\u{1fcc}'),
    ('\u{1fd0}', '\u{1fd3}'),
    ('\u{1fd6}', '\u{1fdb}'),
    ('\u{1fe0}', '\u{1fec}'),
    ('\u{1ff2}', '\u{1ff4}'),
    ('\u{1ff6}', '\u{1ffc}'),
    ('\u{2102}', '\u{2102}'),
    ('\u{2107}', '\u{2107}'),
    ('\u{210a}', '\u{2113}'),
    ('\u{2115}', '\u{2115}'),
    ('\u{2119}', '\u{211d}'),
    ('\u{2124}', '\u{2124}'),
    ('\u{2126}', '\u{2126}'),
    ('\u{2128}', '\u{2128}'),
    ('\u{212a}', '\u{212d}'),
    ('\u{212f}', '\u{2134}'),
    ('\u{2139}', '\u{2139}'),
    ('\u{213c}', '\u{213f}'),
    ('\u{2145}', '\u{2149}'),
    ('\u{214e}', '\u{214e}'),
    ('\u{2183}', '\u{2184}'),
    ('\u{2c00}', '\u{2c7b}'),
    ('\u{2c7e}', '\u{2ce4}'),
    ('\u{2ceb}', '\u{2cee}'),
    ('\u{2cf2}', '\u{2cf3}'),
    ('\u{a640}', '\u{a66d}'),
    ('\u{a680}', '\u{a69b}'),
    ('\u{a722}', '\u{a76f}'),
    ('\u{a771}', '\u{a787}'),
    ('\u{a78b}', '\u{a78e}'),
    ('\u{ab70}', '\u{abbf}'),
    ('\u{fb00}', '\u{fb06}'),
    ('\u{fb13}', '\u{fb17}'),
    ('\u{ff21}', '\u{ff3a}'),
    ('\u{ff41}', '\u{ff5a}'),
    ('\u{10400}', '\u{1044f}'),
    ('\u{104b0}', '\u{104d3}'),
    ('\u{104d8}', '\u{104fb}'),
    ('\u{10c80}', '\u{10cb2}'),
    ('\u{10cc0}', '\u{10cf2}'),
    ('\u{118a0}', '\u{118df}'),
    ('\u{1e900}', '\u{1e943}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_ascend() {
        for ranges in [
            HAN_AND_KANA,
            DEEPSEEK_CJK,
            DEEPSEEK_PUNCTUATION,
            ASIAN_SCRIPTS,
            HANGUL,
            CHINESE_PUNCTUATION,
            BOPOMOFO,
            DEEPSEEK_LETTERS,
        ] {
            for (first, last) in ranges {
                assert!(first <= last, "{first:?}");
            }
            for pair in ranges.windows(2) {
                assert!(pair[0].1 < pair[1].0, "{pair:?}");
            }
        }
    }

    #[test]
    fn contains_looks_at_both_ends() {
        for (c, expected) in [
            ('\u{303f}', false),
            ('\u{3040}', true),
            ('\u{30ff}', true),
            ('\u{3100}', false),
        ] {
            assert_eq!(contains(HAN_AND_KANA, c), expected, "{c:?}");
        }
        assert!(contains(DEEPSEEK_LETTERS, 'µ') && !contains(DEEPSEEK_LETTERS, 'ƻ'));
    }
}
