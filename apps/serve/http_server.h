// HTTP, as far as it has nothing to do with models: cpp-httplib's parser with bounds on all that a client can make it
// do.
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
  size_t connections = 0;             // at once; more are answered with 503
  std::chrono::milliseconds request;  // from the first byte of a request to the last of its response
  std::chrono::milliseconds idle;     // between two requests of a connection
  std::chrono::milliseconds drain;    // for requests that are under way when the server stops
};

// Called in handlers: when the request that this thread answers has to be done, which is sooner once the server stops.
std::chrono::steady_clock::time_point request_deadline();
bool request_is_over();  // its deadline has passed

class HttpServer final : public httplib::Server {
 public:
  using Answered = std::function<void(int status, double seconds)>;
  // `token`: what requests to all but /, /healthz and /readyz have to bear; empty: none, and then requests that pages
  // of other sites may have made a browser send are refused, see browser_rules.h. `hosts`: names of this host.
  HttpServer(HttpLimits limits, std::string token, std::vector<std::string> hosts, Answered answered);

  // Returns the port. Throws Error(Fault::resource) where it cannot listen there.
  int bind(const std::string& address, int port);
  // Requests under way are answered, within the limit of a drain, and their connections closed; listen_after_bind(),
  // which another thread has called or is about to call, returns after that.
  void drain();

 private:
  struct Refusal {
    int status = 0;  // 0: none
    std::string why{};
  };
  bool process_and_close_socket(socket_t socket) override;
  Refusal refusal_of(const httplib::Request& request) const;
  // Why a body could not be told from the next request, or would be too large.
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
