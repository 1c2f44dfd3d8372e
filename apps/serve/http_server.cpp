#include "apps/serve/http_server.h"

#include <sodium.h>

#include <algorithm>
#include <memory>
#include <thread>

#include <boost/asio/post.hpp>

#include "apps/serve/browser_rules.h"
#include "apps/serve/json_forms.h"
#include "dtrain/core/error.h"

namespace dtrain::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = HttpConnection::Clock;

constexpr unsigned kHeadBytes = 32U << 10;  // request line and headers
constexpr size_t kSpareThreads = 4;         // threads that answer surplus connections with 503
constexpr std::chrono::milliseconds kAcceptAgain{10};
constexpr std::chrono::seconds kSending{2};  // for a response that is finished at the last moment

// Of the request that this thread handles; handlers see them by request_deadline().
thread_local Clock::time_point begin_of_request;
thread_local Clock::time_point deadline_of_request;
thread_local const std::atomic<Clock::time_point>* drain_of_request = nullptr;  // the server's

bool takes_body(http::verb method) { return method == http::verb::post || method == http::verb::put; }

}  // namespace

Clock::time_point request_deadline() { return std::min(deadline_of_request, drain_of_request->load()); }

bool request_is_over() { return Clock::now() >= request_deadline(); }

HttpServer::HttpServer(HttpLimits limits, std::string token, std::vector<std::string> hosts, Answered answered)
    : limits_(limits),
      token_(std::move(token)),
      hosts_(std::move(hosts)),
      answered_(std::move(answered)),
      threads_(limits.connections + kSpareThreads) {}

void HttpServer::add(http::verb method, const std::string& path, Handler handler) {
  handlers_[{method, path}] = std::move(handler);
}

int HttpServer::bind(const std::string& address, int port) {
  try {
    const tcp::endpoint endpoint =
        tcp::resolver(io_).resolve(address, std::to_string(port), tcp::resolver::passive).begin()->endpoint();
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
    return acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw Error(Fault::resource, concat("cannot listen at ", address, " port ", port, ": ", error.code().message(),
                                        "; give another --port or --address"));
  }
}

void HttpServer::run() {
  accept_next();
  io_.run();  // until drain()
  acceptor_.close();
  threads_.join();
}

void HttpServer::drain() {
  end_of_drain_ = Clock::now() + limits_.drain;
  stopping_ = true;
  io_.stop();
}

void HttpServer::accept_next() {
  const auto connection = std::make_shared<HttpConnection>();
  acceptor_.async_accept(connection->socket(), [this, connection](error_code error) {
    if (error)
      std::this_thread::sleep_for(kAcceptAgain);  // such as too many open files
    else
      asio::post(threads_, [this, connection] { serve(*connection); });
    accept_next();
  });
}

bool HttpServer::bears_token(const RequestHead& head) const {
  const std::string path = path_of({head.target().data(), head.target().size()});
  if (token_.empty() || path == "/" || path == "/healthz" || path == "/readyz") return true;
  const std::string given = field_of(head, "Authorization"), expected = "Bearer " + token_;
  return given.size() == expected.size() && sodium_memcmp(given.data(), expected.data(), given.size()) == 0;
}

HttpServer::Refusal HttpServer::refusal_of_body(const RequestHead& head) const {
  if (head.count(http::field::transfer_encoding) > 0)
    return {411, "a body needs a Content-Length; it may not be chunked"};
  if (head.count(http::field::content_encoding) > 0) return {415, "a body may not be compressed"};
  const std::string length = field_of(head, "Content-Length");
  if (length.empty() && takes_body(head.method())) return {411, "a body needs a Content-Length"};
  if (!length.empty() && length != "0" && !takes_body(head.method()))
    return {400, "a request of this method has no body"};
  return {};
}

