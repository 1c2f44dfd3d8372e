#include "models/onnx/graph.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <exception>
#include <limits>

#include "libdtrain/io/result_file.h"
#include "models/onnx/onnx.pb.h"

namespace dtrain::models {
namespace {

constexpr int64_t kIrVersion = 8, kOpset = 17;

void set_value(onnx::AttributeProto& message, int64_t value) {
  message.set_i(value);
  message.set_type(onnx::AttributeProto::INT);
}
void set_value(onnx::AttributeProto& message, float value) {
  message.set_f(value);
  message.set_type(onnx::AttributeProto::FLOAT);
}
void set_value(onnx::AttributeProto& message, const std::string& value) {
  message.set_s(value);
  message.set_type(onnx::AttributeProto::STRING);
}
void set_value(onnx::AttributeProto& message, const std::vector<int64_t>& values) {
  for (const int64_t value : values) message.add_ints(value);
  message.set_type(onnx::AttributeProto::INTS);
}

void set_value_info(onnx::ValueInfoProto& message, const std::string& name, OnnxType type,
                    const std::vector<OnnxDim>& dims, const std::string& about) {
  message.set_name(name);
  onnx::TypeProto::Tensor& tensor = *message.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(type));
  tensor.mutable_shape();
  for (const OnnxDim& dim : dims) {
    onnx::TensorShapeProto::Dimension& one = *tensor.mutable_shape()->add_dim();
    if (const auto* size = std::get_if<int64_t>(&dim))
      one.set_dim_value(*size);
    else
      one.set_dim_param(std::get<std::string>(dim));
  }
  message.set_doc_string(about);
}

std::string_view bytes_of(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }

// Writes protobuf's output to a file. Keeps an Error until protobuf has returned: the destructor of its adaptor, which
// must not throw, would write once more.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(ResultFile& file) : file_(file) {}

  bool Write(const void* data, int size) override {
    try {
      file_.write(bytes_of(data, static_cast<size_t>(size)));
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  ResultFile& file_;
  std::exception_ptr failure_;
};

void write_message(const onnx::ModelProto& message, ResultFile& file) {
  constexpr int kBlockBytes = 1 << 20;
  FileStream stream(file);
  {
    google::protobuf::io::CopyingOutputStreamAdaptor adaptor(&stream, kBlockBytes);
    message.SerializeToZeroCopyStream(&adaptor);
  }
  stream.rethrow_failure();
}

}  // namespace

void refuse_export(const std::string& what) { throw Error(Fault::config, "ONNX: " + what); }

OnnxGraph::OnnxGraph(const std::string& name) : model_(std::make_unique<onnx::ModelProto>()) {
  model_->set_ir_version(kIrVersion);
  model_->set_producer_name("dtrain");
  model_->add_opset_import()->set_version(kOpset);
  model_->mutable_graph()->set_name(name);
}

OnnxGraph::~OnnxGraph() = default;

OnnxValue OnnxGraph::input(const std::string& name, OnnxType type, const std::vector<OnnxDim>& shape,
                           const std::string& about) {
  set_value_info(*model_->mutable_graph()->add_input(), name, type, shape, about);
  return name;
}

void OnnxGraph::output(const OnnxValue& value, const std::string& name, OnnxType type,
                       const std::vector<OnnxDim>& shape, const std::string& about) {
  onnx::NodeProto& node = *model_->mutable_graph()->add_node();
  node.add_input(value);
  node.add_output(name);
  node.set_name(name);
  node.set_op_type("Identity");
  set_value_info(*model_->mutable_graph()->add_output(), name, type, shape, about);
}

OnnxValue OnnxGraph::constant(OnnxType type, const Shape& shape, std::string_view bytes, const std::string& name) {
  const OnnxValue value = name.empty() ? "constant_" + std::to_string(values_++) : name;
  if (!constant_names_.insert(value).second) return value;
  onnx::TensorProto& tensor = *model_->mutable_graph()->add_initializer();
  for (int i = 0; i < shape.rank(); ++i) tensor.add_dims(shape[i]);
  tensor.set_data_type(static_cast<int32_t>(type));
  tensor.set_name(value);
  tensor.set_raw_data(bytes.data(), bytes.size());
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
  onnx::NodeProto& node = *model_->mutable_graph()->add_node();
  for (const OnnxValue& one : inputs) node.add_input(one);
  const std::string name = op + "_" + std::to_string(values_++);
  std::vector<OnnxValue> results;
  for (int i = 0; i < outputs; ++i) {
    results.push_back(outputs == 1 ? name : name + "_" + std::to_string(i));
    node.add_output(results.back());
  }
  node.set_name(name);
  node.set_op_type(op);
  for (const OnnxAttribute& attribute : attributes) {
    onnx::AttributeProto& message = *node.add_attribute();
    message.set_name(attribute.name);
    std::visit([&](const auto& value) { set_value(message, value); }, attribute.value);
  }
  return results;
}

void OnnxGraph::write(const std::string& path) const {
  const size_t size = model_->ByteSizeLong();
  if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw Error(Fault::config, concat(path, ": an ONNX model of ", size,
                                      " bytes, expected less than 2 GiB, the most that a protobuf can have"));
  ResultFile file(path);
  write_message(*model_, file);
  file.commit();
}

}  // namespace dtrain::models
