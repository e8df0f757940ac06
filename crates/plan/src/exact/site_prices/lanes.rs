//! Numbers that are worked on in step.

/// How many numbers are worked on in step.
pub(in crate::exact) const LANES: usize = 8;

/// One number per order statistic, in blocks; those beyond the last are zero.
pub(in crate::exact) type Block = [f32; LANES];
