#include "libdtrain/cpu/conv/onednn.h"

#include <algorithm>
#include <utility>

#include "libdtrain/cpu/onednn/primitive_cache.h"
#include "libdtrain/cpu/onednn/run.h"
#include "libdtrain/cpu/onednn/versions.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

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
  int64_t dtype;    // of images and filters, f32 or bf16; bias and the filters' gradient are f32

  DType type() const { return static_cast<DType>(dtype); }
};

constexpr algorithm kDirect = algorithm::convolution_direct;

// One pass of one shape. oneDNN chooses the weight layout; `repack` reorders from KRSC to it or back.
struct Plan {
  OnednnPrimitive conv, repack, add;  // `add` to dx, where the data gradient is added
  memory::desc x, y, bias, plain, packed;
  bool repacks() const { return plain != packed; }
};

struct Geometry {
  memory::dims strides, dilations, pad_low, pad_high;
  memory::desc x, y, bias;
  memory::dims filters;
  memory::data_type images, weights;  // of x and y, and of the filters
  memory::desc plain, any;            // filters: KRSC, and as the library likes
};

Geometry geometry_of(const Key& key) {
  const ConvShape& o = key.shape;
  const memory::data_type f32 = memory::data_type::f32;
  Geometry g;
  g.images = key.type() == DType::bf16 ? memory::data_type::bf16 : f32;
  g.weights = key.pass == Pass::wgrad ? f32 : g.images;
  g.strides = {o.stride_h, o.stride_w};
  g.dilations = {o.dilation_h - 1, o.dilation_w - 1};
  g.pad_low = {o.pad_top, o.pad_left};
  g.pad_high = {o.pad_bottom, o.pad_right};
  g.x = memory::desc({o.n, o.c, o.h, o.w}, g.images, Tag::nhwc);
  g.y = memory::desc({o.n, o.k, o.p, o.q}, g.images, Tag::nhwc);
  g.bias = memory::desc({o.k}, f32, Tag::a);
  const bool grouped = o.groups > 1;
  g.filters =
      grouped ? memory::dims{o.groups, o.k / o.groups, o.c / o.groups, o.r, o.s} : memory::dims{o.k, o.c, o.r, o.s};
  g.plain = memory::desc(g.filters, g.weights, grouped ? Tag::gohwi : Tag::ohwi);
  g.any = memory::desc(g.filters, g.weights, Tag::any);
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
  const auto describe = [&](const auto&... operands) {
    return onednn_description<dnnl::convolution_forward>(engine, attributes, prop_kind::forward_training, kDirect,
                                                         operands..., g.strides, g.dilations, g.pad_low, g.pad_high);
  };
  return bias ? describe(g.x, g.any, g.bias, g.y) : describe(g.x, g.any, g.y);
}

// Of one of the two gradients. `forward`: that convolution, as a hint.
template <class Gradient>
typename Gradient::primitive_desc gradient_desc(const Geometry& g, const Geometry& forward,
                                                const dnnl::engine& engine) {
  return onednn_description_with_hint<Gradient>(engine, pooled_scratchpad(),
                                                forward_desc(forward, false, pooled_scratchpad(), engine), kDirect, g.x,
                                                g.any, g.y, g.strides, g.dilations, g.pad_low, g.pad_high);
}

// Whether the data gradient of a 1x1 kernel is added while it is computed: for f32 that spares a pass over memory. For
// bf16 oneDNN 2.6.3 then takes up to 2.6 times as long (56x56 pixels, 64 to 256 channels), and a pass costs less.
bool fuses_sum(DType dtype) { return dtype == DType::f32; }

OnednnPrimitive reorder(const memory::desc& from, const memory::desc& to, bool add, const dnnl::engine& engine) {
  return onednn_primitive<dnnl::reorder>({engine, from, engine, to, add ? adding() : pooled_scratchpad()});
}

Plan make_plan(const Key& key, const dnnl::engine& engine) {
  const Geometry g = geometry_of(key);
  Plan plan;
  plan.x = g.x, plan.y = g.y, plan.bias = g.bias, plan.plain = g.plain;
  switch (key.pass) {
    case Pass::forward:
    case Pass::pointwise: {
      const bool pointwise = key.pass == Pass::pointwise;
      if (pointwise) plan.plain = memory::desc(g.filters, g.weights, Tag::ihwo);
      const bool adds = pointwise && key.variant && fuses_sum(key.type());
      if (pointwise && key.variant && !adds) plan.add = reorder(g.y, g.y, true, engine);
      const auto attributes = adds ? adding() : pooled_scratchpad();
      const auto desc = forward_desc(g, !pointwise && key.variant, attributes, engine);
      plan.conv = onednn_primitive<dnnl::convolution_forward>(desc);
      plan.packed = desc.weights_desc();
      break;
    }
    case Pass::dgrad: {
      using Dgrad = dnnl::convolution_backward_data;
      const auto desc = gradient_desc<Dgrad>(g, g, engine);
      plan.conv = onednn_primitive<Dgrad>(desc);
      plan.packed = desc.weights_desc();
      if (key.variant) plan.add = reorder(g.x, g.x, true, engine);
      break;
    }
    case Pass::wgrad: {
      using Wgrad = dnnl::convolution_backward_weights;
      Geometry forward = g;  // its filters have the images' type
      forward.any = memory::desc(g.filters, g.images, Tag::any);
      const auto desc = gradient_desc<Wgrad>(g, forward, engine);
      plan.conv = onednn_primitive<Wgrad>(desc);
      plan.packed = desc.diff_weights_desc();
      plan.repack = reorder(plan.packed, plan.plain, key.variant, engine);
      return plan;
    }
  }
  if (plan.repacks()) plan.repack = reorder(plan.plain, plan.packed, false, engine);
  return plan;
}

