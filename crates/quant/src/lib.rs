//! GGUF block formats as plain data: their layout ([`blocks`]), scalar [`dequantize`] and [`quantize`].
//!
//! This is the reference that every kernel is held to: plain loops, one rounding per operation, results equal to
//! the bit on every machine.

pub mod blocks;
mod error;
mod float;
mod iq4;
mod k_affine;
mod k_symmetric;
mod legacy;
mod search;

use bytemuck::Pod;
use dynalm_gguf::GgmlType;

pub use blocks::KVALUES_IQ4NL;
pub use error::QuantError;

/// The types that can be dequantized and quantized.
pub const SUPPORTED: &[GgmlType] = &[
    GgmlType::F32,
    GgmlType::F16,
    GgmlType::BF16,
    GgmlType::Q4_0,
    GgmlType::Q4_1,
    GgmlType::Q5_0,
    GgmlType::Q5_1,
    GgmlType::Q8_0,
    GgmlType::Q2_K,
    GgmlType::Q3_K,
    GgmlType::Q4_K,
    GgmlType::Q5_K,
    GgmlType::Q6_K,
    GgmlType::IQ4_NL,
    GgmlType::IQ4_XS,
];

/// True for the types in [`SUPPORTED`].
#[must_use]
pub fn is_supported(ggml_type: GgmlType) -> bool {
    SUPPORTED.contains(&ggml_type)
}

/// Expands any whole number of blocks into f32. The bytes need no alignment.
///
/// # Errors
/// If the type is not supported, or `out` is not exactly as long as the blocks in `bytes`.
pub fn dequantize(ggml_type: GgmlType, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    let codec = codec(ggml_type)?;
    if !bytes.len().is_multiple_of(codec.block_bytes) {
        return Err(QuantError::PartialBlock {
            len: bytes.len(),
            block: codec.block_bytes,
            unit: "bytes",
        });
    }
    if bytes.len() / codec.block_bytes * codec.block_len != out.len() {
        return Err(QuantError::LengthMismatch {
            ggml_type,
            n_values: out.len(),
            n_bytes: bytes.len(),
        });
    }
    (codec.dequantize)(bytes, out);
    Ok(())
}

/// Packs values into blocks, choosing scales by searching for the least (weighted) squared error.
///
/// Scales are f16: values over some 65504 times the format's largest integer saturate, and blocks of values
/// under some 1e-8 become zeros. Plain number types round to nearest, ties to even.
///
/// # Errors
/// If the type is not supported, the values are not a whole number of blocks, or one of them is not finite
/// (plain number types take those).
pub fn quantize(ggml_type: GgmlType, values: &[f32]) -> Result<Vec<u8>, QuantError> {
    let codec = codec(ggml_type)?;
    if !values.len().is_multiple_of(codec.block_len) {
        return Err(QuantError::PartialBlock {
            len: values.len(),
            block: codec.block_len,
            unit: "values",
        });
    }
    if codec.block_len > 1
        && let Some(index) = values.iter().position(|v| !v.is_finite())
    {
        return Err(QuantError::NotFinite { ggml_type, index });
    }
    let mut bytes = Vec::with_capacity(values.len() / codec.block_len * codec.block_bytes);
    (codec.quantize)(values, &mut bytes);
    Ok(bytes)
}

/// One format's conversions of a single block; `values` has [`LEN`](Self::LEN) elements.
trait Block: Pod {
    /// Elements in a block.
    const LEN: usize;

    fn dequantize(&self, values: &mut [f32]);

    fn quantize(values: &[f32]) -> Self;
}

/// The conversions of one type.
struct Codec {
    block_len: usize,
    block_bytes: usize,
    dequantize: fn(&[u8], &mut [f32]),
    quantize: fn(&[f32], &mut Vec<u8>),
}

impl Codec {
    const fn of<B: Block>() -> Self {
        Self {
            block_len: B::LEN,
            block_bytes: size_of::<B>(),
            dequantize: dequantize_blocks::<B>,
            quantize: quantize_blocks::<B>,
        }
    }
}

