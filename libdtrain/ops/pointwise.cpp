#include "dtrain/ops/pointwise.h"

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/gating.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/gating_kernels.h"
#include "libdtrain/ops/pointwise_kernels.h"
#include "libdtrain/ops/pointwise_math.h"

namespace dtrain {
namespace {

void require_equal_shapes(const char* op, const Tensor& a, const Tensor& b) {
  DT_CHECK(a.shape() == b.shape(), op, ": shapes differ: ", a.shape(), " and ", b.shape());
}

void require_alike(const char* op, const Tensor& a, const Tensor& b) {
  require_equal_shapes(op, a, b);
  DT_CHECK(a.dtype() == b.dtype(), op, ": types differ: ", a.dtype(), " and ", b.dtype());
}

}  // namespace

Var relu(Tape& tape, const Var& x) {
  if (x.value.dtype() == DType::u8) return x;  // u8 outputs of int8 layers encode non-negative values
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, relu)(x.value, y);
  return tape.record("relu", y, {&x}, [x = x.without_value(), y](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x)) DT_DISPATCH(t.context(), relu_grad)(dy, y, target->dx, target->add);
  });
}

Var add(Tape& tape, const Var& a, const Var& b) {
  require_alike("add", a.value, b.value);
  Context& context = tape.context();
  const Tensor y = context.empty(a.shape(), a.value.dtype());
  DT_DISPATCH(context, add)(a.value, b.value, y);
  return tape.record("add", y, {&a, &b}, [a = a.without_value(), b = b.without_value()](Tape& t, const Tensor& dy) {
    t.pass_grad(a, dy);
    t.pass_grad(b, dy);
  });
}

Var add_relu(Tape& tape, const Var& a, const Var& b) {
  require_alike("add_relu", a.value, b.value);
  Context& context = tape.context();
  const Tensor y = context.empty(a.shape(), a.value.dtype());
  DT_DISPATCH(context, add_relu)(a.value, b.value, y);
  return tape.record("add_relu", y, {&a, &b},
                     [a = a.without_value(), b = b.without_value(), y](Tape& t, const Tensor& dy) {
                       const Tensor masked = t.context().empty(y.shape(), y.dtype());
                       DT_DISPATCH(t.context(), relu_grad)(dy, y, masked, false);
                       t.pass_grad(a, masked);
                       t.pass_grad(b, masked);
                     });
}

Var dropout(Tape& tape, const Var& x, float rate) {
  DT_CHECK(rate >= 0 && rate < 1, "dropout: rate ", rate, " is not in [0, 1)");
  if (!tape.training() || rate == 0) return x;
  Context& context = tape.context();
  const uint64_t stream = tape.next_stream();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, dropout)(x.value, rate, stream, y, false);
  return tape.record("dropout", y, {&x}, [x = x.without_value(), rate, stream](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), dropout)(dy, rate, stream, target->dx, target->add);
  });
}

Var flatten(Tape& tape, const Var& x) {
  DT_CHECK(x.shape().rank() >= 1, "flatten: the input has no dimension to keep");
  const int64_t n = x.value.dim(0);
  int64_t rest = 1;
  for (int i = 1; i < x.shape().rank(); ++i) rest *= x.value.dim(i);
  return reshape(tape, x, {n, rest});
}

Var reshape(Tape& tape, const Var& x, const Shape& shape) {
  return tape.record("reshape", x.value.view(shape), {&x},
                     [x = x.without_value()](Tape& t, const Tensor& dy) { t.pass_grad(x, dy); });
}

Tensor normalize_pixels(Context& context, const Tensor& x, const PixelNormalization& options) {
  DT_CHECK(x.shape().rank() == 4 && x.dim(3) == 3, "normalize_pixels: expected [n, h, w, 3], found ", x.shape());
  DT_CHECK(x.dtype() == DType::u8 || x.dtype() == DType::f32, "normalize_pixels: pixels of type ", x.dtype(),
           "; expected u8 or f32");
  DT_CHECK(options.channels >= 3, "normalize_pixels: ", options.channels, " output channels; expected 3 or more");
  const Tensor y = context.empty({x.dim(0), x.dim(1), x.dim(2), options.channels}, options.dtype);
  DT_DISPATCH(context, normalize_pixels)(x, options, y);
  return y;
}

