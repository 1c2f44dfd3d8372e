#include "libdtrain/cpu/kernels/batch_norm.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/specialise.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Vectors of channels whose sums stay in registers over the rows.
constexpr int kWidth = kRegisters == 32 ? 8 : 4;
// Rows of at most this many channels are processed four at a time: a channel's constants are loaded once for four.
// Longer rows, a multiple of 4 KiB apart, would evict each other from the cache.
constexpr int64_t kShortRow = 64;

// Sums two terms of each element over the rows, channel by channel: calls add(at, channel, mean, first, second) for the
// vector of elements at `at`, with its channels' `mean` and partial sums.
template <class Add>
[[gnu::always_inline]] inline void sum_rows(int64_t rows, int64_t c, int64_t stride, const float* mean, float* first,
                                            float* second, const Add& add) {
  const auto sum_group = [&]<class V, int n>(V, Constant<n>, int64_t i) __attribute__((always_inline)) {
    constexpr int64_t lanes = sizeof(V) / sizeof(float);
    V own_mean[n], s[n] = {}, q[n] = {};
    for (int v = 0; v < n; ++v) own_mean[v] = load<V>(mean + i + v * lanes);
    for (int64_t row = 0; row < rows; ++row)
      for (int v = 0; v < n; ++v) {
        const int64_t channel = i + v * lanes;
        add(row * stride + channel, channel, own_mean[v], s[v], q[v]);
      }
    for (int v = 0; v < n; ++v) {
      store(first + i + v * lanes, s[v]);
      store(second + i + v * lanes, q[v]);
    }
  };
  int64_t i = 0;
  for (; i + kWidth * kLanes <= c; i += kWidth * kLanes) sum_group(Floats(), Constant<kWidth>(), i);
  for_each_vector(
      i, c, [&](auto v, int64_t channel) __attribute__((always_inline)) { sum_group(v, Constant<1>(), channel); });
}

// Calls body(V(), Constant<n>(), at, i) for each block of n rows, `stride` apart, by one vector V of channels from i
// on; its first element is at `at`.
template <class Body>
[[gnu::always_inline]] inline void for_each_block(int64_t rows, int64_t c, int64_t stride, const Body& body) {
  int64_t row = 0;
  const auto along = [&](auto count) __attribute__((always_inline)) {
    for_each_vector(
        0, c, [&](auto v, int64_t i) __attribute__((always_inline)) { body(v, count, row * stride + i, i); });
  };
  for (; c <= kShortRow && row + 4 <= rows; row += 4) along(Constant<4>());
  for (; row < rows; ++row) along(Constant<1>());
}

template <class V>
[[gnu::always_inline]] inline V normalize(V x, V mean, V scale, V beta) {
  return (x - mean) * scale + beta;
}

template <class T>
void moments(const T* x, int64_t rows, int64_t c, int64_t stride, const float* shift, float* sum, float* square) {
  sum_rows(
      rows, c, stride, shift, sum,
      square, [&]<class V>(int64_t at, int64_t, V mean, V & s, V & q) __attribute__((always_inline)) {
        const V d = load<V>(x + at) - mean;
        s += d;
        q += d * d;
      });
}

// The operands by value, as those of sums_as: stores may alias any object, and members of references would be loaded
// again.
template <class T, Activation act, bool residual, bool non_temporal>
void apply_as(const NormalizedRows<T> o) {
  for_each_block(
      o.rows, o.c, o.stride, [&]<class V, int n>(V, Constant<n>, int64_t at, int64_t i) __attribute__((always_inline)) {
        const V mean = load<V>(o.mean + i), scale = load<V>(o.scale + i), beta = load<V>(o.beta + i);
        for (int r = 0; r < n; ++r, at += o.stride) {
          V value = normalize(load<V>(o.x + at), mean, scale, beta);
          if constexpr (residual) value += load<V>(o.residual + at);
          if constexpr (act != Activation::none) value = value < 0 ? V{} : value;  // lets a NaN through
          if constexpr (act == Activation::relu6) value = value > 6 ? V{} + 6 : value;
          store_or_stream<non_temporal>(o.y + at, value);
        }
      });
  if constexpr (non_temporal) fence();
}

template <class T>
void apply(const NormalizedRows<T>& o) {
  specialise<Activation::none, Activation::relu, Activation::relu6>(o.act, [&]<Activation act>(Constant<act>) {
    specialise<false, true>(o.residual != nullptr, [&]<bool residual>(Constant<residual>) {
      o.non_temporal ? apply_as<T, act, residual, true>(o) : apply_as<T, act, residual, false>(o);
    });
  });
}

