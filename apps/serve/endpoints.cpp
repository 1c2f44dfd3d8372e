#include "apps/serve/endpoints.h"

#include <nlohmann/json.hpp>
#include <semaphore>

#include "apps/serve/answer_form.h"
#include "apps/serve/page.h"
#include "dtrain/core/error.h"

namespace dtrain::serve {
namespace {

constexpr std::chrono::milliseconds kLookAgain{100};  // polling interval for the deadline of a queued request

class Predictions {
 public:
  explicit Predictions(const Endpoints& endpoints) : e_(endpoints), preparing_(endpoints.preparing) {}

  void predict(const ServedModel& model, const Request& request, Response& response) {
    const AnswerForm form = form_of(request, e_.form);
    const auto session = session_for(model, response);
    if (!session) return;
    auto results = run(
        session, prepared([&] { return decoded_instances(*session, request.body, e_.decoding, e_.budget); }), response);
    if (!results.empty()) answer(response, 200, predictions_json(results, *session, form));
  }

  void predict_image(const ServedModel& model, const Request& request, Response& response) {
    const AnswerForm form = form_of(request, e_.form);
    const auto session = session_for(model, response);
    if (!session) return;
    const auto decode = [&] {
      std::vector<Pixels> one;
      one.push_back(decoded_image(*session, std::as_bytes(std::span(request.body)), e_.decoding, e_.budget));
      return one;
    };
    const auto results = run(session, prepared(decode), response);
    if (results.empty()) return;
    response.set("X-Model-Version", std::to_string(session->version()));
    answer(response, 200, prediction_json(results.front(), *session, form));
  }

  // Response of readiness and status.
  static void status(const ServedModel& model, Response& response, bool ready_alone) {
    const auto session = model.session();
    answer(response, ready_alone && !session ? 503 : 200, status_json(session.get()));
  }

  void models(Response& response) const {
    nlohmann::ordered_json json = {{"models", nlohmann::ordered_json::array()}, {"images", e_.images.size()}};
    for (const NamedModel& named : e_.models)
      json["models"].push_back(model_json(named.name, named.model->session().get()));
    answer(response, 200, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  void images(Response& response) const {
    const auto session = e_.models.front().model->session();
    answer(response, 200, images_json(e_.images, session.get()));
  }

  void image(size_t index, Response& response) const {
    response.body() = read_image(e_.images[index], e_.max_image_bytes);
    response.set(http::field::content_type,
                 data::media_type_of(data::sniff_image(std::as_bytes(std::span(response.body())))));
  }

  void metrics(Response& response) const {
    response.body() = e_.metrics.text(e_.batcher.waiting());
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
  }

 private:
  static std::shared_ptr<const Session> session_for(const ServedModel& model, Response& response) {
    auto session = model.session();
    if (!session) refuse(response, "no checkpoint yet");
    return session;
  }

  static void refuse(Response& response, const char* why) {
    response.set("Retry-After", "1");
    answer(response, 503, error_json(why));
  }

  // JSON parsing takes many times the memory of the body, so its concurrency is limited.
  template <class Make>
  std::vector<Pixels> prepared(const Make& make) {
    while (!preparing_.try_acquire_for(kLookAgain))
      if (request_is_over()) throw Error(Fault::resource, "too many requests");
    struct Release {
      std::counting_semaphore<>& semaphore;
      ~Release() { semaphore.release(); }
    } release{preparing_};
    return make();
  }

  // Empty if the response already has an error.
  std::vector<Prediction> run(const std::shared_ptr<const Session>& session, std::vector<Pixels> images,
                              Response& response) {
    auto futures = e_.batcher.submit(session, std::move(images), request_deadline());
    if (futures.empty()) refuse(response, "too many images wait");
    std::vector<Prediction> results;
    for (auto& future : futures) {
      while (future.wait_for(kLookAgain) != std::future_status::ready) {
        if (!request_is_over()) continue;
        answer(response, 504, error_json("the request timed out in the queue"));
        return {};
      }
      results.push_back(future.get());
    }
    return results;
  }

  const Endpoints e_;
  std::counting_semaphore<> preparing_;
};

void add_model(HttpServer& server, const std::shared_ptr<Predictions>& predictions, const NamedModel& named) {
  const std::string path = "/v1/models/" + named.name;
  const ServedModel& model = *named.model;
  server.add(http::verb::post, path + ":predict", [predictions, &model](const Request& request, Response& response) {
    predictions->predict(model, request, response);
  });
  const auto image = [predictions, &model](const Request& request, Response& response) {
    predictions->predict_image(model, request, response);
  };
  server.add(http::verb::put, "/predictions/" + named.name, image);
  server.add(http::verb::post, "/predictions/" + named.name, image);
  server.add(http::verb::get, path, [&model](const Request&, Response& response) {
    Predictions::status(model, response, /*ready_alone=*/false);
  });
}

}  // namespace

bool is_model_name(const std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 100 && name.find_first_not_of(kLetters) == std::string::npos;
}

void add_endpoints(HttpServer& server, const Endpoints& endpoints) {
  const auto predictions = std::make_shared<Predictions>(endpoints);
  for (const NamedModel& named : endpoints.models) add_model(server, predictions, named);
  const ServedModel& first = *endpoints.models.front().model;
  const auto get = [&](const std::string& path, HttpServer::Handler handler) {
    server.add(http::verb::get, path, std::move(handler));
  };
  get("/readyz", [&](const Request&, Response& response) { Predictions::status(first, response, true); });
  get("/healthz", [](const Request&, Response& response) { answer(response, 200, R"({"status":"ok"})"); });
  get("/metrics", [=](const Request&, Response& response) { predictions->metrics(response); });
  get("/models", [=](const Request&, Response& response) { predictions->models(response); });
  get("/images", [=](const Request&, Response& response) { predictions->images(response); });
  for (size_t i = 0; i < endpoints.images.size(); ++i)
    get(concat("/images/", i), [=](const Request&, Response& response) { predictions->image(i, response); });
  get("/", [](const Request&, Response& response) {
    response.set("Content-Security-Policy", page_policy());
    response.set(http::field::content_type, "text/html; charset=utf-8");
    response.body() = page();
  });
}

}  // namespace dtrain::serve
