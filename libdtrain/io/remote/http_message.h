// Requests and answers of HTTP.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::remote {

// Looks up an environment variable; null if unset.
using Variables = std::function<const char*(const char*)>;
// Value of a variable; empty if unset.
std::string value_of(const Variables& variables, const char* name);

struct HttpTimeouts {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds request{120'000};  // of one attempt, and more for a large body
  std::chrono::seconds stall{20};              // with less than 1 KiB/s
};

struct HttpRequest {
  std::string method = "GET";
  std::string url{};
  std::vector<std::string> headers{};  // "name: value"
  std::string_view body{};             // of PUT and POST
  // A body of a 2xx answer goes here; `HttpAnswer::body` otherwise.
  std::span<char> into{};
  size_t most_bytes = size_t{1} << 20;  // of HttpAnswer::body
  bool follow_redirects = false;        // to https: only, or from http: also to the same host
  bool without_proxy = false;
  std::optional<HttpTimeouts> timeouts{};  // in place of the client's
};

struct HttpAnswer {
  int status = 0;                                // 0: no answer, see `failure`
  std::map<std::string, std::string> headers{};  // names in lower case; of the last answer after redirects
  std::string body{};
  size_t received = 0;       // bytes of the body
  std::string failure{};     // of the transport: "Could not resolve host: ...", without the URL
  bool can_retry = true;     // a failure that another attempt may not have
  bool too_long = false;     // a failure: the body of a 2xx answer is longer than `into`
  std::string hint{};        // how the request was signed, for messages
  std::string aim = "read";  // of the request, for messages: "read", "written" or "deleted"

  // Empty if absent.
  const std::string& header(const std::string& name) const;
};

}  // namespace dtrain::remote
