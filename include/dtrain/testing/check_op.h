// check_op: numerical test of an op and its gradients against a naive reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dtrain/autograd/tape.h"
#include "dtrain/testing/array.h"

namespace dtrain {

// Role of an input in mixed-precision training.
enum class Role {
  activation,  // value and gradient in the compute type
  weight,      // value in the compute type, gradient in f32
  parameter,   // value and gradient in f32: biases, batch-norm parameters
};

// Test case of an op with one output.
struct OpCase {
  std::string name;
  std::vector<Array> inputs;  // all differentiable; constants are captured by `op`
  std::function<Var(Tape&, const std::vector<Var>&)> op;
  std::function<Array(const std::vector<Array>&)> reference;  // naive, in double precision
  Mode mode = Mode::train;                                    // eval: compares the value only; nothing may be recorded
  bool kinks = false;         // non-differentiable points (relu, max): skip gradients at kinks of the reference
  std::vector<Role> roles{};  // per input, in order; activations by default
  bool exact = false;         // f32 results of a GPU equal the CPU's bitwise
  // For f32-only ops and chains, whose 16-bit intermediate rounding would exceed the tolerance.
  bool f32_only = false;

  Role role(size_t input) const { return input < roles.size() ? roles[input] : Role::activation; }
};

// Tolerances of require_close for an op that computes in `dtype`.
struct Bounds {
  double value, gradient;
};
Bounds bounds_of(DType dtype);

// Fills the pool's free memory with NaN (all bits set), to reveal unwritten elements.
void poison(Context& context);

// Checks in f32, bf16 and, on a GPU, f16: the value against the reference; the gradient of a random linear functional
// of the output against central differences of the reference, for every input (sampled elements of a large one),
// overwritten and accumulated; two runs bitwise equal; memory poisoned before; neither value nor gradients all zero; in
// f32 a GPU against the CPU. Throws Error(Fault::numeric) on the first difference beyond the tolerance.
void check_op(Context& context, const OpCase& test);

}  // namespace dtrain