void accumulate(Context& context, const Tensor& x, const Tensor& y) {
  require_equal_shapes("accumulate", x, y);
  DT_CHECK(x.dtype() == y.dtype() || y.dtype() == DType::f32, "accumulate: ", x.dtype(), " onto ", y.dtype(),
           ", expected the same type or f32");
  DT_DISPATCH(context, accumulate)(x, y);
}

void scale_by(Context& context, const Tensor& x, float factor) {
  DT_CHECK(x.dtype() == DType::f32, "scale_by: ", x.dtype(), ", expected f32");
  DT_DISPATCH(context, scale)(x, factor, x, false);
}

void seed_loss_gradient(Context& context, const Tensor& dy) {
  DT_CHECK(dy.count() == 1 && dy.dtype() == DType::f32, "seed_loss_gradient: the loss is ", dy.shape(), " of ",
           dy.dtype(), ", expected one f32");
  DT_DISPATCH(context, seed_loss_gradient)(dy);
}

namespace cpu {
namespace {

template <class T, class Pixel>
void normalize(const Pixel* x, const PixelNormalization& options, const Tensor& out) {
  T* y = out.data<T>();
  const float m0 = options.mean[0], m1 = options.mean[1], m2 = options.mean[2];
  const float s0 = options.scale[0], s1 = options.scale[1], s2 = options.scale[2];
  const int64_t channels = options.channels;
  auto value = [](Pixel pixel, float mean, float scale) {
    return to_element<T>(normalize_pixel(static_cast<float>(pixel), mean, scale));
  };
  parallel_ranges(out.count() / channels, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = y + channels * i;
      to[0] = value(x[3 * i], m0, s0);
      to[1] = value(x[3 * i + 1], m1, s1);
      to[2] = value(x[3 * i + 2], m2, s2);
      for (int64_t c = 3; c < channels; ++c) to[c] = {};
    }
  });
}

}  // namespace

void relu(Context&, const Tensor& x, const Tensor& y) {
  with_elements(y.dtype(),
                [&]<class T>(T) { write<T>(y, false, [x = x.data<T>()](int64_t i) { return dtrain::relu(x[i]); }); });
}

void relu_grad(Context&, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add) {
  with_elements(dx.dtype(), [&]<class T>(T) {
    write<T>(dx, add, [dy = dy.data<T>(), y = y.data<T>()](int64_t i) { return dtrain::relu_grad(dy[i], y[i]); });
  });
}

void add(Context&, const Tensor& a, const Tensor& b, const Tensor& y) {
  with_elements(y.dtype(), [&]<class T>(T) {
    write<T>(y, false, [a = a.data<T>(), b = b.data<T>()](int64_t i) { return a[i] + b[i]; });
  });
}

void add_relu(Context&, const Tensor& a, const Tensor& b, const Tensor& y) {
  with_elements(y.dtype(), [&]<class T>(T) {
    write<T>(y, false, [a = a.data<T>(), b = b.data<T>()](int64_t i) { return dtrain::relu(a[i] + b[i]); });
  });
}

void dropout(Context& context, const Tensor& x, float rate, uint64_t stream, const Tensor& y, bool add) {
  const StepScalars& scalars = *context.scalars();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const int64_t count = x.count();
  parallel_ranges((count + 3) / 4,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t block = begin; block < end; ++block) {
                      const auto words =
                          dropout_words(scalars.seed, scalars.step, stream, static_cast<uint64_t>(block));
                      for (int64_t i = 4 * block; i < std::min(count, 4 * block + 4); ++i) {
                        const float value = from[i] * dropout_factor(words[static_cast<size_t>(i % 4)], rate);
                        to[i] = add ? to[i] + value : value;
                      }
                    }
                  },
                  16);
}

void normalize_pixels(Context&, const Tensor& x, const PixelNormalization& options, const Tensor& y) {
  with_elements(y.dtype(), [&]<class T>(T) {
    if (x.dtype() == DType::u8)
      normalize<T>(x.data<uint8_t>(), options, y);
    else
      normalize<T>(x.data<float>(), options, y);
  });
}

void accumulate(Context&, const Tensor& x, const Tensor& y) {
  with_elements(y.dtype(), [&]<class Y>(Y) {
    with_elements(x.dtype(), [&]<class X>(X) {
      write<Y>(y, true, [x = x.data<X>()](int64_t i) { return static_cast<float>(x[i]); });
    });
  });
}

void seed_loss_gradient(Context& context, const Tensor& dy) { *dy.data<float>() = context.scalars()->loss_scale; }

}  // namespace cpu
}  // namespace dtrain
