// An ONNX graph, built node by node and written as a model (https://github.com/onnx/onnx/blob/main/docs/IR.md, opset
// 17). It knows operators by their names and checks none: what reads the file does.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dtrain/core/types.h"

// The generated class of onnx.proto.
namespace dtrain::onnx {
class ModelProto;
}

namespace dtrain::models {

// The name of a tensor in a graph.
using OnnxValue = std::string;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};
using OnnxAttributes = std::vector<OnnxAttribute>;

enum class OnnxType : int32_t { f32 = 1, i64 = 7, f64 = 11 };

// A dimension by its size, or by a name where it differs from call to call.
using OnnxDim = std::variant<int64_t, std::string>;

// Throws Error(Fault::config) with what keeps the model from being exported.
[[noreturn]] void refuse_export(const std::string& what);

class OnnxGraph {
 public:
  explicit OnnxGraph(const std::string& name);
  ~OnnxGraph();

  OnnxValue input(const std::string& name, OnnxType type, const std::vector<OnnxDim>& shape, const std::string& about);
  // Gives `value` the name of an output.
  void output(const OnnxValue& value, const std::string& name, OnnxType type, const std::vector<OnnxDim>& shape,
              const std::string& about);
  // Constants. Those with a name are made once.
  OnnxValue floats(std::span<const float> values, const Shape& shape, const std::string& name = "");
  OnnxValue scalar(float value);
  OnnxValue ints(const std::vector<int64_t>& values);
  OnnxValue integer(int64_t value);  // a scalar
  bool has_constant(const std::string& name) const { return constant_names_.contains(name); }

  // A node of one output, or of several.
  OnnxValue add(const std::string& op, const std::vector<OnnxValue>& inputs, const OnnxAttributes& attributes = {});
  std::vector<OnnxValue> add(const std::string& op, int outputs, const std::vector<OnnxValue>& inputs,
                             const OnnxAttributes& attributes = {});

  // Writes the model into a ResultFile. Throws Error(Fault::config) where it would pass the 2 GiB that a protobuf can
  // have.
  void write(const std::string& path) const;

 private:
  OnnxValue constant(OnnxType type, const Shape& shape, std::string_view bytes, const std::string& name);

  std::unique_ptr<onnx::ModelProto> model_;
  std::set<std::string> constant_names_;
  int64_t values_ = 0;
};

}  // namespace dtrain::models
