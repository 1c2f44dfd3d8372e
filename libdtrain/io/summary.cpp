#include "dtrain/io/summary.h"

#include "libdtrain/io/event.pb.h"

namespace dtrain {
namespace {

using tensorboard::HParamsPluginData;
using tensorboard::TensorProto;

constexpr int32_t kRgb = 3;

HParamsPluginData::Value value_of(const HyperParameter& parameter) {
  HParamsPluginData::Value value;
  if (const bool* flag = std::get_if<bool>(&parameter)) value.set_bool_value(*flag);
  if (const double* number = std::get_if<double>(&parameter)) value.set_number_value(*number);
  if (const std::string* text = std::get_if<std::string>(&parameter)) value.set_string_value(*text);
  return value;
}

// Names the plugin that shows the value.
void set_plugin(tensorboard::Summary::Value& value, const char* name, const std::string& content) {
  tensorboard::SummaryMetadata::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name(name);
  plugin.set_content(content);
}

// HParams reads the metadata alone; the tensor beside it has no elements.
void set_session(tensorboard::Summary::Value& value, const HParamsPluginData& session) {
  TensorProto& tensor = *value.mutable_tensor();
  tensor.set_dtype(TensorProto::FLOAT);
  tensor.mutable_tensor_shape()->add_dim()->set_size(0);
  set_plugin(value, "hparams", session.SerializeAsString());
}

}  // namespace

Summary::Summary() : message_(std::make_unique<tensorboard::Summary>()) {}
Summary::~Summary() = default;
Summary::Summary(Summary&&) noexcept = default;
Summary& Summary::operator=(Summary&&) noexcept = default;

bool Summary::empty() const { return message_->value_size() == 0; }

std::string Summary::bytes() const { return message_->SerializeAsString(); }

tensorboard::Summary_Value& Summary::add(std::string_view tag) {
  tensorboard::Summary::Value& value = *message_->add_value();
  value.set_tag(tag.data(), tag.size());
  return value;
}

void Summary::scalar(std::string_view tag, double value) { add(tag).set_simple_value(static_cast<float>(value)); }

void Summary::histogram(std::string_view tag, const Histogram& histogram) {
  tensorboard::HistogramProto& message = *add(tag).mutable_histo();
  const HistogramStatistics& all = histogram.statistics();
  message.set_min(all.min);
  message.set_max(all.max);
  message.set_num(static_cast<double>(all.count));
  message.set_sum(all.sum);
  message.set_sum_squares(all.sum_squares);
  for (const HistogramBucket& bucket : histogram.buckets()) {
    message.add_bucket_limit(bucket.limit);
    message.add_bucket(static_cast<double>(bucket.count));
  }
}

void Summary::image(std::string_view tag, int width, int height, std::string_view png) {
  tensorboard::Summary::Image& image = *add(tag).mutable_image();
  image.set_height(height);
  image.set_width(width);
  image.set_colorspace(kRgb);
  image.set_encoded_image_string(png.data(), png.size());
}

void Summary::text(std::string_view tag, std::string_view markdown) {
  tensorboard::Summary::Value& value = add(tag);
  TensorProto& tensor = *value.mutable_tensor();
  tensor.set_dtype(TensorProto::STRING);
  tensor.mutable_tensor_shape();  // a scalar
  tensor.add_string_val(markdown.data(), markdown.size());
  set_plugin(value, "text", {});
}

void Summary::session_start(const HyperParameters& parameters, double seconds) {
  HParamsPluginData session;
  HParamsPluginData::SessionStartInfo& start = *session.mutable_session_start_info();
  for (const auto& [name, parameter] : parameters) {
    HParamsPluginData::HParam& entry = *start.add_hparams();
    entry.set_key(name);
    *entry.mutable_value() = value_of(parameter);
  }
  start.set_start_time_secs(seconds);
  set_session(add("_hparams_/session_start_info"), session);
}

void Summary::session_success(double seconds) {
  HParamsPluginData session;
  HParamsPluginData::SessionEndInfo& end = *session.mutable_session_end_info();
  end.set_status(HParamsPluginData::SessionEndInfo::SUCCESS);
  end.set_end_time_secs(seconds);
  set_session(add("_hparams_/session_end_info"), session);
}

}  // namespace dtrain
