// CPU and CUDA kernels of dtrain/ops/match_boxes.h.
#pragma once

#include "dtrain/ops/match_boxes.h"

namespace dtrain {

namespace cpu {
void match_boxes(Context&, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions&, const Tensor& matched);
void sample_matches(Context&, const SampleOptions&, const Tensor& matched);
}  // namespace cpu

namespace cuda {
decltype(cpu::match_boxes) match_boxes;
decltype(cpu::sample_matches) sample_matches;
}  // namespace cuda

}  // namespace dtrain
