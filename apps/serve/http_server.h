// HTTP server, independent of models: Boost.Beast with limits on all client-controlled resources.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include "apps/serve/http_connection.h"
#include "apps/serve/http_message.h"

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

class HttpServer {
 public:
  using Handler = std::function<void(const Request&, Response&)>;
  using Answered = std::function<void(int status, double seconds)>;
  // `token`: bearer token required by all paths except /, /healthz and /readyz; empty: none, and then cross-site
  // browser requests are refused, see browser_rules.h. `hosts`: allowed Host names.
  HttpServer(HttpLimits limits, std::string token, std::vector<std::string> hosts, Answered answered);

  // Registers the handler of a path; that of GET answers HEAD, too. An exception becomes a response: Fault::data 400,
  // Fault::resource 503, any other 500.
  void add(http::verb method, const std::string& path, Handler handler);

  // Returns the port. Throws Error(Fault::resource) if it cannot listen.
  int bind(const std::string& address, int port);
  // Answers requests until drain().
  void run();
  // Graceful shutdown: answers requests in progress within the drain timeout and closes connections; then run(), in
  // another thread, returns.
  void drain();

 private:
  struct Refusal {
    unsigned status = 0;  // 0: none
    std::string why{};
  };
  Refusal refusal_of(const RequestHead& head) const;
  Refusal refusal_of_body(const RequestHead& head) const;
  bool bears_token(const RequestHead& head) const;
  void accept_next();
  void serve(HttpConnection& connection);
  // Whether the connection stays open.
  bool serve_request(HttpConnection& connection);
  void handle(const RequestHead& head, std::string body, Response& response) const;
  bool send(HttpConnection& connection, Response& response, bool is_head);

  const HttpLimits limits_;
  const std::string token_;
  const std::vector<std::string> hosts_;
  const Answered answered_;
  std::map<std::pair<http::verb, std::string>, Handler> handlers_;
  std::atomic<bool> stopping_ = false;
  std::atomic<HttpConnection::Clock::time_point> end_of_drain_ = HttpConnection::Clock::time_point::max();
  std::atomic<size_t> connections_ = 0;
  boost::asio::io_context io_;  // of the acceptor
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  boost::asio::thread_pool threads_;
};

}  // namespace dtrain::serve
