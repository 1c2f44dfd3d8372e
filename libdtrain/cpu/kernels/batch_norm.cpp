#include "libdtrain/cpu/kernels/batch_norm.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Vectors of channels whose sums stay in registers over the rows.
constexpr int kWidth = kRegisters == 32 ? 8 : 4;
// Rows of at most this many channels go four at a time, so that a channel's constants are loaded once for four. Longer
// rows, a multiple of 4 KiB apart, would evict each other from the cache.
constexpr int64_t kShortRow = 64;

template <int n>
struct Constant {
  static constexpr int value = n;
};

// Calls body(V(), Constant<n>(), i) for each group of n vectors V of channels, [i, i + n * lanes).
template <class Body>
[[gnu::always_inline]] inline void for_each_group(int64_t c, const Body& body) {
  int64_t i = 0;
  for (; i + kWidth * kLanes <= c; i += kWidth * kLanes) body(Floats(), Constant<kWidth>(), i);
  for (; i + kLanes <= c; i += kLanes) body(Floats(), Constant<1>(), i);
  for (; i < c; ++i) body(float(), Constant<1>(), i);
}

// Calls body(V(), Constant<n>(), at, i) for each block of n rows, `stride` apart, by one vector V of channels from i
// on; its first element is at `at`.
template <class Body>
[[gnu::always_inline]] inline void for_each_block(int64_t rows, int64_t c, int64_t stride, const Body& body) {
  int64_t row = 0;
  const auto along = [&](auto count) __attribute__((always_inline)) {
    int64_t i = 0;
    for (; i + kLanes <= c; i += kLanes) body(Floats(), count, row * stride + i, i);
    for (; i < c; ++i) body(float(), count, row * stride + i, i);
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
  for_each_group(
      c, [&]<class V, int n>(V, Constant<n>, int64_t i) __attribute__((always_inline)) {
        constexpr int64_t lanes = sizeof(V) / sizeof(float);
        V mean[n], s[n] = {}, q[n] = {};
        for (int v = 0; v < n; ++v) mean[v] = load<V>(shift + i + v * lanes);
        for (int64_t row = 0; row < rows; ++row)
          for (int v = 0; v < n; ++v) {
            const V d = load<V>(x + row * stride + i + v * lanes) - mean[v];
            s[v] += d;
            q[v] += d * d;
          }
        for (int v = 0; v < n; ++v) {
          store(sum + i + v * lanes, s[v]);
          store(square + i + v * lanes, q[v]);
        }
      });
}

template <class T, Activation act, bool residual, bool non_temporal>
void apply_rows(const NormalizedRows<T>& o) {
  for_each_block(
      o.rows, o.c, o.stride, [&]<class V, int n>(V, Constant<n>, int64_t at, int64_t i) __attribute__((always_inline)) {
        const V mean = load<V>(o.mean + i), scale = load<V>(o.scale + i), beta = load<V>(o.beta + i);
        for (int r = 0; r < n; ++r, at += o.stride) {
          V value = normalize(load<V>(o.x + at), mean, scale, beta);
          if constexpr (residual) value += load<V>(o.residual + at);
          if constexpr (act != Activation::none) value = value < 0 ? V{} : value;  // lets a NaN through
          if constexpr (act == Activation::relu6) value = value > 6 ? V{} + 6 : value;
          if constexpr (non_temporal)
            stream(o.y + at, value);
          else
            store(o.y + at, value);
        }
      });
  if constexpr (non_temporal) fence();
}

template <class T, Activation act>
void apply_as(const NormalizedRows<T>& o) {
  if (o.non_temporal)
    o.residual ? apply_rows<T, act, true, true>(o) : apply_rows<T, act, false, true>(o);
  else
    o.residual ? apply_rows<T, act, true, false>(o) : apply_rows<T, act, false, false>(o);
}

template <class T>
void apply(const NormalizedRows<T>& o) {
  switch (o.act) {
    case Activation::none:
      return apply_as<T, Activation::none>(o);
    case Activation::relu:
      return apply_as<T, Activation::relu>(o);
    case Activation::relu6:
      return apply_as<T, Activation::relu6>(o);
  }
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

// Calls use(Gate<g>()) with the gate of `o` as a constant.
template <ReluGate g>
struct Gate {
  static constexpr ReluGate value = g;
};
template <class T, class Use>
[[gnu::always_inline]] inline void with_gate(const GradientRows<T>& o, const Use& use) {
  switch (o.gate) {
    case ReluGate::y:
      return use(Gate<ReluGate::y>());
    case ReluGate::x:
      return use(Gate<ReluGate::x>());
    case ReluGate::y6:
      return use(Gate<ReluGate::y6>());
    case ReluGate::x6:
      return use(Gate<ReluGate::x6>());
    case ReluGate::none:
      return use(Gate<ReluGate::none>());
  }
}

template <class T, ReluGate gate, bool keep>
void sum_rows(const GradientRows<T>& o, float* sum, float* product, T* kept) {
  for_each_group(
      o.c, [&]<class V, int n>(V, Constant<n>, int64_t i) __attribute__((always_inline)) {
        constexpr int64_t lanes = sizeof(V) / sizeof(float);
        V mean[n], s[n] = {}, p[n] = {};
        for (int v = 0; v < n; ++v) mean[v] = load<V>(o.mean + i + v * lanes);
        for (int64_t row = 0; row < o.rows; ++row)
          for (int v = 0; v < n; ++v) {
            const int64_t channel = i + v * lanes, at = row * o.stride + channel;
            const V dz = gated<gate, V>(o, at, channel);
            s[v] += dz;
            p[v] += dz * (load<V>(o.x + at) - mean[v]);
            if constexpr (keep) store(kept + at, dz);
          }
        for (int v = 0; v < n; ++v) {
          store(sum + i + v * lanes, s[v]);
          store(product + i + v * lanes, p[v]);
        }
      });
}

template <class T>
void sums(const GradientRows<T>& o, float* sum, float* product, T* kept) {
  with_gate(o, [&](auto gate) {
    kept ? sum_rows<T, decltype(gate)::value, true>(o, sum, product, kept)
         : sum_rows<T, decltype(gate)::value, false>(o, sum, product, kept);
  });
}

template <class T>
void gate_rows(const GradientRows<T>& o, T* dz) {
  with_gate(o, [&](auto gate) {
    for_each_block(
        o.rows, o.c,
        o.stride, [&]<class V, int n>(V, Constant<n>, int64_t at, int64_t i) __attribute__((always_inline)) {
          for (int r = 0; r < n; ++r, at += o.stride) store(dz + at, gated<decltype(gate)::value, V>(o, at, i));
        });
  });
}

template <class T, ReluGate gate, bool constant, StoreMode into>
void dx_rows(const GradientRows<T>& o, const float* offset, const float* slope, T* dx) {
  for_each_block(
      o.rows, o.c, o.stride, [&]<class V, int n>(V, Constant<n>, int64_t at, int64_t i) __attribute__((always_inline)) {
        for (int r = 0; r < n; ++r, at += o.stride) {
          V value = load<V>(o.scale + i) * gated<gate, V>(o, at, i);
          if constexpr (!constant)
            value -= load<V>(offset + i) + (load<V>(o.x + at) - load<V>(o.mean + i)) * load<V>(slope + i);
          if constexpr (into == StoreMode::add) value = load<V>(dx + at) + value;
          if constexpr (into == StoreMode::non_temporal)
            stream(dx + at, value);
          else
            store(dx + at, value);
        }
      });
  if constexpr (into == StoreMode::non_temporal) fence();
}

template <class T, ReluGate gate, bool constant>
void dx_into(const GradientRows<T>& o, const float* offset, const float* slope, StoreMode into, T* dx) {
  switch (into) {
    case StoreMode::store:
      return dx_rows<T, gate, constant, StoreMode::store>(o, offset, slope, dx);
    case StoreMode::add:
      return dx_rows<T, gate, constant, StoreMode::add>(o, offset, slope, dx);
    case StoreMode::non_temporal:
      return dx_rows<T, gate, constant, StoreMode::non_temporal>(o, offset, slope, dx);
  }
}

template <class T>
void dx(const GradientRows<T>& o, const float* offset, const float* slope, StoreMode into, T* to) {
  with_gate(o, [&](auto gate) {
    constexpr ReluGate kGate = decltype(gate)::value;
    offset ? dx_into<T, kGate, false>(o, offset, slope, into, to) : dx_into<T, kGate, true>(o, offset, slope, into, to);
  });
}

template <class T>
BatchNormLoops<T> loops() {
  return {moments<T>, apply<T>, sums<T>, gate_rows<T>, dx<T>};
}

}  // namespace

void add_batch_norm(Kernels& kernels) { kernels.batch_norm = {loops<float>(), loops<Bf16>()}; }

}  // namespace dtrain::cpu::DT_ISA
