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

// pointwise_dgrad: the data gradient of a 1x1 kernel, as a forward convolution of dy with transposed filters.
enum class Pass : int64_t { forward, dgrad, wgrad, pointwise_dgrad };

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
  OnednnPrimitive conv, repack, add;  // `add`: to dx, where the convolution does not add
  bool adds = false;                  // whether the convolution adds to dx
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
  const ConvShape& o = key.shape;
  const Geometry g = geometry_of(key);
  Plan plan;
  plan.x = g.x, plan.y = g.y, plan.bias = g.bias, plan.plain = g.plain;
  switch (key.pass) {
    case Pass::forward: {
      const auto desc = forward_desc(g, key.variant, pooled_scratchpad(), engine);
      plan.conv = onednn_primitive<dnnl::convolution_forward>(desc);
      plan.packed = desc.weights_desc();
      break;
    }
    case Pass::pointwise_dgrad: {
      Geometry transposed = g;
      std::swap(transposed.x, transposed.y);
      transposed.any = memory::desc({o.c, o.k, 1, 1}, g.weights, Tag::any);
      plan.plain = memory::desc({o.c, o.k, 1, 1}, g.weights, Tag::ihwo);
      plan.adds = key.variant && fuses_sum(key.type());
      if (key.variant && !plan.adds) plan.add = reorder(g.x, g.x, true, engine);
      const auto desc = forward_desc(transposed, false, plan.adds ? adding() : pooled_scratchpad(), engine);
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

// Whether the filters' gradient is a product of two tall matrices, many pixels by few channels: oneDNN's sgemm is then
// the faster one.
bool is_tall_product(const ConvShape& o) {
  return is_pointwise(o) && o.c * o.k <= 65536 && o.n * o.p * o.q >= 16 * std::max(o.c, o.k);
}

}  // namespace

template <class T>
Verdict OnednnConv<T>::verdict(const Context& context, const ConvShape&) {
  const bool can = std::is_same_v<T, float> || onednn_has_bf16(context);
  return can ? Verdict{} : Verdict::unsupported("oneDNN has no bf16 on this instruction set");
}

template <class T>
void OnednnConv<T>::forward(Context& context, const ConvShape& shape, const ConvOperands<T>& a) {
  const Plan& plan = plan_of(context, shape, Pass::forward, a.bias != nullptr, dtype_of<T>());
  const PackedFilters filters(context, plan, a.w);
  const OnednnArgument source{DNNL_ARG_SRC, plan.x, a.x}, weights{DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
      destination{DNNL_ARG_DST, plan.y, a.y};
  if (a.bias)
    run(context, plan.conv, {source, weights, {DNNL_ARG_BIAS, plan.bias, a.bias}, destination});
  else
    run(context, plan.conv, {source, weights, destination});
}

template <class T>
void OnednnConv<T>::dgrad(Context& context, const ConvShape& shape, const ConvOperands<T>& a) {
  const bool pointwise = is_pointwise(shape);  // on AVX2 the faster algorithm
  const Plan& plan = plan_of(context, shape, pointwise ? Pass::pointwise_dgrad : Pass::dgrad, a.add, dtype_of<T>());
  const PackedFilters filters(context, plan, a.w);
  const bool adds_apart = a.add && !plan.adds;
  const Scratch<char> fresh(context, adds_apart ? static_cast<int64_t>(plan.x.get_size()) : 0);
  run(context, plan.conv,
      {{pointwise ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, plan.y, a.dy},
       {DNNL_ARG_WEIGHTS, plan.packed, filters.data()},
       {pointwise ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, plan.x,
        adds_apart ? static_cast<const void*>(fresh.data()) : a.dx}});
  if (adds_apart) run(context, plan.add, {{DNNL_ARG_FROM, plan.x, fresh.data()}, {DNNL_ARG_TO, plan.x, a.dx}});
}

template <class T>
void OnednnConv<T>::wgrad(Context& context, const ConvShape& shape, const ConvOperands<T>& a) {
  if constexpr (std::is_same_v<T, float>)
    if (is_tall_product(shape))
      return sgemm(context, shape.k, shape.c, shape.n * shape.p * shape.q, {'T', a.dy, shape.k}, {'N', a.x, shape.c},
                   a.add, a.dw, shape.c);
  const Plan& plan = plan_of(context, shape, Pass::wgrad, a.add, dtype_of<T>());
  const bool direct = !a.add && !plan.repacks();
  const Scratch<char> packed(context, direct ? 0 : static_cast<int64_t>(plan.packed.get_size()));
  run(context, plan.conv,
      {{DNNL_ARG_SRC, plan.x, a.x},
       {DNNL_ARG_DIFF_DST, plan.y, a.dy},
       {DNNL_ARG_DIFF_WEIGHTS, plan.packed, direct ? static_cast<const void*>(a.dw) : packed.data()}});
  if (!direct)
    run(context, plan.repack, {{DNNL_ARG_FROM, plan.packed, packed.data()}, {DNNL_ARG_TO, plan.plain, a.dw}});
}

template struct OnednnConv<float>;
template struct OnednnConv<Bf16>;

}  // namespace dtrain::cpu