HttpServer::Refusal HttpServer::refusal_of(const RequestHead& head) const {
  const http::verb method = head.method();
  if (method != http::verb::get && method != http::verb::head && !takes_body(method))
    return {405, "no such method here"};
  if (token_.empty())
    if (std::string problem = csrf_problem(head, hosts_); !problem.empty()) return {403, std::move(problem)};
  if (!bears_token(head)) return {401, "expected the header Authorization: Bearer TOKEN"};
  return refusal_of_body(head);
}

void HttpServer::handle(const RequestHead& head, std::string body, Response& response) const {
  const std::string_view target(head.target().data(), head.target().size());
  const Request request{path_of(target), parameters_of(target), std::move(body)};
  const http::verb method = head.method() == http::verb::head ? http::verb::get : head.method();
  const auto handler = handlers_.find({method, request.path});
  if (handler == handlers_.end()) return answer(response, 404, error_json("no such resource here"));
  try {
    handler->second(request, response);
  } catch (const Error& error) {
    if (error.fault() == Fault::resource) response.set(http::field::retry_after, "1");
    answer(response,
           error.fault() == Fault::data       ? 400
           : error.fault() == Fault::resource ? 503
                                              : 500,
           error_json(error.what()));
  } catch (const std::exception& error) {
    answer(response, 500, error_json(error.what()));
  }
}

bool HttpServer::send(HttpConnection& connection, Response& response, bool is_head) {
  const std::chrono::duration<double, std::milli> taken = Clock::now() - begin_of_request;
  response.set("Server-Timing", concat("total;dur=", taken.count()));
  set_security_headers(response);
  response.prepare_payload();
  const bool sent = !connection.write(response, is_head, [] { return Clock::now() >= request_deadline() + kSending; });
  answered_(static_cast<int>(response.result_int()),
            std::chrono::duration<double>(Clock::now() - begin_of_request).count());
  return sent && response.keep_alive();
}

bool HttpServer::serve_request(HttpConnection& connection) {
  const auto idle_end = Clock::now() + limits_.idle;
  if (!connection.wait_for_request([&] { return stopping_ || Clock::now() >= idle_end; })) return false;
  begin_of_request = Clock::now();
  deadline_of_request = begin_of_request + limits_.request;

  RequestParser parser;
  parser.header_limit(kHeadBytes);
  parser.body_limit(limits_.body_bytes);
  const error_code error = connection.read_head(parser, request_is_over);
  if (error && !is_malformed(error)) return false;
  const RequestHead& head = parser.get();
  const bool is_head = head.method() == http::verb::head;
  Refusal refusal = !error || error == http::error::body_limit
                        ? refusal_of(head)
                        : Refusal{400, concat("the request cannot be read: ", error.message())};
  if (refusal.status == 0 && error) refusal = {413, concat("a body may have ", limits_.body_bytes, " bytes")};
  Response response(http::status::ok, 11);
  if (refusal.status != 0) {
    if (refusal.status == 401) response.set(http::field::www_authenticate, "Bearer");
    answer(response, refusal.status, error_json(refusal.why));
    response.keep_alive(false);  // the body is not read
    return send(connection, response, is_head);
  }
  if (boost::beast::iequals(head[http::field::expect], "100-continue") && connection.write_continue(request_is_over))
    return false;
  if (connection.read_body(parser, request_is_over)) return false;
  response.keep_alive(parser.keep_alive() && !stopping_);
  handle(head, std::move(parser.get().body()), response);
  return send(connection, response, is_head);
}

void HttpServer::serve(HttpConnection& connection) {
  drain_of_request = &end_of_drain_;
  error_code ignored;
  connection.socket().set_option(tcp::no_delay(true), ignored);
  if (connections_++ < limits_.connections) {
    while (serve_request(connection)) continue;
  } else {
    begin_of_request = deadline_of_request = Clock::now();
    Response response(http::status::ok, 11);
    response.set(http::field::retry_after, "1");
    answer(response, 503, error_json("too many connections"));
    response.keep_alive(false);
    send(connection, response, /*is_head=*/false);
  }
  connection.linger();
  --connections_;
}

}  // namespace dtrain::serve
