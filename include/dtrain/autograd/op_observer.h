// OpObserver: observer of the ops that a tape executes, in training and in eval, e.g. to export a model.
#pragma once

#include <any>
#include <functional>
#include <span>
#include <utility>

#include "dtrain/autograd/var.h"

namespace dtrain {

struct RecordedOp {
  const char* name;
  const Tensor& value;                 // output; may reuse the memory of a consumed input
  std::span<const Var* const> inputs;  // omitted optional inputs have no value
  const std::any& options;             // attributes of the op, a struct of its header; empty: none
};

class OpObserver {
 public:
  using Listener = std::function<void(const RecordedOp&)>;

  // Calls `listener` for each op from now on, after its work was enqueued; composite ops report their parts.
  void on_op(Listener listener) { listener_ = std::move(listener); }
  // Called by an op before it records itself.
  template <class Options>
  void note(const Options& options) {
    if (listener_) options_ = options;
  }
  // Called by the tape.
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
