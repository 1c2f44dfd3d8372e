// HTTP endpoints of the server.
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
  std::vector<NamedModel> models;  // the first determines the server's readiness
  AnswerForm form{};               // default of requests
  DecodeLimits decoding{};
  size_t max_image_bytes = 0;  // per file of `images`
  int preparing = 1;           // concurrent JSON parses and image decodes
  std::vector<LabelledImage> images;
  MemoryBudget& budget;  // memory of all images
  Batcher& batcher;
  Metrics& metrics;
};

// Registers the endpoints. Objects that `endpoints` refers to must outlive the server.
void add_endpoints(HttpServer& server, const Endpoints& endpoints);

// Whether a name is valid in a URL path: letters, digits, '.', '_' and '-'.
bool is_model_name(const std::string& name);

}  // namespace dtrain::serve
