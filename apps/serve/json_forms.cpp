#include "apps/serve/json_forms.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/cli/ranking.h"
#include "apps/detection/detections.h"
#include "dtrain/core/error.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::serve {
namespace {

using Json = nlohmann::ordered_json;  // for answers
using BodyJson = nlohmann::json;      // logarithmic key lookup

// Six images of 224 x 224 as arrays; their parse tree takes about 75 MB.
constexpr size_t kMostValues = 1'000'000, kMostKeys = 1000;
constexpr int kDepth = 8;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// Appends the values of [height, width, 3]; the session checks their number.
void append_levels(const BodyJson& array, int depth, size_t i, std::vector<float>& levels) {
  const auto wrong = [&](const char* what) {
    throw Error(Fault::data, concat("instances[", i, "]: expected arrays [height, width, 3] of numbers, found ", what));
  };
  if (!array.is_array()) wrong("something else");
  if (depth == 2 && array.size() != 3) wrong("a pixel that has not 3 levels");
  for (const BodyJson& item : array) {
    if (depth < 2)
      append_levels(item, depth + 1, i, levels);
    else if (item.is_number())
      levels.push_back(item.get<float>());
    else
      wrong("a level that is not a number");
  }
}

Instance instance_from(const BodyJson& json, size_t i) {
  if (json.is_array()) {
    std::vector<float> levels;
    append_levels(json, 0, i, levels);
    return levels;
  }
  const BodyJson* object = &json;
  if (object->is_object() && object->size() == 1 && object->begin()->is_object()) object = &*object->begin();
  if (!object->is_object() || object->size() != 1 || !object->contains("b64") || !object->at("b64").is_string())
    throw Error(Fault::data, concat("instances[", i, R"(]: expected {"b64": "..."} or an array)"));
  try {
    return from_base64(object->at("b64").get_ref<const std::string&>());
  } catch (const Error& error) {
    throw Error(error.fault(), concat("instances[", i, "]: ", error.what()));
  }
}

Json box_of(const data::coco::BoundingBox& box) { return {box.x, box.y, box.width, box.height}; }

std::string category_of(const Session& session, int64_t id) {
  const auto& all = session.categories();
  const auto found = std::ranges::find(all, id, &data::coco::Category::id);
  return found == all.end() ? concat("category ", id) : found->name;
}

Json form_of(const Prediction& result, const Session& session, const AnswerForm& form) {
  Json list = Json::array();
  if (!session.detects()) {
    const auto names = session.class_names();
    for (size_t c : cli::ranking(result.probabilities, form.top)) {
      Json guess = {{"class", c}};
      if (c < names.size() && !names[c].empty()) guess["name"] = names[c];
      guess["probability"] = result.probabilities[c];
      if (!result.damage.empty()) guess["warning"] = result.damage;
      list.push_back(std::move(guess));
    }
    return list;
  }
  for (const data::coco::Detection& one : result.objects) {
    if (one.score < form.score_threshold) continue;
    list.push_back(detection::json_of(one));
    list.back()["category"] = category_of(session, one.category_id);
  }
  Json json = {{"width", result.width}, {"height", result.height}, {"detections", std::move(list)}};
  if (!result.damage.empty()) json["warning"] = result.damage;
  return json;
}

}  // namespace

std::vector<std::byte> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) throw Error(Fault::data, concat("base64 of ", text.size(), " characters is cut off"));
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t group = 0;
  int bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int digit = digit_of(text[i]);
    if (digit < 0) throw Error(Fault::data, concat("character ", i, " is not base64"));
    group = group << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(group >> bits & 0xff));
  }
  return bytes;
}

std::vector<Instance> read_instances(std::string_view body, size_t max_instances, bool (*stop)()) {
  const JsonLimits limits{.bytes = body.size() /* which --max_body_mb limits */,
                          .depth = kDepth,
                          .keys = kMostKeys,
                          .values = kMostValues,
                          .stop = stop};
  const auto json = parse_json<BodyJson>(body, "the body", Fault::data, limits);
  if (!json.is_object() || !json.contains("instances") || !json.at("instances").is_array())
    throw Error(Fault::data, R"(expected {"instances": [...]})");
  const BodyJson& list = json.at("instances");
  if (list.empty() || list.size() > max_instances)
    throw Error(Fault::data, concat("expected 1 to ", max_instances, " instances, found ", list.size()));
  std::vector<Instance> instances;
  for (size_t i = 0; i < list.size(); ++i) instances.push_back(instance_from(list[i], i));
  return instances;
}

std::string prediction_json(const Prediction& result, const Session& session, const AnswerForm& form) {
  return dumped(form_of(result, session, form));
}

std::string predictions_json(const std::vector<Prediction>& results, const Session& session, const AnswerForm& form) {
  Json json = {{"predictions", Json::array()}, {"version", session.version()}};
  for (const Prediction& result : results) json["predictions"].push_back(form_of(result, session, form));
  return dumped(json);
}

Json model_json(const std::string& name, const Session* session) {
  Json json = {{"name", name}, {"ready", session != nullptr}};
  if (session == nullptr) return json;
  json["detects"] = session->detects();
  json["version"] = session->version();
  json["precision"] = session->precision();
  json["categories"] = Json::array();
  for (const auto& category : session->categories())
    json["categories"].push_back({{"id", category.id}, {"name", category.name}});
  return json;
}

std::string images_json(const std::vector<LabelledImage>& images, const Session* session) {
  std::optional<LabelRule> rule;
  if (session) rule.emplace(session->class_names(), session->outputs(), images);
  Json list = Json::array();
  for (const LabelledImage& image : images) {
    Json json = {{"name", image.name}};
    if (!image.class_name.empty()) {
      if (const auto label = rule ? rule->label_of(image) : std::nullopt) json["label"] = *label;
      json["label_name"] = image.class_name;
    } else {
      json["objects"] = Json::array();
      for (const auto& object : image.objects)
        json["objects"].push_back({{"bbox", box_of(object.box)}, {"category_id", object.category_id}});
    }
    list.push_back(std::move(json));
  }
  return dumped(Json{{"images", std::move(list)}});
}

std::string status_json(const Session* session) {
  Json status = {{"version", session ? std::to_string(session->version()) : ""},
                 {"state", session ? "AVAILABLE" : "START"},
                 {"status", {{"error_code", "OK"}, {"error_message", session ? "" : "no checkpoint yet"}}}};
  Json json;
  json["model_version_status"] = Json::array({status});
  return dumped(json);
}

std::string error_json(std::string_view message) { return dumped(Json{{"error", message}}); }

}  // namespace dtrain::serve
