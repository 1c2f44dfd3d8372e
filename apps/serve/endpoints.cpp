#include "apps/serve/endpoints.h"

#include <algorithm>
#include <semaphore>

#include "apps/serve/json_forms.h"
#include "libdtrain/core/error.h"

namespace dtrain::serve {
namespace {

using httplib::Request;
using httplib::Response;

// cpp-httplib takes paths for regular expressions.
std::string literal(const std::string& name) {
  std::string text;
  for (char c : name) text += c == '.' ? std::string("\\.") : std::string(1, c);
  return text;
}

class Predictions {
 public:
  explicit Predictions(const Endpoints& endpoints) : e_(endpoints), preparing_(endpoints.preparing) {}

  void predict(const Request& request, Response& response) {
    const auto session = session_for(response);
    if (!session) return;
    auto results = run(session, prepared([&] { return pixels_of(*session, request.body); }), response);
    if (!results.empty()) answer(response, 200, predictions_json(results, e_.top, session->version()));
  }

  void predict_image(const Request& request, Response& response) {
    const auto session = session_for(response);
    if (!session) return;
    const auto decode = [&] {
      std::vector<Pixels> one;
      one.push_back(session->decode(std::as_bytes(std::span(request.body))));
      return one;
    };
    const auto results = run(session, prepared(decode), response);
    if (results.empty()) return;
    response.set_header("X-Model-Version", std::to_string(session->version()));
    answer(response, 200, ranking_json(results.front(), e_.top));
  }

  // The form that readiness and status share.
  void status(Response& response, bool ready_alone) const {
    const auto session = e_.model.session();
    answer(response, ready_alone && !session ? 503 : 200, status_json(session.get()));
  }

  void metrics(Response& response) const {
    response.set_content(e_.metrics.text(e_.batcher.waiting()), "text/plain; version=0.0.4; charset=utf-8");
  }

 private:
  std::shared_ptr<const Session> session_for(Response& response) const {
    auto session = e_.model.session();
    if (!session) refuse(response, "no checkpoint yet");
    return session;
  }

  static void refuse(Response& response, const char* why) {
    response.set_header("Retry-After", "1");
    answer(response, 503, error_json(why));
  }

  // Decoding takes memory many times that of what is decoded: only a few requests do so at once.
  template <class Make>
  std::vector<Pixels> prepared(const Make& make) {
    if (!preparing_.try_acquire_until(request_deadline())) throw Error(Fault::resource, "too many requests");
    struct Release {
      std::counting_semaphore<>& semaphore;
      ~Release() { semaphore.release(); }
    } release{preparing_};
    return make();
  }

  std::vector<Pixels> pixels_of(const Session& session, const std::string& body) const {
    std::vector<Pixels> images;
    for (const Instance& instance : read_instances(body, e_.max_instances)) {
      const auto* encoded = std::get_if<std::vector<std::byte>>(&instance);
      try {
        images.push_back(encoded ? session.decode(*encoded) : session.from_levels(std::get<1>(instance)));
      } catch (const Error& error) {
        throw Error(error.fault(), concat("instances[", images.size(), "]: ", error.what()));
      }
    }
    return images;
  }

  // Empty where the response already says why.
  std::vector<Probabilities> run(const std::shared_ptr<const Session>& session, std::vector<Pixels> images,
                                 Response& response) {
    auto futures = e_.batcher.submit(session, std::move(images), request_deadline());
    if (futures.empty()) refuse(response, "too many images wait");
    std::vector<Probabilities> results;
    for (auto& future : futures) {
      if (future.wait_until(request_deadline()) != std::future_status::ready) {
        answer(response, 504, error_json("the model did not come to this request in time"));
        return {};
      }
      results.push_back(future.get());
    }
    return results;
  }

  const Endpoints e_;
  std::counting_semaphore<> preparing_;
};

}  // namespace

bool is_served_name(const std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 100 && name.find_first_not_of(kLetters) == std::string::npos;
}

void add_endpoints(HttpServer& server, const Endpoints& endpoints) {
  const auto predictions = std::make_shared<Predictions>(endpoints);
  const std::string name = literal(endpoints.name);
  server.Post("/v1/models/" + name + ":predict",
              [=](const Request& request, Response& response) { predictions->predict(request, response); });
  const auto image = [=](const Request& request, Response& response) { predictions->predict_image(request, response); };
  server.Put("/predictions/" + name, image);
  server.Post("/predictions/" + name, image);
  server.Get("/v1/models/" + name,
             [=](const Request&, Response& response) { predictions->status(response, /*ready_alone=*/false); });
  server.Get("/readyz", [=](const Request&, Response& response) { predictions->status(response, true); });
  server.Get("/healthz", [](const Request&, Response& response) { answer(response, 200, R"({"status":"ok"})"); });
  server.Get("/metrics", [=](const Request&, Response& response) { predictions->metrics(response); });
}

}  // namespace dtrain::serve
