#include "dtrain/ops/quantized_conv.h"

#include <limits>

#include "dtrain/core/profiler.h"
#include "dtrain/core/thread_count.h"
#include "libdtrain/cpu/conv/algorithms.h"
#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {
namespace {

// The filters, and the scale and shift, of whole panels (see Requantize), that make elements of y of the sums of
// products.
struct Int8Layer {
  cpu::Int8Weights filters;
  std::vector<float> scale, shift;
};

// The form of results that are stored as floats, which stand for themselves.
constexpr QuantParams kFloats{.scale = 1, .zero = 0};

std::shared_ptr<Int8Layer> int8_layer(Context& context, const cpu::ConvShape& shape, const Tensor& w,
                                      const QuantizedLayer& layer, const InferenceEpilogue& end) {
  const InferredAffine affine = affine_of(end, shape.k);
  const auto made =
      std::make_shared<Int8Layer>(Int8Layer{cpu::Int8Weights(context, shape, w.data<float>(), affine.scale), {}, {}});
  const size_t filters = made->filters.scales().size(), whole = filters + cpu::kMaxTileColumns;
  made->scale.resize(whole);
  made->shift.resize(whole);
  const QuantParams y = layer.y.value_or(kFloats);
  const double residual = layer.residual ? double{layer.residual->scale} * layer.residual->zero : 0;
  for (size_t k = 0; k < filters; ++k) {
    const double scale = double{layer.x.scale} * made->filters.scales()[k];
    const double bias = affine.shift.empty() ? 0 : affine.shift[k];
    const double zeros = scale * layer.x.zero * made->filters.sums()[k];
    made->scale[k] = static_cast<float>(scale / y.scale);
    made->shift[k] = static_cast<float>((bias - zeros - residual) / y.scale + y.zero);
  }
  return made;
}

void check_dtype(const char* what, const Tensor& x, bool bytes_allowed) {
  DT_CHECK(x.dtype() == DType::f32 || (bytes_allowed && x.dtype() == DType::u8), "a layer in int8: its ", what, " is ",
           x.shape(), " of ", x.dtype(), ", expected f32", bytes_allowed ? " or bytes" : "");
}

}  // namespace

bool fits_int8(const Shape& w) { return cpu::int8_weights_fit(w.rank() == 4 ? w[1] * w[2] : 1, w[w.rank() - 1]); }
bool may_be_bytes(int64_t channels) { return channels % cpu::kQuad == 0; }

Tensor quantized_conv(Tape& tape, const Tensor& x, const Tensor& w, const Conv2dOptions& options,
                      const QuantizedLayer& layer, const InferenceEpilogue& end) {
  Context& context = tape.context();
  const ThreadCount threads(context.threads());
  check_dtype("input", x, true);
  const Shape shape_of_y = conv2d_shape(x.shape(), w.shape(), options);
  const Tensor y = result_memory(context, end, shape_of_y, layer.y ? DType::u8 : DType::f32);
  const Tensor residual = end.residual ? end.residual->value : Tensor();
  if (residual) {
    check_dtype("residual", residual, layer.residual.has_value());
    DT_CHECK(residual.shape() == y.shape() && layer.residual.has_value() == (residual.dtype() == DType::u8),
             "a layer in int8: its residual is ", residual.shape(), " of ", residual.dtype(), ", expected ", y.shape(),
             layer.residual ? " of bytes" : " of f32");
  }
  const cpu::ConvShape shape = cpu::shape_of(x, w, y, options);
  const auto made =
      tape.prepared()->of<Int8Layer>(addresses_of(w, end), [&] { return int8_layer(context, shape, w, layer, end); });
  const QuantParams form = layer.y.value_or(kFloats);
  cpu::Requantize epilogue;
  epilogue.scale = made->scale.data();
  epilogue.shift = made->shift.data();
  epilogue.residual_scale = (layer.residual ? layer.residual->scale : 1) / form.scale;
  if (residual && layer.residual) epilogue.residual_bytes = residual.data<uint8_t>();
  if (residual && !layer.residual) epilogue.residual = residual.data<float>();
  epilogue.floor = end.activation == Activation::relu ? form.zero : -std::numeric_limits<float>::infinity();
  const bool bytes = x.dtype() == DType::u8;
  const KernelSpan span(context.profiler(), "quantized_conv");
  cpu::run_int8_conv(
      context, shape,
      {.x = {bytes ? x.data<uint8_t>() : nullptr, bytes ? nullptr : x.data<float>(), layer.x.scale, layer.x.zero},
       .weights = &made->filters,
       .epilogue = epilogue,
       .y = {layer.y ? y.data<uint8_t>() : nullptr, layer.y ? nullptr : y.data<float>()}});
  return y;
}

}  // namespace dtrain
