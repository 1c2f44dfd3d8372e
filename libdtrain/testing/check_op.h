// check_op: compares an op and its gradients with a naive reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libdtrain/autograd/tape.h"
#include "libdtrain/testing/array.h"

namespace dtrain {

// What an input is to a network that computes in 16 bits.
enum class Role {
  activation,  // it and its gradient are of the compute type
  weight,      // it is of the compute type, its gradient f32
  parameter,   // both are f32: biases, batch norm's parameters
};

// One case of one op with one output.
struct OpCase {
  std::string name;
  std::vector<Array> inputs;  // all differentiable; constants are captured by `op`
  std::function<Var(Tape&, const std::vector<Var>&)> op;
  std::function<Array(const std::vector<Array>&)> reference;  // naive, in double precision
  Mode mode = Mode::train;                                    // eval: the value only, and nothing may be recorded
  bool kinks = false;         // the op has kinks (relu, max): do not compare a gradient where the reference has one
  std::vector<Role> roles{};  // one for each input, in order; activations where it ends
  bool exact = false;         // in f32 a GPU gives the very values that the CPU gives
  // The op takes f32 alone, or is a chain: what 16 bits round off in between may be more than the bounds allow.
  bool f32_only = false;

  Role role(size_t input) const { return input < roles.size() ? roles[input] : Role::activation; }
};

// By how much an op that computes in `dtype` may be off: the bounds of require_close.
struct Bounds {
  double value, gradient;
};
Bounds bounds_of(DType dtype);

// Makes what the pool hands out next NaN (all bits set), so that an element that an op forgets to write shows.
void poison(Context& context);

// In f32, bf16 and, on a GPU, f16: the value against the reference; the gradient of a random linear functional of the
// output against central differences of the reference, by every input (sampled elements of a large one), stored and
// added to what another op wrote; two runs bit-equal; memory poisoned beforehand; neither value nor gradients all zero;
// in f32 the values and gradients of a GPU against those of the CPU. Throws Error(Fault::numeric) on the first
// difference that is too large.
void check_op(Context& context, const OpCase& test);

}  // namespace dtrain
