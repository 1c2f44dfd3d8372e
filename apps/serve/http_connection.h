// Connection of an untrusted client, with deadlines.
#pragma once

#include <chrono>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>

#include "apps/serve/http_message.h"

namespace dtrain::serve {

using boost::system::error_code;
using RequestParser = http::request_parser<http::string_body>;

// Whether an error of read_head() or read_body() is the parser's, not the connection's or a timeout.
bool is_malformed(const error_code& error);

// Runs one asynchronous operation at a time, in the calling thread. An operation that `is_over`, called every 100 ms,
// ends is cancelled: a timeout of single reads would let a client hold a thread by a byte now and then (slowloris).
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  using IsOver = std::function<bool()>;

  boost::asio::ip::tcp::socket& socket() { return socket_; }

  // Waits for the first byte of a request. False if there is none.
  bool wait_for_request(const IsOver& is_over);
  error_code read_head(RequestParser& parser, const IsOver& is_over);
  error_code read_body(RequestParser& parser, const IsOver& is_over);
  // Omits the body in response to HEAD.
  error_code write(const Response& response, bool is_head, const IsOver& is_over);
  // Asks for the body of a request with "Expect: 100-continue".
  error_code write_continue(const IsOver& is_over);
  // Shuts down writing, and reads on for a second, so that a client that is still sending receives the response.
  void linger();

 private:
  // `start(handler)` starts the operation.
  template <class Start>
  error_code run(const Start& start, const IsOver& is_over);

  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::socket socket_{io_};
  boost::beast::flat_buffer buffer_;  // received, unread bytes
};

}  // namespace dtrain::serve
