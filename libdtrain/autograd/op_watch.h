// OpWatch: shows the ops that a tape is given, in training and in eval, to whoever writes a model down for other
// programs.
#pragma once

#include <any>
#include <functional>
#include <span>
#include <utility>

#include "libdtrain/autograd/var.h"

namespace dtrain {

struct RecordedOp {
  const char* name;
  const Tensor& value;                 // its output, which may have taken the memory of an input that was given up
  std::span<const Var* const> inputs;  // one that is left out has no value
  const std::any& options;             // what the op noted of itself, a struct of the op's header; empty: nothing
};

class OpWatch {
 public:
  using Listener = std::function<void(const RecordedOp&)>;

  // `listener` is given each op from now on, once its work has been queued; of a composite, the ops it is made of.
  void on_op(Listener listener) { listener_ = std::move(listener); }
  // By an op, before it records itself.
  template <class Options>
  void note(const Options& options) {
    if (listener_) options_ = options;
  }
  // By the tape.
  void tell(const char* name, const Tensor& value, std::span<const Var* const> inputs) {
    if (!listener_) return;
    const std::any options = std::exchange(options_, {});
    listener_({name, value, inputs, options});
  }

 private:
  Listener listener_;
  std::any options_;
};

}  // namespace dtrain
