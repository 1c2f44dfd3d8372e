#include "models/onnx/graph.h"

#include <limits>
#include <utility>

#include "libdtrain/io/result_file.h"

namespace dtrain::models {
namespace {

constexpr int64_t kIrVersion = 8, kOpset = 17;

// Numbers of fields in onnx.proto.
namespace field {
enum Model { kIr = 1, kProducer = 2, kGraph = 7, kOpsetImport = 8 };
enum OpsetId { kVersion = 2 };
enum Graph { kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
enum Node { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOp = 4, kAttribute = 5 };
enum Attribute { kAttributeName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kAttributeType = 20 };
enum Tensor { kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9 };
enum ValueInfo { kValueName = 1, kValueType = 2, kAbout = 3 };
enum Type { kTensorType = 1, kElementType = 1, kShape = 2, kDim = 1, kDimSize = 1, kDimName = 2 };
}  // namespace field

// Of AttributeProto.AttributeType.
enum AttributeType { kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeInts = 7 };

ProtoMessage message_of(const OnnxAttribute& attribute) {
  ProtoMessage message;
  message.text(field::kAttributeName, attribute.name);
  if (const auto* integer = std::get_if<int64_t>(&attribute.value))
    message.number(field::kInt, *integer).number(field::kAttributeType, kTypeInt);
  else if (const auto* real = std::get_if<float>(&attribute.value))
    message.real(field::kFloat, *real).number(field::kAttributeType, kTypeFloat);
  else if (const auto* text = std::get_if<std::string>(&attribute.value))
    message.text(field::kString, *text).number(field::kAttributeType, kTypeString);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    for (const int64_t one : *integers) message.number(field::kInts, one);
    message.number(field::kAttributeType, kTypeInts);
  }
  return message;
}

ProtoMessage value_info(const std::string& name, OnnxType type, const std::vector<OnnxDim>& dims,
                        const std::string& about) {
  ProtoMessage shape;
  for (const OnnxDim& dim : dims) {
    ProtoMessage one;
    if (const auto* size = std::get_if<int64_t>(&dim))
      one.number(field::kDimSize, *size);
    else
      one.text(field::kDimName, std::get<std::string>(dim));
    shape.message(field::kDim, one);
  }
  const ProtoMessage tensor =
      ProtoMessage().number(field::kElementType, static_cast<int64_t>(type)).message(field::kShape, shape);
  return ProtoMessage()
      .text(field::kValueName, name)
      .message(field::kValueType, ProtoMessage().message(field::kTensorType, tensor))
      .text(field::kAbout, about);
}

std::string_view bytes_of(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }

}  // namespace

void refuse_export(const std::string& what) { throw Error(Fault::config, "ONNX: " + what); }

OnnxValue OnnxGraph::input(const std::string& name, OnnxType type, const std::vector<OnnxDim>& shape,
                           const std::string& about) {
  inputs_.message(field::kInput, value_info(name, type, shape, about));
  return name;
}

void OnnxGraph::output(const OnnxValue& value, const std::string& name, OnnxType type,
                       const std::vector<OnnxDim>& shape, const std::string& about) {
  ProtoMessage node;
  node.text(field::kNodeInput, value).text(field::kNodeOutput, name).text(field::kNodeName, name);
  nodes_.message(field::kNode, node.text(field::kOp, "Identity"));
  outputs_.message(field::kOutput, value_info(name, type, shape, about));
}

OnnxValue OnnxGraph::constant(OnnxType type, const Shape& shape, std::string_view bytes, const std::string& name) {
  const OnnxValue value = name.empty() ? "constant_" + std::to_string(values_++) : name;
  if (!constant_names_.insert(value).second) return value;
  ProtoMessage tensor;
  for (int i = 0; i < shape.rank(); ++i) tensor.number(field::kDims, shape[i]);
  tensor.number(field::kDataType, static_cast<int64_t>(type)).text(field::kTensorName, value);
  constants_.push_back(tensor.text(field::kRawData, bytes).bytes());
  return value;
}

OnnxValue OnnxGraph::floats(std::span<const float> values, const Shape& shape, const std::string& name) {
  DT_CHECK(static_cast<size_t>(shape.count()) == values.size(), "ONNX constant ", name, ": ", values.size(),
           " numbers for ", shape);
  return constant(OnnxType::f32, shape, bytes_of(values.data(), values.size_bytes()), name);
}

OnnxValue OnnxGraph::scalar(float value) { return constant(OnnxType::f32, {}, bytes_of(&value, sizeof value), ""); }

OnnxValue OnnxGraph::ints(const std::vector<int64_t>& values) {
  return constant(OnnxType::i64, {static_cast<int64_t>(values.size())},
                  bytes_of(values.data(), values.size() * sizeof(int64_t)), "");
}

OnnxValue OnnxGraph::integer(int64_t value) { return constant(OnnxType::i64, {}, bytes_of(&value, sizeof value), ""); }

OnnxValue OnnxGraph::add(const std::string& op, const std::vector<OnnxValue>& inputs,
                         const OnnxAttributes& attributes) {
  return add(op, 1, inputs, attributes).front();
}

std::vector<OnnxValue> OnnxGraph::add(const std::string& op, int outputs, const std::vector<OnnxValue>& inputs,
                                      const OnnxAttributes& attributes) {
  ProtoMessage node;
  for (const OnnxValue& one : inputs) node.text(field::kNodeInput, one);
  const std::string name = op + "_" + std::to_string(values_++);
  std::vector<OnnxValue> results;
  for (int i = 0; i < outputs; ++i) {
    results.push_back(outputs == 1 ? name : name + "_" + std::to_string(i));
    node.text(field::kNodeOutput, results.back());
  }
  node.text(field::kNodeName, name).text(field::kOp, op);
  for (const OnnxAttribute& attribute : attributes) node.message(field::kAttribute, message_of(attribute));
  nodes_.message(field::kNode, node);
  return results;
}

void OnnxGraph::write(const std::string& path) const {
  const ProtoMessage name = ProtoMessage().text(field::kGraphName, name_);
  uint64_t size = nodes_.bytes().size() + name.bytes().size() + inputs_.bytes().size() + outputs_.bytes().size();
  std::vector<ProtoMessage> heads;
  for (const std::string& one : constants_) {
    heads.push_back(ProtoMessage().head(field::kInitializer, one.size()));
    size += heads.back().bytes().size() + one.size();
  }
  ProtoMessage model;
  model.number(field::kIr, kIrVersion).text(field::kProducer, "dtrain");
  model.message(field::kOpsetImport, ProtoMessage().number(field::kVersion, kOpset)).head(field::kGraph, size);
  constexpr uint64_t kLargest = std::numeric_limits<int32_t>::max();
  if (model.bytes().size() + size > kLargest)
    throw Error(Fault::config, concat(path, ": an ONNX model of ", size,
                                      " bytes, expected less than 2 GiB, the most that a protobuf can have"));
  ResultFile file(path);
  for (const ProtoMessage* const part : {&std::as_const(model), &nodes_, &name}) file.write(part->bytes());
  for (size_t i = 0; i < constants_.size(); ++i) {
    file.write(heads[i].bytes());
    file.write(constants_[i]);
  }
  for (const ProtoMessage* const part : {&inputs_, &outputs_}) file.write(part->bytes());
  file.commit();
}

}  // namespace dtrain::models
