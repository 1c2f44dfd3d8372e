// What a core computes at most: loops of multiply-adds in registers.
#pragma once

#include <cstdint>

namespace dtrain::cpu {

struct PeakKernels {
  // Does `rounds` rounds and returns how many operations these were, a multiply-add counting twice. `sink` takes the
  // result, so that the loop is not left out.
  double (*multiply_add)(int64_t rounds, float* sink);
  // The same of pairs of bf16 whose products go into one sum; null where the instruction set has none.
  double (*multiply_add_pairs)(int64_t rounds, float* sink) = nullptr;
};

}  // namespace dtrain::cpu