Plan& plan_of(Context& context, const ConvShape& shape, Pass pass, int64_t variant, DType dtype) {
  const Key key{shape, pass, variant, static_cast<int64_t>(dtype)};
  return context.primitives().get<Plan>(key, [&] {
    return translate_onednn_errors(concat("convolution of ", Shape{shape.n, shape.h, shape.w, shape.c}, " to ",
                                          Shape{shape.n, shape.p, shape.q, shape.k}),
                                   [&] { return make_plan(key, onednn(context).engine); });
  });
}

// The filters as the plan takes them: `w` itself, or repacked into memory that lives as long as this.
class PackedFilters {
 public:
  PackedFilters(Context& context, const Plan& plan, const void* w)
      : memory_(context, plan.repacks() ? static_cast<int64_t>(plan.packed.get_size()) : 0),
        data_(plan.repacks() ? memory_.data() : w) {
    if (plan.repacks()) run(context, plan.repack, {{DNNL_ARG_FROM, plan.plain, w}, {DNNL_ARG_TO, plan.packed, data_}});
  }
  const void* data() const { return data_; }

 private:
  Scratch<char> memory_;
  const void* data_;
};

bool is_pointwise(const ConvShape& o) { return reads_pixels_in_order(o) && o.groups == 1; }

// On AVX2 this is the faster algorithm.
void pointwise_dgrad(Context& context, ConvShape shape, DType dtype, const void* dy, const void* w, void* dx,
                     bool add) {
  std::swap(shape.c, shape.k);
  const Plan& plan = plan_of(context, shape, Pass::pointwise, add, dtype);
  const PackedFilters filters(context, plan, w);
  const bool apart = add && !fuses_sum(dtype);
  const Scratch<char> fresh(context, apart ? static_cast<int64_t>(plan.y.get_size()) : 0);
  run(context, plan.conv,
      {{DNNL_ARG_SRC, plan.x, dy},
       {DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
       {DNNL_ARG_DST, plan.y, apart ? fresh.data() : dx}});
  if (apart) run(context, plan.add, {{DNNL_ARG_FROM, plan.y, fresh.data()}, {DNNL_ARG_TO, plan.y, dx}});
}

// Whether the filters' gradient is a product of two tall matrices, many pixels by few channels: oneDNN's sgemm is then
// the faster one.
bool is_tall_product(const ConvShape& o) {
  return is_pointwise(o) && o.c * o.k <= 65536 && o.n * o.p * o.q >= 16 * std::max(o.c, o.k);
}

}  // namespace

void onednn_conv(Context& context, const ConvShape& shape, DType dtype, const void* x, const void* w, const float* bias,
                 void* y) {
  const Plan& plan = plan_of(context, shape, Pass::forward, bias != nullptr, dtype);
  const PackedFilters filters(context, plan, w);
  const OnednnArgument source{DNNL_ARG_SRC, plan.x, x}, weights{DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
      destination{DNNL_ARG_DST, plan.y, y};
  if (bias)
    run(context, plan.conv, {source, weights, {DNNL_ARG_BIAS, plan.bias, bias}, destination});
  else
    run(context, plan.conv, {source, weights, destination});
}

void onednn_dgrad(Context& context, const ConvShape& shape, DType dtype, const void* dy, const void* w, void* dx,
                  bool add) {
  if (is_pointwise(shape)) return pointwise_dgrad(context, shape, dtype, dy, w, dx, add);
  const Plan& plan = plan_of(context, shape, Pass::dgrad, add, dtype);
  const PackedFilters filters(context, plan, w);
  const Scratch<char> fresh(context, add ? static_cast<int64_t>(plan.x.get_size()) : 0);
  run(context, plan.conv,
      {{DNNL_ARG_DIFF_DST, plan.y, dy},
       {DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
       {DNNL_ARG_DIFF_SRC, plan.x, add ? fresh.data() : dx}});
  if (add) run(context, plan.add, {{DNNL_ARG_FROM, plan.x, fresh.data()}, {DNNL_ARG_TO, plan.x, dx}});
}

void onednn_wgrad(Context& context, const ConvShape& shape, DType dtype, const void* x, const void* dy, float* dw,
                  bool add) {
  if (dtype == DType::f32 && is_tall_product(shape))
    return sgemm(context, shape.k, shape.c, shape.n * shape.p * shape.q, {'T', static_cast<const float*>(dy), shape.k},
                 {'N', static_cast<const float*>(x), shape.c}, add, dw, shape.c);
  const Plan& plan = plan_of(context, shape, Pass::wgrad, add, dtype);
  const bool direct = !add && !plan.repacks();
  const Scratch<char> packed(context, direct ? 0 : static_cast<int64_t>(plan.packed.get_size()));
  run(context, plan.conv,
      {{DNNL_ARG_SRC, plan.x, x},
       {DNNL_ARG_DIFF_DST, plan.y, dy},
       {DNNL_ARG_DIFF_WEIGHTS, plan.packed, direct ? static_cast<const void*>(dw) : packed.data()}});
  if (!direct) run(context, plan.repack, {{DNNL_ARG_FROM, plan.packed, packed.data()}, {DNNL_ARG_TO, plan.plain, dw}});
}

}  // namespace dtrain::cpu
