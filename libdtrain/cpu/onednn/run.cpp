#include "libdtrain/cpu/onednn/run.h"

#include "libdtrain/cpu/onednn/loaded.h"
#include "libdtrain/cpu/onednn/primitive_cache.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {

Onednn& onednn(Context& context) {
  return context.primitives().get<Onednn>(0, [] { return Onednn{}; });
}

LoadedOnednn loaded_onednn() {
  const dnnl_version_t& version = *dnnl_version();
  return {concat(version.major, ".", version.minor, ".", version.patch), reinterpret_cast<const void*>(&dnnl_version)};
}

bool onednn_has_bf16(const Context& context) {
  constexpr auto kNeeded = static_cast<int>(dnnl::cpu_isa::avx512_core_bf16);
  return context.isa() >= CpuIsa::avx512_bf16 && (static_cast<int>(dnnl::get_effective_cpu_isa()) & kNeeded) == kNeeded;
}

dnnl::primitive_attr pooled_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void run(Context& context, const OnednnPrimitive& primitive, std::initializer_list<OnednnArgument> arguments) {
  Onednn& library = onednn(context);
  const Scratch<char> scratch(context, static_cast<int64_t>(primitive.scratchpad.get_size()));
  translate_onednn_errors("running a primitive", [&] {
    std::unordered_map<int, dnnl::memory> bound;
    for (const OnednnArgument& argument : arguments)
      bound.emplace(argument.name, dnnl::memory(argument.desc, library.engine, const_cast<void*>(argument.data)));
    bound.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(primitive.scratchpad, library.engine, scratch.data()));
    primitive.primitive.execute(library.stream, bound);
    library.stream.wait();
  });
}

void sgemm(Context& context, int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, bool add, float* c,
           int64_t c_stride) {
  struct Code {  // key of the code that oneDNN compiles at the first SGEMM of this kind, for the process
    char op_a, op_b;
    bool add;
  };
  struct Made {};
  context.primitives().get<Made>(Code{a.op, b.op, add}, [] { return Made{}; });
  const dnnl_status_t status =
      dnnl_sgemm(a.op, b.op, m, n, k, 1, a.data, a.stride, b.data, b.stride, add ? 1.0f : 0.0f, c, c_stride);
  if (status != dnnl_success)
    throw Error(Fault::resource, concat("oneDNN: the product of matrices ", Shape{m, k}, " and ", Shape{k, n},
                                        " failed with status ", static_cast<int>(status)));
}

}  // namespace dtrain::cpu
