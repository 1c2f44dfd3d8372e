// Conversion of ops recorded by a tape to nodes of an ONNX graph.
#pragma once

#include <any>
#include <utility>
#include <vector>

#include "dtrain/autograd/op_observer.h"
#include "models/onnx/layers.h"

namespace dtrain::models {

// Images [n, h, w, c] become [n, c, h, w] in the graph, for any n; flattened images may only be read by linear layers.
// Parameters keep their names.
class OnnxRecorder {
 public:
  OnnxRecorder(OnnxGraph& graph, const ParameterStore& store);

  // Maps `tensor`, an input of ops, to a value of the graph.
  void set(const Tensor& tensor, const OnnxValue& value) { values_.emplace_back(tensor, value); }
  // Throws Error(Fault::config) if no op has written the tensor.
  const OnnxValue& get(const Tensor& tensor) const;
  // Throws Error(Fault::config) with the name of an op without an ONNX counterpart.
  void add(const RecordedOp& op);
  // Throws Error(Fault::config) with the name of a parameter that no op has read.
  void require_all_used() const { layers_.require_all_used(); }

 private:
  const OnnxValue* find(const Tensor& tensor) const;
  // Path of the layer that owns `weight`.
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
  std::vector<std::pair<Tensor, OnnxValue>> values_;  // owns the tensors, so that their memory is not reused
};

}  // namespace dtrain::models
