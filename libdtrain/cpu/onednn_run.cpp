#include "libdtrain/cpu/onednn_run.h"

#include "libdtrain/cpu/onednn.h"
#include "libdtrain/cpu/parallel.h"

namespace dtrain::cpu {

Onednn& onednn(Context& context) {
  return context.primitives().get<Onednn>(0, [] { return Onednn{}; });
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

}  // namespace dtrain::cpu
