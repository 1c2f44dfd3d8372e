#include "libdtrain/cpu/kernels/max_pool.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Window cells of the channels of a V, widened to 32 bits.
template <class V>
using Cells = typename Lanes<V>::Bits;

template <class V>
[[gnu::always_inline]] inline Cells<V> load_cells(const uint8_t* from) {
  if constexpr (sizeof(V) == sizeof(float))
    return *from;
  else
    return reinterpret_cast<Cells<V>>(widen_bytes(from));
}

template <class V>
[[gnu::always_inline]] inline void store_cells(uint8_t* to, Cells<V> cells) {
  if constexpr (sizeof(V) == sizeof(float)) {
    *to = static_cast<uint8_t>(cells);
  } else {
    typedef uint8_t Bytes __attribute__((vector_size(sizeof(V) / sizeof(float))));
    const Bytes bytes = __builtin_convertvector(cells, Bytes);
    std::memcpy(to, &bytes, sizeof bytes);
  }
}

template <class T, bool kWinner>
void window_as(const MaxWindow<T>& o) {
  for_each_vector(
      0, o.c, [&]<class V>(V, int64_t i) __attribute__((always_inline)) {
        V best = load<V>(o.pixels[0] + i);
        Cells<V> winner = Cells<V>{} + o.cells[0];
        for (int pixel = 1; pixel < o.count; ++pixel) {
          const V value = load<V>(o.pixels[pixel] + i);
          const auto wins = (value > best) | (value != value);
          best = wins ? value : best;
          if constexpr (kWinner) winner = wins ? Cells<V>{} + o.cells[pixel] : winner;
        }
        store(o.best + i, best);
        if constexpr (kWinner) store_cells<V>(o.winner + i, winner);
      });
}

template <class T>
void window(const MaxWindow<T>& o) {
  o.winner ? window_as<T, true>(o) : window_as<T, false>(o);
}

template <class T>
void gradient(const MaxGradient<T>& o) {
  for_each_vector(
      0, o.c, [&]<class V>(V, int64_t i) __attribute__((always_inline)) {
        V sum = {};
        if (o.add) sum = load<V>(o.dx + i);
        for (int covering = 0; covering < o.count; ++covering) {
          const V dy = load<V>(o.dy[covering] + i);
          sum += load_cells<V>(o.winners[covering] + i) == o.cells[covering] ? dy : V{};
        }
        store(o.dx + i, sum);
      });
}

}  // namespace

void add_max_pool(Kernels& kernels) {
  kernels.max_pool = {{window<float>, gradient<float>}, {window<Bf16>, gradient<Bf16>}};
}

}  // namespace dtrain::cpu::DT_ISA
