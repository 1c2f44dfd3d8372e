// HTTP server, independent of models: cpp-httplib with limits on all client-controlled resources.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <httplib.h>

namespace dtrain::serve {

struct HttpLimits {
  size_t body_bytes = 0;
  size_t connections = 0;             // concurrent; more are answered with 503
  std::chrono::milliseconds request;  // from the first byte of a request to the last of its response
  std::chrono::milliseconds idle;     // idle time between two requests of a connection
  std::chrono::milliseconds drain;    // for requests in progress when the server stops
};

// Deadline of the current thread's request; earlier once the server stops. For handlers.
std::chrono::steady_clock::time_point request_deadline();
bool request_is_over();  // its deadline has passed

class HttpServer final : public httplib::Server {
 public:
  using Answered = std::function<void(int status, double seconds)>;
  // `token`: bearer token required by all paths except /, /healthz and /readyz; empty: none, and then cross-site
  // browser requests are refused, see browser_rules.h. `hosts`: allowed Host names.
  HttpServer(HttpLimits limits, std::string token, std::vector<std::string> hosts, Answered answered);

  // Returns the port. Throws Error(Fault::resource) if it cannot listen.
  int bind(const std::string& address, int port);
  // Graceful shutdown: answers requests in progress within the drain timeout and closes connections; then
  // listen_after_bind(), running in another thread, returns.
  void drain();

 private:
  struct Refusal {
    int status = 0;  // 0: none
    std::string why{};
  };
  bool process_and_close_socket(socket_t socket) override;
  Refusal refusal_of(const httplib::Request& request) const;
  // Reason why a body has an ambiguous length or is too large.
  Refusal refusal_of_body(const httplib::Request& request) const;
  bool bears_token(const httplib::Request& request) const;
  void serve_connection(socket_t socket);

  const HttpLimits limits_;
  const std::string token_;
  const std::vector<std::string> hosts_;
  const Answered answered_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::chrono::steady_clock::time_point> end_of_drain_ = std::chrono::steady_clock::time_point::max();
  std::atomic<size_t> connections_ = 0;
};

void answer(httplib::Response& response, int status, std::string json);

}  // namespace dtrain::serve
