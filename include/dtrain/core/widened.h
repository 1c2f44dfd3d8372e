// bf16 tensors in f32 kernels: scoped conversion.
#pragma once

#include <functional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <vector>

#include "dtrain/core/context.h"

namespace dtrain {

// f32 copies of bf16 tensors for one call of an f32 kernel. Inputs are exact; outputs are rounded once, to nearest.
// Tensors of one call either have the same elements or do not overlap.
class WidenedTensors {
 public:
  explicit WidenedTensors(const Context& context) : context_(context) {}

  // `x` itself if it is undefined or not bf16. Tensors of the same elements share one copy.
  Tensor stand_in(const Tensor& x);
  // Rounds results back to bf16. Tensors that the kernel only read are not written: other threads may be reading them.
  void give_back();

 private:
  struct Pair {
    Tensor narrow, wide;
  };
  const Context& context_;
  std::vector<Pair> pairs_;
};

// Whether an argument is a tensor or may hold tensors, by the rules of dispatch.h.
template <class T>
inline constexpr bool may_hold_tensors = std::is_same_v<T, Tensor> || requires(const T& t) {
  t.tensors();
};
template <std::ranges::range T>
inline constexpr bool may_hold_tensors<T> = may_hold_tensors<std::ranges::range_value_t<T>>;

// Calls visit(tensor) for each tensor in `argument`.
template <class Argument, class Visit>
void for_each_tensor(Argument& argument, const Visit& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<Argument>, Tensor>)
    visit(argument);
  else if constexpr (requires { argument.tensors(); })
    std::apply([&](auto&... held) { (for_each_tensor(held, visit), ...); }, argument.tensors());
  else if constexpr (std::ranges::range<Argument>)
    for (auto& element : argument) for_each_tensor(element, visit);
}

// Copy of an argument, get(), with f32 copies in place of its bf16 tensors.
template <class Argument>
class WidenedArgument {
  using Value = std::remove_cvref_t<Argument>;

 public:
  WidenedArgument(WidenedTensors& tensors, const Value& argument) : value_(argument) {
    if constexpr (std::ranges::range<Value>) {
      elements_.assign(value_.begin(), value_.end());
      for (auto& element : elements_) replace(tensors, element);
      value_ = Value(elements_);
    } else {
      replace(tensors, value_);
    }
  }
  Value& get() { return value_; }

 private:
  struct None {};
  template <class V>
  struct ElementOf {
    using Type = None;
  };
  template <std::ranges::range V>
  struct ElementOf<V> {
    using Type = std::ranges::range_value_t<V>;
  };

  // tensors() lists members as const, but this copy is mutable.
  static void replace(WidenedTensors& tensors, auto& held) {
    for_each_tensor(held, [&](const Tensor& x) { const_cast<Tensor&>(x) = tensors.stand_in(x); });
  }

  Value value_;
  std::vector<typename ElementOf<Value>::Type> elements_;
};

template <class Argument>
decltype(auto) widened(WidenedTensors& tensors, Argument& argument) {
  if constexpr (may_hold_tensors<std::remove_cvref_t<Argument>>)
    return WidenedArgument<Argument>(tensors, argument);
  else
    return std::ref(argument);
}

// Calls a kernel with f32 copies of its bf16 tensors.
template <class Result, class... Arguments>
Result call_in_f32(Context& context, Result (*kernel)(Context&, Arguments...),
                   std::type_identity_t<Arguments>... arguments) {
  WidenedTensors tensors(context);
  std::tuple held{widened(tensors, arguments)...};
  const auto call = [&](auto&... each) -> Result { return kernel(context, static_cast<Arguments>(each.get())...); };
  if constexpr (std::is_void_v<Result>) {
    std::apply(call, held);
    tensors.give_back();
  } else {
    const Result result = std::apply(call, held);
    tensors.give_back();
    return result;
  }
}

}  // namespace dtrain
