// Tensors of the parity programs: from and to safetensors files, on the device that is compared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/environment.h"
#include "dtrain/core/context.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/safetensors.h"

namespace dtrain {

// `device`: cpu or gpu.
inline std::unique_ptr<Context> parity_context(const std::string& device) {
  if (device == "gpu") return make_cuda_context(cli::with_environment());
  DT_CHECK(device == "cpu", "device ", device, ": expected cpu or gpu");
  return make_cpu_context({.threads = 2});
}

inline Tensor read_tensor(Context& context, const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  DT_CHECK(entry, file.path(), ": no tensor ", name);
  const Tensor tensor = context.empty(entry->shape, entry->dtype == "I32" ? DType::i32 : DType::f32);
  DT_CHECK(entry->bytes == tensor.bytes(), name, ": ", entry->bytes, " bytes for ", entry->shape);
  std::vector<char> bytes(entry->bytes);
  file.read(*entry, bytes.data());
  context.upload(bytes.data(), tensor);
  return tensor;
}

// A tensor's name and type, and its bytes as they were when it was added.
class TensorFile {
 public:
  void add(Context& context, const std::string& name, const Tensor& tensor) {
    specs_.push_back({name, tensor.dtype(), tensor.shape()});
    context.download(tensor, contents_.emplace_back(tensor.bytes()).data(), "parity");
  }
  void add(const std::string& name, const std::vector<float>& values) {
    specs_.push_back({name, DType::f32, {static_cast<int64_t>(values.size())}});
    const char* bytes = reinterpret_cast<const char*>(values.data());
    contents_.emplace_back(bytes, bytes + values.size() * sizeof(float));
  }
  void write(const std::string& path) const {
    AtomicFile file(path);
    file.output().write(safetensors_header(specs_));
    for (const std::vector<char>& bytes : contents_) file.output().write(bytes.data(), bytes.size());
    file.commit();
  }

 private:
  std::vector<TensorSpec> specs_;
  std::vector<std::vector<char>> contents_;
};

}  // namespace dtrain
