#include "apps/serve/http_connection.h"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

namespace dtrain::serve {
namespace {

namespace asio = boost::asio;
constexpr std::chrono::milliseconds kLook{100};  // polling interval of is_over
constexpr std::chrono::seconds kLinger{1};
constexpr size_t kReadBytes = 16384;

}  // namespace

bool is_malformed(const error_code& error) {
  return error.category() == http::make_error_code(http::error::end_of_stream).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

template <class Start>
error_code HttpConnection::run(const Start& start, const IsOver& is_over) {
  error_code result;
  start([&](error_code error, size_t) { result = error; });
  io_.restart();
  while (io_.run_for(kLook), !io_.stopped())
    if (is_over()) socket_.cancel();
  return result;
}

bool HttpConnection::wait_for_request(const IsOver& is_over) {
  if (buffer_.size() > 0) return true;
  const auto read = [&](auto handler) {
    socket_.async_read_some(buffer_.prepare(kReadBytes), [this, handler](error_code error, size_t bytes) {
      buffer_.commit(bytes);
      handler(error, bytes);
    });
  };
  return !run(read, is_over);
}

error_code HttpConnection::read_head(RequestParser& parser, const IsOver& is_over) {
  return run([&](auto handler) { http::async_read_header(socket_, buffer_, parser, handler); }, is_over);
}

error_code HttpConnection::read_body(RequestParser& parser, const IsOver& is_over) {
  return run([&](auto handler) { http::async_read(socket_, buffer_, parser, handler); }, is_over);
}

error_code HttpConnection::write(const Response& response, bool is_head, const IsOver& is_over) {
  http::response_serializer<http::string_body, http::fields> serializer(response);
  const auto write = [&](auto handler) {
    if (is_head)
      http::async_write_header(socket_, serializer, handler);
    else
      http::async_write(socket_, serializer, handler);
  };
  return run(write, is_over);
}

error_code HttpConnection::write_continue(const IsOver& is_over) {
  const http::response<http::empty_body> response(http::status::continue_, 11);
  http::response_serializer<http::empty_body, http::fields> serializer(response);
  return run([&](auto handler) { http::async_write(socket_, serializer, handler); }, is_over);
}

void HttpConnection::linger() {
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  const auto end = Clock::now() + kLinger;
  do buffer_.clear();
  while (wait_for_request([end] { return Clock::now() >= end; }) && Clock::now() < end);
  socket_.close(ignored);
}

}  // namespace dtrain::serve
