// Conversion loops for f32, bf16 and f16.
#include "libdtrain/distributed/wire.h"

#include <cstring>

#include "dtrain/core/error.h"
#include "dtrain/core/float16.h"

namespace dtrain {
namespace {

#if defined(__aarch64__)  // where GCC 12 has no _Float16 in C++
using Float16 = __fp16;
#else
__extension__ typedef _Float16 Float16;
#endif

struct Single {
  using Stored = float;
  static float read(float x) { return x; }
  static float round(float x) { return x; }
};

struct Brain {
  using Stored = Bf16;
  static float read(Bf16 x) { return x; }
  static Bf16 round(float x) { return to_bf16(x); }
};

struct Half {
  using Stored = Float16;
  static float read(Float16 x) { return static_cast<float>(x); }
  static Float16 round(float x) { return static_cast<Float16>(x); }
};

template <class Use>
void with_type(DType wire, const Use& use) {
  switch (wire) {
    case DType::f32:
      return use(Single{});
    case DType::bf16:
      return use(Brain{});
    case DType::f16:
      return use(Half{});
    default:
      throw Error(concat("wire type ", wire, ": expected f32, bf16 or f16"));
  }
}

}  // namespace

void round_to_wire(DType wire, float* values, std::byte* bytes, int64_t count) {
  with_type(wire, [&](auto type) {
    using Type = decltype(type);
    auto* __restrict stored = reinterpret_cast<typename Type::Stored*>(bytes);
    for (int64_t i = 0; i < count; ++i) {
      stored[i] = Type::round(values[i]);
      values[i] = Type::read(stored[i]);
    }
  });
}

void add_from_wire(DType wire, const std::byte* bytes, float* values, int64_t count) {
  with_type(wire, [&](auto type) {
    using Type = decltype(type);
    const auto* __restrict stored = reinterpret_cast<const typename Type::Stored*>(bytes);
    for (int64_t i = 0; i < count; ++i) values[i] += Type::read(stored[i]);
  });
}

void copy_from_wire(DType wire, const std::byte* bytes, float* values, int64_t count) {
  with_type(wire, [&](auto type) {
    using Type = decltype(type);
    const auto* __restrict stored = reinterpret_cast<const typename Type::Stored*>(bytes);
    for (int64_t i = 0; i < count; ++i) values[i] = Type::read(stored[i]);
  });
}

}  // namespace dtrain