// The gradient at the activation's input: elements from `at` on, channels from i on.
template <ReluGate gate, class V, class T>
[[gnu::always_inline]] inline V gated(const GradientRows<T>& o, int64_t at, int64_t i) {
  const V all = load<V>(o.dy + at);
  if constexpr (gate == ReluGate::none) {
    return all;
  } else {
    V y;
    if constexpr (gate == ReluGate::y || gate == ReluGate::y6)
      y = load<V>(o.y + at);
    else
      y = normalize(load<V>(o.x + at), load<V>(o.mean + i), load<V>(o.scale + i), load<V>(o.beta + i));
    if constexpr (gate == ReluGate::y6 || gate == ReluGate::x6) return ((y > 0) & (y < 6)) ? all : V{};
    return y > 0 ? all : V{};
  }
}

// Calls use(Constant<gate>()) with the gate of `o`.
template <class T, class Use>
[[gnu::always_inline]] inline void with_gate(const GradientRows<T>& o, const Use& use) {
  specialise<ReluGate::none, ReluGate::y, ReluGate::x, ReluGate::y6, ReluGate::x6>(o.gate, use);
}

template <class T, ReluGate gate, bool keep>
void sums_as(const GradientRows<T> o, float* sum, float* product, T* kept) {
  sum_rows(
      o.rows, o.c, o.stride, o.mean, sum,
      product, [&]<class V>(int64_t at, int64_t channel, V mean, V & s, V & p) __attribute__((always_inline)) {
        const V dz = gated<gate, V>(o, at, channel);
        s += dz;
        p += dz * (load<V>(o.x + at) - mean);
        if constexpr (keep) store(kept + at, dz);
      });
}

template <class T>
void sums(const GradientRows<T>& o, float* sum, float* product, T* kept) {
  with_gate(o, [&]<ReluGate gate>(Constant<gate>) {
    kept ? sums_as<T, gate, true>(o, sum, product, kept) : sums_as<T, gate, false>(o, sum, product, kept);
  });
}

template <class T>
void gate_rows(const GradientRows<T>& o, T* dz) {
  with_gate(o, [&]<ReluGate gate>(Constant<gate>) {
    for_each_block(
        o.rows, o.c,
        o.stride, [&]<class V, int n>(V, Constant<n>, int64_t at, int64_t i) __attribute__((always_inline)) {
          for (int r = 0; r < n; ++r, at += o.stride) store(dz + at, gated<gate, V>(o, at, i));
        });
  });
}

template <class T, ReluGate gate, bool constant, StoreMode into>
void dx_as(const GradientRows<T>& o, const float* offset, const float* slope, T* dx) {
  for_each_block(
      o.rows, o.c, o.stride, [&]<class V, int n>(V, Constant<n>, int64_t at, int64_t i) __attribute__((always_inline)) {
        for (int r = 0; r < n; ++r, at += o.stride) {
          V value = load<V>(o.scale + i) * gated<gate, V>(o, at, i);
          if constexpr (!constant)
            value -= load<V>(offset + i) + (load<V>(o.x + at) - load<V>(o.mean + i)) * load<V>(slope + i);
          if constexpr (into == StoreMode::add) value = load<V>(dx + at) + value;
          store_or_stream<into == StoreMode::non_temporal>(dx + at, value);
        }
      });
  if constexpr (into == StoreMode::non_temporal) fence();
}

template <class T>
void dx(const GradientRows<T>& o, const float* offset, const float* slope, StoreMode mode, T* to) {
  with_gate(o, [&]<ReluGate gate>(Constant<gate>) {
    specialise<StoreMode::store, StoreMode::add, StoreMode::non_temporal>(mode, [&]<StoreMode into>(Constant<into>) {
      offset ? dx_as<T, gate, false, into>(o, offset, slope, to) : dx_as<T, gate, true, into>(o, offset, slope, to);
    });
  });
}

template <class T>
BatchNormLoops<T> loops() {
  return {moments<T>, apply<T>, sums<T>, gate_rows<T>, dx<T>};
}

}  // namespace

void add_batch_norm(Kernels& kernels) { kernels.batch_norm = {loops<float>(), loops<Bf16>()}; }

}  // namespace dtrain::cpu::DT_ISA
