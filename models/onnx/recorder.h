// Makes nodes of an ONNX graph of the ops that a tape is given.
#pragma once

#include <any>
#include <utility>
#include <vector>

#include "libdtrain/autograd/op_observer.h"
#include "models/onnx/layers.h"

namespace dtrain::models {

// Images of [n, h, w, c] are [n, c, h, w] in the graph, where n is any; what they are flattened to goes to linear
// layers alone. Parameters go by their names.
class OnnxRecorder {
 public:
  OnnxRecorder(OnnxGraph& graph, const ParameterStore& store);

  // What the graph has for `tensor`, which ops will read.
  void set(const Tensor& tensor, const OnnxValue& value) { values_.emplace_back(tensor, value); }
  // Throws Error(Fault::config) where no op has written the tensor.
  const OnnxValue& get(const Tensor& tensor) const;
  // Throws Error(Fault::config) naming an op that has no counterpart.
  void add(const RecordedOp& op);
  // Throws Error(Fault::config) naming a parameter that no op has read.
  void require_all_used() const { layers_.require_all_used(); }

 private:
  const OnnxValue* find(const Tensor& tensor) const;
  // The path of the layer that has `weight`.
  std::string path_of(const Tensor& weight) const;
  OnnxValue node(const RecordedOp& op);
  OnnxValue batch_norm(const RecordedOp& op);
  OnnxValue relu6(const OnnxValue& x);
  OnnxValue flattened(const RecordedOp& op);
  OnnxValue joined(const RecordedOp& op);
  OnnxValue subsampled(const RecordedOp& op);

  OnnxGraph& graph_;
  const ParameterStore& store_;
  OnnxLayers layers_;
  std::vector<std::pair<Tensor, OnnxValue>> values_;  // holds the tensors, so that no other takes their memory
};

}  // namespace dtrain::models
