// Code that is compiled for constants.
#pragma once

namespace dtrain::cpu::DT_ISA {

template <auto v>
struct Constant {
  static constexpr auto value = v;
};

// Calls use(Constant<v>()) for the v of `values` that equals `value`, if there is one.
template <auto... values, class Value, class Use>
[[gnu::always_inline]] inline void specialise(Value value, const Use& use) {
  static_cast<void>(((value == values && (use(Constant<values>()), true)) || ...));
}

}  // namespace dtrain::cpu::DT_ISA
