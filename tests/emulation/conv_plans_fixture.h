// Fixture of ConvPlans tests: a context's plans and a convolution.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/cuda/kernels.cuh"
#include "tests/emulation/noted_cudnn.h"
#include "tests/testing.h"

namespace dtrain::cuda {

using noted::Library;

class ConvPlansTest : public testing::Test {
 protected:
  void SetUp() override {
    Library::get() = {};
    emulation::stop_clock();
  }

  void start(CudaOptions options = {}) {
    context_ = make_cuda_context(options);
    plans_ = std::make_unique<ConvPlans>(context_->runtime());
    x_ = context_->empty({8, 14, 14, 64}, DType::bf16);
    w_ = context_->empty({64, 3, 3, 64}, DType::bf16);
    y_ = context_->empty({8, 14, 14, 64}, DType::bf16);
    bias_ = context_->empty({64});
  }
  ConvProblem problem(ConvKind kind) const {
    ConvProblem o{};
    o.kind = kind;
    o.dtype = o.output_dtype = static_cast<int64_t>(DType::bf16);
    o.n = 8, o.h = o.w = o.p = o.q = 14, o.c = o.k = 64, o.r = o.s = 3;
    o.stride_h = o.stride_w = o.dilation_h = o.dilation_w = 1;
    o.pad_top = o.pad_bottom = o.pad_left = o.pad_right = 1;
    o.groups = 1, o.alignment = 16;
    return o;
  }
  ConvOperands operands() const { return {x_.raw(), w_.raw(), y_.raw()}; }
  ConvOperands operands_with_bias() const { return {x_.raw(), w_.raw(), y_.raw(), bias_.raw()}; }
  void run(ConvKind kind) { plans_->run(*context_, problem(kind), operands(), "test"); }
  static std::vector<std::string>& executed() { return Library::get().executed; }

  std::unique_ptr<Context> context_;
  std::unique_ptr<ConvPlans> plans_;
  Tensor x_, w_, y_, bias_;
};

}  // namespace dtrain::cuda
