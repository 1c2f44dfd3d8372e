// Compute copies of weights: conversion to 16 bits and channel padding. No gradients.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// y = x rounded to nearest even; x f32, y f32, bf16 or f16 of the same shape.
void round_values(Context& context, const Tensor& x, const Tensor& y);
// Also pads channels with zeros: filters x [k, r, s, c] -> y [k, r, s, c'], c' >= c.
void pad_channels(Context& context, const Tensor& x, const Tensor& y);

namespace cpu {
void round_values(Context&, const Tensor& x, const Tensor& y);
void pad_channels(Context&, const Tensor& x, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::round_values) round_values;
decltype(cpu::pad_channels) pad_channels;
}  // namespace cuda

}  // namespace dtrain
