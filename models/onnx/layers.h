// Layers of dtrain/layers.h as nodes of an ONNX graph, with the parameters of a store. Images are [n, c, h, w] in
// ONNX.
#pragma once

#include <set>
#include <string>

#include "dtrain/layers.h"
#include "models/onnx/graph.h"

namespace dtrain::models {

class OnnxLayers {
 public:
  // `store` holds values. All methods throw Error(Fault::config) for a missing parameter.
  OnnxLayers(OnnxGraph& graph, const ParameterStore& store) : graph_(graph), store_(store) {}

  // Includes the bias, if any.
  OnnxValue conv(const OnnxValue& x, const std::string& path, const Conv2dOptions& options);
  OnnxValue conv_transpose(const OnnxValue& x, const std::string& path, const Conv2dOptions& options);
  OnnxValue batch_norm(const OnnxValue& x, const std::string& path, float epsilon);
  // x [n, c, h, w], where n may be 0.
  OnnxValue group_norm(const OnnxValue& x, const std::string& path, const Shape& chw, int groups, float epsilon);
  OnnxValue linear(const OnnxValue& x, const std::string& path);
  OnnxValue relu(const OnnxValue& x) { return graph_.add("Relu", {x}); }
  OnnxValue max_pool(const OnnxValue& x, const PoolOptions& options);
  OnnxValue average_pool(const OnnxValue& x, const PoolOptions& options);

  bool has(const std::string& name) const { return find(name) != nullptr; }
  // First dimension of a parameter: the outputs of its layer.
  int64_t rows(const std::string& name) const { return parameter(name).shape[0]; }
  // Throws Error(Fault::config) with the name of a parameter or buffer that no layer has used; the graph would be
  // incomplete.
  void require_all_used() const;

 private:
  const Parameter* find(const std::string& name) const;
  const Parameter& parameter(const std::string& name) const;
  OnnxValue weight(const std::string& name);
  // Reshaped to `shape`, which has as many elements.
  OnnxValue weight(const std::string& name, const Shape& shape);
  OnnxValue buffer(const std::string& name);
  // {x, path.weight} and path.bias, if any.
  std::vector<OnnxValue> inputs(const OnnxValue& x, const std::string& path);

  OnnxGraph& graph_;
  const ParameterStore& store_;
  std::set<std::string> used_{};
};

}  // namespace dtrain::models