fn dequantize_blocks<B: Block>(bytes: &[u8], out: &mut [f32]) {
    for (bytes, values) in bytes
        .chunks_exact(size_of::<B>())
        .zip(out.chunks_exact_mut(B::LEN))
    {
        bytemuck::pod_read_unaligned::<B>(bytes).dequantize(values);
    }
}

fn quantize_blocks<B: Block>(values: &[f32], out: &mut Vec<u8>) {
    for values in values.chunks_exact(B::LEN) {
        out.extend_from_slice(bytemuck::bytes_of(&B::quantize(values)));
    }
}

fn codec(ggml_type: GgmlType) -> Result<Codec, QuantError> {
    Ok(match ggml_type {
        GgmlType::F32 => Codec::of::<f32>(),
        GgmlType::F16 => Codec::of::<float::F16>(),
        GgmlType::BF16 => Codec::of::<float::Bf16>(),
        GgmlType::Q4_0 => Codec::of::<blocks::BlockQ4_0>(),
        GgmlType::Q4_1 => Codec::of::<blocks::BlockQ4_1>(),
        GgmlType::Q5_0 => Codec::of::<blocks::BlockQ5_0>(),
        GgmlType::Q5_1 => Codec::of::<blocks::BlockQ5_1>(),
        GgmlType::Q8_0 => Codec::of::<blocks::BlockQ8_0>(),
        GgmlType::Q2_K => Codec::of::<blocks::BlockQ2K>(),
        GgmlType::Q3_K => Codec::of::<blocks::BlockQ3K>(),
        GgmlType::Q4_K => Codec::of::<blocks::BlockQ4K>(),
        GgmlType::Q5_K => Codec::of::<blocks::BlockQ5K>(),
        GgmlType::Q6_K => Codec::of::<blocks::BlockQ6K>(),
        GgmlType::IQ4_NL => Codec::of::<blocks::BlockIQ4NL>(),
        GgmlType::IQ4_XS => Codec::of::<blocks::BlockIQ4XS>(),
        other => return Err(QuantError::Unsupported(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_agree_with_the_file_format_on_block_sizes() {
        for t in GgmlType::all() {
            match codec(t) {
                Ok(codec) => {
                    assert!(is_supported(t), "{t}");
                    assert_eq!(codec.block_len as u64, t.block_len(), "{t}");
                    assert_eq!(codec.block_bytes as u64, t.block_bytes(), "{t}");
                }
                Err(error) => {
                    assert!(!is_supported(t), "{t}");
                    assert_eq!(error, QuantError::Unsupported(t));
                }
            }
        }
    }

    #[test]
    fn lengths_must_fit() {
        let mut out = [0.0; 64];
        assert!(matches!(
            dequantize(GgmlType::Q4_0, &[0; 35], &mut out),
            Err(QuantError::PartialBlock { .. })
        ));
        assert!(matches!(
            dequantize(GgmlType::Q4_0, &[0; 18], &mut out),
            Err(QuantError::LengthMismatch { .. })
        ));
        assert_eq!(dequantize(GgmlType::Q4_0, &[0; 36], &mut out), Ok(()));
        assert_eq!(dequantize(GgmlType::Q4_K, &[], &mut []), Ok(()));
        assert!(matches!(
            quantize(GgmlType::Q4_K, &out),
            Err(QuantError::PartialBlock { .. })
        ));
    }

    #[test]
    fn values_that_are_not_finite_are_refused_by_index() {
        let mut values = [1.0; 64];
        values[40] = f32::NAN;
        let error = quantize(GgmlType::Q8_0, &values).unwrap_err();
        assert_eq!(
            error,
            QuantError::NotFinite {
                ggml_type: GgmlType::Q8_0,
                index: 40
            }
        );
        values[40] = f32::INFINITY;
        assert!(quantize(GgmlType::Q8_0, &values).is_err());
        assert!(quantize(GgmlType::F16, &values).is_ok());
    }
}
