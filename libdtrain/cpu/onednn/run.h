// Runs oneDNN's primitives on a Context: engine and stream, scratch memory from the context's pool, errors as Error.
// For CPU arms only, like <dnnl.hpp>.
#pragma once

#include <dnnl.hpp>
#include <unordered_map>

#include "dtrain/core/context.h"

namespace dtrain::cpu {

struct Onednn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// Of this context.
Onednn& onednn(Context& context);

// Whether oneDNN computes in bf16 on this context. An earlier context of a lower instruction set limits oneDNN for the
// whole process.
bool onednn_has_bf16(const Context& context);

// Attributes of a primitive that leaves the allocation of its scratch memory to `run`.
dnnl::primitive_attr pooled_scratchpad();

// A primitive and the scratch memory that it asks for.
struct OnednnPrimitive {
  dnnl::primitive primitive;
  dnnl::memory::desc scratchpad;
};

template <class Primitive>
OnednnPrimitive onednn_primitive(const typename Primitive::primitive_desc& desc) {
  return {Primitive(desc), desc.scratchpad_desc()};
}

// A description and where the bytes are.
struct OnednnArgument {
  int name;  // DNNL_ARG_...
  const dnnl::memory::desc& desc;
  const void* data;  // written through where `name` is an output
};

// Runs to the end. Throws Error where oneDNN fails.
void run(Context& context, const OnednnPrimitive& primitive, std::initializer_list<OnednnArgument> arguments);

// Row-major, rows `stride` elements apart; op 'T' transposes it, 'N' does not.
struct Matrix {
  char op;
  const float* data;
  int64_t stride;
};

// SGEMM: c = op(a) op(b), or with `add` c += op(a) op(b); c [m, n], op(a) [m, k], op(b) [k, n]. Throws Error where
// oneDNN fails.
void sgemm(Context& context, int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, bool add, float* c,
           int64_t c_stride);

// Calls `create`, which makes primitives, and says what could not be made where oneDNN refuses.
template <class Create>
auto translate_onednn_errors(const std::string& what, Create&& create) {
  try {
    return create();
  } catch (const dnnl::error& error) {
    throw Error(error.status == dnnl_out_of_memory ? Fault::resource : Fault::config,
                concat("oneDNN: ", what, ": ", error.message));
  }
}

}  // namespace dtrain::cpu
