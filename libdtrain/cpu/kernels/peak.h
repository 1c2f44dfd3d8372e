// Peak arithmetic of a core: loops of multiply-adds in registers.
#pragma once

#include <cstdint>

namespace dtrain::cpu {

struct PeakKernels {
  // Runs `rounds` rounds and returns the number of operations; a multiply-add counts as two. `sink` takes the result,
  // so that the loop is not optimised away.
  double (*multiply_add)(int64_t rounds, float* sink);
  // Dot products of bf16 pairs. Capabilities::bf16 only.
  double (*multiply_add_pairs)(int64_t rounds, float* sink);
};

}  // namespace dtrain::cpu
