#include "libdtrain/cpu/onednn/matmul.h"

#include <algorithm>

#include "libdtrain/cpu/onednn/primitive_cache.h"
#include "libdtrain/cpu/onednn/run.h"
#include "libdtrain/cpu/onednn/versions.h"

namespace dtrain::cpu {
namespace {

using dnnl::memory;

struct Key {
  OnednnMatmul shape;
  int64_t bias;
};

struct Plan {
  OnednnPrimitive matmul;
  memory::desc a, b, bias, c;
};

Plan make_plan(const Key& key, const dnnl::engine& engine) {
  const OnednnMatmul& o = key.shape;
  const auto bf16 = memory::data_type::bf16, f32 = memory::data_type::f32;
  const auto matrix = [](int64_t rows, int64_t columns, memory::data_type type, bool transposed) {
    const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
    return memory::desc(memory::dims{rows, columns}, type, strides);
  };
  Plan plan;
  plan.a = matrix(o.m, o.k, bf16, o.a_transposed);
  plan.b = matrix(o.k, o.n, bf16, o.b_transposed);
  plan.c = matrix(o.m, o.n, o.c_is_f32 ? f32 : bf16, false);
  plan.bias = matrix(1, o.n, f32, false);
  dnnl::primitive_attr attributes = pooled_scratchpad();
  if (o.add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const auto desc = key.bias ? onednn_description<dnnl::matmul>(engine, attributes, plan.a, plan.b, plan.bias, plan.c)
                             : onednn_description<dnnl::matmul>(engine, attributes, plan.a, plan.b, plan.c);
  plan.matmul = onednn_primitive<dnnl::matmul>(desc);
  return plan;
}

}  // namespace

void onednn_matmul(Context& context, const OnednnMatmul& o, const float* a, const float* b, const float* bias,
                   float* c) {
  if (bias)
    for (int64_t row = 0; row < o.m; ++row) std::copy_n(bias, o.n, c + row * o.n);
  sgemm(context, o.m, o.n, o.k, {o.a_transposed ? 'T' : 'N', a, o.a_transposed ? o.m : o.k},
        {o.b_transposed ? 'T' : 'N', b, o.b_transposed ? o.k : o.n}, bias || o.add, c, o.n);
}

void onednn_matmul(Context& context, const OnednnMatmul& o, const Bf16* a, const Bf16* b, const float* bias, void* c) {
  const Key key{o, bias != nullptr};
  const Plan& plan = context.primitives().get<Plan>(key, [&] {
    return translate_onednn_errors(concat("matrix product of ", Shape{o.m, o.k}, " and ", Shape{o.k, o.n}),
                                   [&] { return make_plan(key, onednn(context).engine); });
  });
  const OnednnArgument left{DNNL_ARG_SRC, plan.a, a}, right{DNNL_ARG_WEIGHTS, plan.b, b}, to{DNNL_ARG_DST, plan.c, c};
  if (bias)
    run(context, plan.matmul, {left, right, {DNNL_ARG_BIAS, plan.bias, bias}, to});
  else
    run(context, plan.matmul, {left, right, to});
}

}  // namespace dtrain::cpu
