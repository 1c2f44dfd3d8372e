#include "libdtrain/cpu/direct_conv.h"

#include <algorithm>
#include <utility>

#include "libdtrain/cpu/onednn.h"
#include "libdtrain/cpu/onednn_run.h"
#include "libdtrain/cpu/parallel.h"

namespace dtrain::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Tag = memory::format_tag;

// pointwise: the data gradient of a 1x1 kernel, as the forward convolution with transposed filters that it is.
enum class Pass : int64_t { forward, dgrad, wgrad, pointwise };

struct Key {
  ConvShape shape;
  Pass pass;
  int64_t variant;  // forward: with bias; gradients: added
};

// One pass of one shape. The library chooses how it wants the filters, `repack` goes between that and KRSC.
struct Plan {
  OnednnPrimitive conv, repack, add;  // `add` to dx, where the data gradient is added
  memory::desc x, y, bias, plain, packed;
  bool repacks() const { return plain != packed; }
};

struct Geometry {
  memory::dims strides, dilations, pad_low, pad_high;
  memory::desc x, y, bias, plain, any;  // filters: KRSC, and as the library likes
};

Geometry geometry_of(const ConvShape& o) {
  const memory::data_type f32 = memory::data_type::f32;
  Geometry g;
  g.strides = {o.stride_h, o.stride_w};
  g.dilations = {o.dilation_h - 1, o.dilation_w - 1};
  g.pad_low = {o.pad_top, o.pad_left};
  g.pad_high = {o.pad_bottom, o.pad_right};
  g.x = memory::desc({o.n, o.c, o.h, o.w}, f32, Tag::nhwc);
  g.y = memory::desc({o.n, o.k, o.p, o.q}, f32, Tag::nhwc);
  g.bias = memory::desc({o.k}, f32, Tag::a);
  const bool grouped = o.groups > 1;
  const memory::dims filters =
      grouped ? memory::dims{o.groups, o.k / o.groups, o.c / o.groups, o.r, o.s} : memory::dims{o.k, o.c, o.r, o.s};
  g.plain = memory::desc(filters, f32, grouped ? Tag::gohwi : Tag::ohwi);
  g.any = memory::desc(filters, f32, Tag::any);
  return g;
}

dnnl::primitive_attr adding() {
  dnnl::post_ops sum;
  sum.append_sum(1.0f);
  dnnl::primitive_attr attributes = pooled_scratchpad();
  attributes.set_post_ops(sum);
  return attributes;
}

dnnl::convolution_forward::primitive_desc forward_desc(const Geometry& g, bool bias,
                                                       const dnnl::primitive_attr& attributes,
                                                       const dnnl::engine& engine) {
  using Forward = dnnl::convolution_forward;
  const auto kind = prop_kind::forward_training;
  const auto direct = algorithm::convolution_direct;
  const Forward::desc desc =
      bias ? Forward::desc(kind, direct, g.x, g.any, g.bias, g.y, g.strides, g.dilations, g.pad_low, g.pad_high)
           : Forward::desc(kind, direct, g.x, g.any, g.y, g.strides, g.dilations, g.pad_low, g.pad_high);
  return {desc, attributes, engine};
}

OnednnPrimitive reorder(const memory::desc& from, const memory::desc& to, bool add, const dnnl::engine& engine) {
  return onednn_primitive<dnnl::reorder>({engine, from, engine, to, add ? adding() : pooled_scratchpad()});
}

Plan make_plan(const Key& key, const dnnl::engine& engine) {
  const Geometry g = geometry_of(key.shape);
  const auto direct = algorithm::convolution_direct;
  Plan plan;
  plan.x = g.x, plan.y = g.y, plan.bias = g.bias, plan.plain = g.plain;
  switch (key.pass) {
    case Pass::forward:
    case Pass::pointwise: {
      const bool pointwise = key.pass == Pass::pointwise;
      if (pointwise) plan.plain = memory::desc(g.plain.dims(), memory::data_type::f32, Tag::ihwo);
      const auto attributes = pointwise && key.variant ? adding() : pooled_scratchpad();
      const auto desc = forward_desc(g, !pointwise && key.variant, attributes, engine);
      plan.conv = onednn_primitive<dnnl::convolution_forward>(desc);
      plan.packed = desc.weights_desc();
      break;
    }
    case Pass::dgrad: {
      using Dgrad = dnnl::convolution_backward_data;
      const Dgrad::primitive_desc desc({direct, g.x, g.any, g.y, g.strides, g.dilations, g.pad_low, g.pad_high},
                                       pooled_scratchpad(), engine,
                                       forward_desc(g, false, pooled_scratchpad(), engine));
      plan.conv = onednn_primitive<Dgrad>(desc);
      plan.packed = desc.weights_desc();
      if (key.variant) plan.add = reorder(g.x, g.x, true, engine);
      break;
    }
    case Pass::wgrad: {
      using Wgrad = dnnl::convolution_backward_weights;
      const Wgrad::primitive_desc desc({direct, g.x, g.any, g.y, g.strides, g.dilations, g.pad_low, g.pad_high},
                                       pooled_scratchpad(), engine,
                                       forward_desc(g, false, pooled_scratchpad(), engine));
      plan.conv = onednn_primitive<Wgrad>(desc);
      plan.packed = desc.diff_weights_desc();
      plan.repack = reorder(plan.packed, plan.plain, key.variant, engine);
      return plan;
    }
  }
  if (plan.repacks()) plan.repack = reorder(plan.plain, plan.packed, false, engine);
  return plan;
}

