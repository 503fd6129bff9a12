//! Random numbers of a request: xoshiro256++ (Blackman and Vigna, 2019), its state filled by SplitMix64.
//!
//! Own code because the sequence of numbers is part of the contract: the same seed gives the same text in every
//! release, which a library's choice of generator would not promise. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A generator owned by one sequence; one draw a token, so what else is served cannot shift it.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seed = seed;
        Self {
            state: std::array::from_fn(|_| split_mix(&mut seed)),
        }
    }

    /// A seed nobody can foresee, from the keys of the standard library's hash maps.
    pub(crate) fn fresh_seed() -> u64 {
        RandomState::new().build_hasher().finish()
    }

    fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Uniform in `0.0..1.0`, with 53 random bits.
    pub(crate) fn next_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// SplitMix64: one step of the seed, one number out.
fn split_mix(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64's first numbers for seed 1234567, as its reference implementation gives them.
    #[test]
    fn split_mix_matches_its_reference() {
        let mut seed = 1_234_567;
        let numbers: [u64; 3] = std::array::from_fn(|_| split_mix(&mut seed));
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    /// xoshiro256++'s first numbers for the state 1, 2, 3, 4, as its reference implementation gives them.
    #[test]
    fn xoshiro_matches_its_reference() {
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let numbers: [u64; 4] = std::array::from_fn(|_| random.next_u64());
        assert_eq!(
            numbers,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn unit_numbers_are_even_and_seeds_matter() {
        let mut random = Random::new(7);
        let mean = (0..10_000).map(|_| random.next_unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert_ne!(Random::new(1).next_u64(), Random::new(2).next_u64());
        assert_ne!(Random::fresh_seed(), Random::fresh_seed());
    }
}
