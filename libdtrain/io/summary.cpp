#include "libdtrain/io/summary.h"

#include "libdtrain/io/protobuf.h"

namespace dtrain {
namespace {

enum SummaryField : uint32_t { kValue = 1 };
enum ValueField : uint32_t { kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9 };
enum ImageField : uint32_t { kHeight = 1, kWidth, kColorspace, kEncoded };
constexpr uint64_t kRgb = 3;
enum TensorField : uint32_t { kDtype = 1, kShape = 2, kStringValue = 8 };
constexpr uint64_t kFloat = 1, kString = 7;  // DataType
constexpr uint32_t kDim = 2;                 // of a TensorShape
enum MetadataField : uint32_t { kPluginData = 1 };
enum PluginField : uint32_t { kPluginName = 1, kContent };
// TensorBoard, plugins/hparams/plugin_data.proto
enum HParamsField : uint32_t { kSessionStart = 3, kSessionEnd = 4 };
enum StartField : uint32_t { kHParams = 1, kStartTime = 5 };
enum EndField : uint32_t { kStatus = 1, kEndTime = 2 };
constexpr uint64_t kSuccess = 1;
enum EntryField : uint32_t { kKey = 1, kEntryValue = 2 };
// google/protobuf/struct.proto
enum AnyField : uint32_t { kNumber = 2, kText = 3, kBool = 4 };

std::string tagged_value(std::string_view tag) {
  std::string value;
  put_bytes(value, kTag, tag);
  return value;
}

// Names the plugin that shows the value.
void put_plugin(std::string& value, std::string_view plugin, std::string_view content) {
  std::string data, metadata;
  put_bytes(data, kPluginName, plugin);
  put_bytes(data, kContent, content);
  put_bytes(metadata, kPluginData, data);
  put_bytes(value, kMetadata, metadata);
}

std::string any_of(const HyperParameter& parameter) {
  std::string value;
  if (const bool* flag = std::get_if<bool>(&parameter)) put_integer(value, kBool, *flag ? 1 : 0);
  if (const double* number = std::get_if<double>(&parameter)) put_double(value, kNumber, *number);
  if (const std::string* text = std::get_if<std::string>(&parameter)) put_bytes(value, kText, *text);
  return value;
}

}  // namespace

void Summary::scalar(std::string_view tag, double value) {
  std::string message = tagged_value(tag);
  put_float(message, kSimpleValue, static_cast<float>(value));
  put_bytes(bytes_, kValue, message);
}

void Summary::histogram(std::string_view tag, const Histogram& histogram) {
  std::string message = tagged_value(tag);
  put_bytes(message, kHistogram, histogram.bytes());
  put_bytes(bytes_, kValue, message);
}

void Summary::image(std::string_view tag, int width, int height, std::string_view png) {
  std::string image, message = tagged_value(tag);
  put_integer(image, kHeight, static_cast<uint64_t>(height));
  put_integer(image, kWidth, static_cast<uint64_t>(width));
  put_integer(image, kColorspace, kRgb);
  put_bytes(image, kEncoded, png);
  put_bytes(message, kImage, image);
  put_bytes(bytes_, kValue, message);
}

void Summary::text(std::string_view tag, std::string_view markdown) {
  std::string tensor, message = tagged_value(tag);
  put_integer(tensor, kDtype, kString);
  put_bytes(tensor, kShape, {});  // a scalar
  put_bytes(tensor, kStringValue, markdown);
  put_bytes(message, kTensor, tensor);
  put_plugin(message, "text", {});
  put_bytes(bytes_, kValue, message);
}

// All is in the metadata; the tensor beside it has no elements.
void Summary::session(std::string_view tag, uint32_t kind, std::string_view information) {
  std::string dim, shape, tensor, content, message = tagged_value(tag);
  put_integer(dim, 1, 0);
  put_bytes(shape, kDim, dim);
  put_integer(tensor, kDtype, kFloat);
  put_bytes(tensor, kShape, shape);
  put_bytes(message, kTensor, tensor);
  put_bytes(content, kind, information);
  put_plugin(message, "hparams", content);
  put_bytes(bytes_, kValue, message);
}

void Summary::session_start(const HyperParameters& parameters, double seconds) {
  std::string start;
  for (const auto& [name, parameter] : parameters) {
    std::string entry;
    put_bytes(entry, kKey, name);
    put_bytes(entry, kEntryValue, any_of(parameter));
    put_bytes(start, kHParams, entry);
  }
  put_double(start, kStartTime, seconds);
  session("_hparams_/session_start_info", kSessionStart, start);
}

void Summary::session_success(double seconds) {
  std::string end;
  put_integer(end, kStatus, kSuccess);
  put_double(end, kEndTime, seconds);
  session("_hparams_/session_end_info", kSessionEnd, end);
}

}  // namespace dtrain