Plan& plan_of(Context& context, const ConvShape& shape, Pass pass, bool variant) {
  const Key key{shape, pass, variant};
  return context.primitives().get<Plan>(key, [&] {
    return translate_onednn_errors(concat("convolution of ", Shape{shape.n, shape.h, shape.w, shape.c}, " to ",
                                          Shape{shape.n, shape.p, shape.q, shape.k}),
                                   [&] { return make_plan(key, onednn(context).engine); });
  });
}

// The filters as the plan takes them: `w` itself, or repacked into memory that lives as long as this.
class PackedFilters {
 public:
  PackedFilters(Context& context, const Plan& plan, const float* w)
      : memory_(context, plan.repacks() ? static_cast<int64_t>(plan.packed.get_size()) : 0),
        data_(plan.repacks() ? memory_.data() : static_cast<const void*>(w)) {
    if (plan.repacks()) run(context, plan.repack, {{DNNL_ARG_FROM, plan.plain, w}, {DNNL_ARG_TO, plan.packed, data_}});
  }
  const void* data() const { return data_; }

 private:
  Scratch<char> memory_;
  const void* data_;
};

bool is_pointwise(const ConvShape& o) {
  return o.r == 1 && o.s == 1 && o.stride_h == 1 && o.stride_w == 1 && o.h == o.p && o.w == o.q && o.pad_top == 0 &&
         o.pad_left == 0 && o.groups == 1;
}

// Adds as it goes: in the blocks of a ResNet, which add it to the shortcut's gradient, that spares scratch memory of
// the size of dx and a pass over it. On AVX2 it is also the faster algorithm.
void pointwise_dgrad(Context& context, ConvShape shape, const float* dy, const float* w, float* dx, bool add) {
  std::swap(shape.c, shape.k);
  const Plan& plan = plan_of(context, shape, Pass::pointwise, add);
  const PackedFilters filters(context, plan, w);
  run(context, plan.conv,
      {{DNNL_ARG_SRC, plan.x, dy}, {DNNL_ARG_WEIGHTS, plan.packed, filters.data()}, {DNNL_ARG_DST, plan.y, dx}});
}

// Whether the filters' gradient is a product of two tall matrices, many pixels by few channels: oneDNN's sgemm is then
// the faster one.
bool is_tall_product(const ConvShape& o) {
  return is_pointwise(o) && o.c * o.k <= 65536 && o.n * o.p * o.q >= 16 * std::max(o.c, o.k);
}

}  // namespace

void direct_conv(Context& context, const ConvShape& shape, const float* x, const float* w, const float* bias,
                 float* y) {
  const Plan& plan = plan_of(context, shape, Pass::forward, bias != nullptr);
  const PackedFilters filters(context, plan, w);
  const OnednnArgument source{DNNL_ARG_SRC, plan.x, x}, weights{DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
      destination{DNNL_ARG_DST, plan.y, y};
  if (bias)
    run(context, plan.conv, {source, weights, {DNNL_ARG_BIAS, plan.bias, bias}, destination});
  else
    run(context, plan.conv, {source, weights, destination});
}

void direct_conv_dgrad(Context& context, const ConvShape& shape, const float* dy, const float* w, float* dx, bool add) {
  if (is_pointwise(shape)) return pointwise_dgrad(context, shape, dy, w, dx, add);
  const Plan& plan = plan_of(context, shape, Pass::dgrad, add);
  const PackedFilters filters(context, plan, w);
  const Scratch<char> fresh(context, add ? static_cast<int64_t>(plan.x.get_size()) : 0);
  run(context, plan.conv,
      {{DNNL_ARG_DIFF_DST, plan.y, dy},
       {DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
       {DNNL_ARG_DIFF_SRC, plan.x, add ? static_cast<const void*>(fresh.data()) : dx}});
  if (add) run(context, plan.add, {{DNNL_ARG_FROM, plan.x, fresh.data()}, {DNNL_ARG_TO, plan.x, dx}});
}

void direct_conv_wgrad(Context& context, const ConvShape& shape, const float* x, const float* dy, float* dw, bool add) {
  if (is_tall_product(shape))
    return multiply(context, shape.k, shape.c, shape.n * shape.p * shape.q, {'T', dy, shape.k}, {'N', x, shape.c}, add,
                    dw, shape.c);
  const Plan& plan = plan_of(context, shape, Pass::wgrad, add);
  const bool direct = !add && !plan.repacks();
  const Scratch<char> packed(context, direct ? 0 : static_cast<int64_t>(plan.packed.get_size()));
  run(context, plan.conv,
      {{DNNL_ARG_SRC, plan.x, x},
       {DNNL_ARG_DIFF_DST, plan.y, dy},
       {DNNL_ARG_DIFF_WEIGHTS, plan.packed, direct ? static_cast<const void*>(dw) : packed.data()}});
  if (!direct) run(context, plan.repack, {{DNNL_ARG_FROM, plan.packed, packed.data()}, {DNNL_ARG_TO, plan.plain, dw}});
}

}  // namespace dtrain::cpu
