// What a server answers to which requests.
#pragma once

#include <string>

#include "apps/serve/batcher.h"
#include "apps/serve/decoding.h"
#include "apps/serve/http_server.h"
#include "apps/serve/json_forms.h"
#include "apps/serve/metrics.h"
#include "apps/serve/served_model.h"

namespace dtrain::serve {

struct NamedModel {
  std::string name;  // in paths
  const ServedModel* model = nullptr;
};

struct Endpoints {
  std::vector<NamedModel> models;  // the first is the one whose readiness is the server's
  AnswerForm form{};               // where a request does not say otherwise
  DecodeLimits decoding{};
  size_t max_image_bytes = 0;  // of a file of `images`
  int preparing = 1;           // requests whose JSON or images are decoded at once
  std::vector<LabelledImage> images;
  Room& room;  // of all images
  Batcher& batcher;
  Metrics& metrics;
};

// Registers the endpoints. What `endpoints` refers to must outlive the server.
void add_endpoints(HttpServer& server, const Endpoints& endpoints);

// Whether a name can stand in a path as it is: letters, digits, '.', '_' and '-'.
bool is_served_name(const std::string& name);

}  // namespace dtrain::serve
