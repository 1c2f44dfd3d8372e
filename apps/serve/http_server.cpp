#include "apps/serve/http_server.h"

#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "apps/serve/browser_rules.h"
#include "apps/serve/http_stream.h"
#include "apps/serve/json_forms.h"
#include "libdtrain/core/error.h"

namespace dtrain::serve {
namespace {

using Clock = BoundedStream::Clock;

constexpr size_t kHeadBytes = size_t{32} << 10;  // request line and headers
constexpr size_t kSpareThreads = 4;              // threads that answer surplus connections with 503
constexpr std::chrono::seconds kListenerStarts{10};

// Thread-local, because cpp-httplib cannot pass it to handlers; a thread handles one request at a time.
thread_local Clock::time_point deadline_of_request;
thread_local Clock::time_point begin_of_request;
thread_local const std::atomic<Clock::time_point>* drain_of_request = nullptr;  // the server's

// A whole response, because the request is not read.
const char kBusy[] =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    "Content-Length: 33\r\n\r\n{\"error\":\"too many connections\"}\n";

}  // namespace

Clock::time_point request_deadline() { return std::min(deadline_of_request, drain_of_request->load()); }

bool request_is_over() { return Clock::now() >= request_deadline(); }

void answer(httplib::Response& response, int status, std::string json) {
  response.status = status;
  response.set_content(json + "\n", "application/json");
}

HttpServer::HttpServer(HttpLimits limits, std::string token, std::vector<std::string> hosts, Answered answered)
    : limits_(limits), token_(std::move(token)), hosts_(std::move(hosts)), answered_(std::move(answered)) {
  new_task_queue = [this] { return new httplib::ThreadPool(limits_.connections + kSpareThreads); };
  set_payload_max_length(limits_.body_bytes);
  set_tcp_nodelay(true);
  // cpp-httplib would set SO_REUSEPORT, which lets a second server take half of the connections.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    const Refusal refusal = refusal_of(request);
    if (refusal.status == 0) return HandlerResponse::Unhandled;
    answer(response, refusal.status, error_json(refusal.why));
    if (refusal.status == 401) response.set_header("WWW-Authenticate", "Bearer");
    return HandlerResponse::Handled;
  });
  set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
    const Refusal refusal = refusal_of(request);
    if (refusal.status == 0) return 100;
    answer(response, refusal.status, error_json(refusal.why));
    return refusal.status;
  });
  set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const bool unknown = response.status == 404;
    answer(response, response.status, error_json(unknown ? "no such resource here" : "the request cannot be read"));
  });
  set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      if (error.fault() == Fault::resource) response.set_header("Retry-After", "1");
      answer(response,
             error.fault() == Fault::data       ? 400
             : error.fault() == Fault::resource ? 503
                                                : 500,
             error_json(error.what()));
    } catch (const std::exception& error) {
      answer(response, 500, error_json(error.what()));
    }
  });
  set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
    const std::chrono::duration<double, std::milli> taken = Clock::now() - begin_of_request;
    response.set_header("Server-Timing", concat("total;dur=", taken.count()));
    set_security_headers(response);
  });
  set_logger([this](const httplib::Request&, const httplib::Response& response) {
    answered_(response.status, std::chrono::duration<double>(Clock::now() - begin_of_request).count());
  });
}

int HttpServer::bind(const std::string& address, int port) {
  if (port == 0)
    port = bind_to_any_port(address);
  else if (!bind_to_port(address, port))
    port = -1;
  if (port < 0)
    throw Error(Fault::resource, concat("cannot listen at ", address,
                                        ": another program listens at that port, or this "
                                        "host has no such address; give another --port or --address"));
  // cpp-httplib's listen backlog of 5 would drop bursts of connections.
  ::listen(svr_sock_, SOMAXCONN);
  return port;
}

void HttpServer::drain() {
  end_of_drain_ = Clock::now() + limits_.drain;
  stopping_ = true;
  // cpp-httplib's stop() has no effect before its listener thread runs.
  for (const auto latest = Clock::now() + kListenerStarts; !is_running() && Clock::now() < latest;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop();
}

bool HttpServer::bears_token(const httplib::Request& request) const {
  if (token_.empty() || request.path == "/" || request.path == "/healthz" || request.path == "/readyz") return true;
  const std::string given = request.get_header_value("Authorization"), expected = "Bearer " + token_;
  return given.size() == expected.size() && sodium_memcmp(given.data(), expected.data(), given.size()) == 0;
}

// An ambiguous body length allows request smuggling through a proxy, and this version's decoders of compressed and
// chunked bodies are unbounded.
HttpServer::Refusal HttpServer::refusal_of_body(const httplib::Request& request) const {
  const size_t lengths = request.get_header_value_count("Content-Length");
  if (request.has_header("Transfer-Encoding")) return {411, "a body needs a Content-Length; it may not be chunked"};
  if (request.has_header("Content-Encoding")) return {415, "a body may not be compressed"};
  const bool takes_body = request.method == "POST" || request.method == "PUT";
  if (lengths == 0) return takes_body ? Refusal{411, "a body needs a Content-Length"} : Refusal{};
  const std::string text = request.get_header_value("Content-Length");
  uint64_t length = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (lengths > 1 || wrong == std::errc::invalid_argument || end != text.data() + text.size())
    return {400, "Content-Length is not one number"};
  if (wrong != std::errc{} || length > limits_.body_bytes)
    return {413, concat("a body may have ", limits_.body_bytes, " bytes")};
  if (length > 0 && !takes_body) return {400, "a request of this method has no body"};
  return {};
}

HttpServer::Refusal HttpServer::refusal_of(const httplib::Request& request) const {
  const std::string& method = request.method;
  if (method != "GET" && method != "HEAD" && method != "POST" && method != "PUT") return {405, "no such method here"};
  if (token_.empty())
    if (std::string problem = csrf_problem(request, hosts_); !problem.empty()) return {403, std::move(problem)};
  if (!bears_token(request)) return {401, "expected the header Authorization: Bearer TOKEN"};
  return refusal_of_body(request);
}

void HttpServer::serve_connection(socket_t socket) {
  BoundedStream stream(socket, end_of_drain_);
  drain_of_request = &end_of_drain_;
  bool closed = false;
  while (!closed && stream.wait_for_request(limits_.idle, stopping_)) {
    begin_of_request = Clock::now();
    deadline_of_request = begin_of_request + limits_.request;
    stream.begin(kHeadBytes, deadline_of_request);
    bool sound = false;
    const auto prepare = [&](httplib::Request& request) {
      // Reads bodies as raw bytes, without form parsing; sends no range responses.
      request.headers.erase("Content-Type");
      request.headers.erase("Accept-Encoding");
      request.ranges.clear();
      sound = refusal_of(request).status == 0;
      if (!sound || stopping_) {
        request.headers.erase("Connection");
        request.headers.emplace("Connection", "close");
        closed = true;
      }
      if (sound) stream.allow(limits_.body_bytes);
    };
    if (!process_request(stream, /*close_connection=*/stopping_, closed, prepare)) break;
    closed = closed || !sound;
  }
  stream.linger();
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  const size_t others = connections_++;
  if (others >= limits_.connections) {
    answered_(503, 0);
    BoundedStream stream(socket, end_of_drain_);
    stream.begin(0, Clock::now());
    stream.httplib::Stream::write(kBusy);
    stream.linger();
  } else {
    serve_connection(socket);
  }
  --connections_;
  close(socket);
  return true;
}

}  // namespace dtrain::serve
