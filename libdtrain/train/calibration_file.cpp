#include "dtrain/train/calibration_file.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "dtrain/io/input_file.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/digest.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/result_file.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;  // looks keys up in logarithmic time
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFormat = "dtrain calibration";  // and the number
constexpr JsonLimits kLimits{.bytes = size_t{4} << 20, .depth = 4, .values = 100'000};
constexpr uint64_t kMostImages = uint64_t{1} << 40;

OrderedJson json_of(const QuantParams& form) { return {{"scale", form.scale}, {"zero", form.zero}}; }

OrderedJson json_of(const QuantizedLayer& layer) {
  OrderedJson json = {{"x", json_of(layer.x)}};
  if (layer.residual) json["residual"] = json_of(*layer.residual);
  if (layer.y) json["y"] = json_of(*layer.y);
  return json;
}

QuantParams form_from(const Json& json, const std::string& where) {
  const QuantParams form{json.at("scale").get<float>(),
                         static_cast<uint8_t>(count_at(json, "zero", UINT8_MAX, where, Fault::data))};
  if (!(std::isnormal(form.scale) && form.scale > 0))
    throw Error(Fault::data, concat(where, ": scale is ", json.at("scale").dump(), ", expected a positive number"));
  return form;
}

QuantizedLayer layer_from(const Json& json, const std::string& where) {
  QuantizedLayer layer{form_from(json.at("x"), where), {}, {}};
  if (json.contains("residual")) layer.residual = form_from(json.at("residual"), where);
  if (json.contains("y")) layer.y = form_from(json.at("y"), where);
  return layer;
}

std::string text_of(const Calibration& calibration) {
  OrderedJson::object_t layers;  // built by appending: its operator[] is linear
  for (const auto& [name, layer] : calibration.layers) layers.emplace_back(name, json_of(layer));
  OrderedJson json = {{"format", concat(kFormat, " ", kCalibrationFormat.newest)},
                      {"identity", calibration.identity},
                      {"weights", calibration.weights},
                      {"ranges", calibration.ranges},
                      {"images", calibration.images},
                      {"layers", layers}};
  const std::string text = json.dump();
  json["checksum"] = crc32c(text.data(), text.size());
  return json.dump(1) + "\n";
}

Calibration calibration_from(const std::string& text, const std::string& path) {
  const auto json = parse_json<Json>(text, path, Fault::data, kLimits);
  Calibration calibration;
  try {
    const auto format = json.is_object() ? format_number(json.value("format", ""), kFormat) : std::nullopt;
    if (!format) throw Error(Fault::data, path + ": not a calibration");
    require_readable(kCalibrationFormat, *format, path);
    json.at("identity").get_to(calibration.identity);
    json.at("weights").get_to(calibration.weights);
    json.at("ranges").get_to(calibration.ranges);
    calibration.images = count_at(json, "images", kMostImages, path + ": damaged", Fault::data);
    for (const auto& [name, layer] : json.at("layers").items())
      calibration.layers[name] = layer_from(layer, concat(path, ": damaged: ", name));
  } catch (const nlohmann::json::exception& error) {
    throw Error(Fault::data, concat(path, ": damaged: ", error.what()));
  }
  // A file is intact if it equals the serialisation of its content byte for byte.
  if (text_of(calibration) != text) throw Error(Fault::data, path + ": damaged: checksum mismatch");
  return calibration;
}

}  // namespace

std::string weights_digest(const ParameterStore& store) {
  Digest digest;
  const auto add = [&](const auto& entries) {
    for (const auto& entry : entries) {
      digest.add(entry.name.c_str(), entry.name.size() + 1);
      std::vector<float> values(static_cast<size_t>(entry.value.count()));
      store.context().download(entry.value, values.data(), "digest of weights");
      digest.add(values.data(), values.size() * sizeof(float));
    }
  };
  add(store.parameters());
  add(store.buffers());
  return digest.hex();
}

void save_calibration(const Calibration& calibration, const std::string& path) {
  ResultFile file(path);
  file.write(text_of(calibration));
  file.commit();
}

Calibration load_calibration(const std::string& path) {
  const std::string text = read_text(path, kLimits.bytes);
  try {
    return calibration_from(text, path);
  } catch (const FormatError&) {  // with the way out
    throw;
  } catch (const Error& error) {
    throw Error(error.fault(), concat(error.what(), "; make one by dtrain-classify calibrate"));
  }
}

QuantizedLayers layers_of(const Calibration& calibration, const std::string& path,
                          const std::map<std::string, std::string>& identity, const ParameterStore& store,
                          WeightsOfCalibration weights) {
  for (const auto& [what, value] : identity) {
    const auto found = calibration.identity.find(what);
    const std::string theirs = found == calibration.identity.end() ? "" : found->second;
    DT_CHECK(theirs == value, path, ": a calibration for ", what, " ", theirs, ", expected ", value,
             "; make one by dtrain-classify calibrate");
  }
  DT_CHECK(weights == WeightsOfCalibration::any || calibration.weights == weights_digest(store), path,
           ": a calibration of other weights; make one of these by dtrain-classify calibrate");
  return layers_of(calibration.layers, store);
}

}  // namespace dtrain
