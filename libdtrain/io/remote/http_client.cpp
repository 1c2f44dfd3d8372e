#include "libdtrain/io/remote/http_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>

#include "dtrain/core/error.h"
#include "dtrain/version.h"
#include "libdtrain/io/remote/curl_library.h"
#include "libdtrain/io/remote/http_connections.h"

namespace dtrain::remote {
namespace {

constexpr long kStalledBytesPerSecond = 1024, kRedirects = 5;
constexpr size_t kSlowestBytesPerSecond = 8192;  // at which a body arrives within its timeout
constexpr size_t kMostHeaderBytes = size_t{64} << 10;

class HeaderList {
 public:
  explicit HeaderList(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) add(line.c_str());
    add("Expect:");  // no round trip before a body
  }
  ~HeaderList() { curl().free_list(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  CurlList* get() const { return list_; }

 private:
  void add(const char* line) {
    CurlList* const longer = curl().append(list_, line);
    if (longer == nullptr) throw Error(Fault::resource, "libcurl: out of memory");
    list_ = longer;
  }
  CurlList* list_ = nullptr;
};

// Whether an answer to an http:// request may lead there: to https://, or to the same host. Another host could be one
// that only this machine reaches, such as an instance's metadata service.
bool may_follow(const std::string& url, std::string_view location) {
  const std::string_view authority = std::string_view(url).substr(0, std::min(url.find_first_of("/?#", 7), url.size()));
  const size_t colon = location.find_first_of(":/?#");
  if (location.starts_with("//")) return false;
  if (colon == location.npos || location[colon] != ':') return true;  // relative
  std::string scheme(location.substr(0, colon));
  std::ranges::transform(scheme, scheme.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (scheme == "https") return true;
  const std::string_view rest = location.substr(std::min(location.size(), authority.size()));
  return location.starts_with(authority) && (rest.empty() || std::string_view("/?#").find(rest[0]) != rest.npos);
}

// Where callbacks of libcurl put the answer. They may not throw.
struct Exchange {
  const HttpRequest& request;
  HttpAnswer& answer;
  size_t header_bytes = 0;
  std::string overflow{};

  bool to_caller() const { return answer.status / 100 == 2 && !request.into.empty(); }

  void take_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // also after a redirect or "100 Continue"
      answer.headers.clear();
      answer.body.clear();
      answer.received = 0;
      const size_t space = line.find(' ');
      answer.status = 0;
      if (space != line.npos)
        std::from_chars(line.data() + space + 1, line.data() + std::min(line.size(), space + 4), answer.status);
      return;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos) return;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view value = line.substr(colon + 1);
    const size_t first = value.find_first_not_of(" \t"), last = value.find_last_not_of(" \t\r\n");
    value = first == value.npos ? "" : value.substr(first, last - first + 1);
    answer.headers[name] = value;
    if (name == "location" && request.follow_redirects && request.url.starts_with("http:") &&
        answer.status / 100 == 3 && !may_follow(request.url, value))
      overflow = "the server redirects to another host over http://; expected https://";
  }

  bool take_body(const char* data, size_t size) {
    const size_t most = to_caller() ? request.into.size() : request.most_bytes;
    if (size > most - std::min(most, answer.received)) {
      answer.too_long = to_caller();
      overflow = concat("the server sends more than the expected ", most, " bytes");
      return false;
    }
    if (to_caller())
      std::memcpy(request.into.data() + answer.received, data, size);
    else
      answer.body.append(data, size);
    answer.received += size;
    return true;
  }
};

size_t on_header(char* data, size_t size, size_t count, void* exchange) try {
  auto& to = *static_cast<Exchange*>(exchange);
  to.header_bytes += size * count;
  if (to.header_bytes > kMostHeaderBytes) {
    to.overflow = concat("the server sends more than ", kMostHeaderBytes, " bytes of headers");
    return 0;
  }
  to.take_header(std::string_view(data, size * count));
  return to.overflow.empty() ? size * count : 0;
} catch (...) {
  return 0;
}

size_t on_body(char* data, size_t size, size_t count, void* exchange) try {
  return static_cast<Exchange*>(exchange)->take_body(data, size * count) ? size * count : 0;
} catch (...) {
  return 0;
}

// Reads a body of PUT.
size_t on_upload(char* to, size_t size, size_t count, void* rest) {
  auto& left = *static_cast<std::string_view*>(rest);
  const size_t bytes = std::min(left.size(), size * count);
  std::memcpy(to, left.data(), bytes);
  left.remove_prefix(bytes);
  return bytes;
}

// For options whose default would be unsafe.
template <class T>
void require_option(CurlHandle* handle, CurlOption option, T value) {
  if (const CurlCode code = curl().set(handle, option, value); code != kCurlOk)
    throw Error(Fault::resource,
                concat("libcurl cannot set its option ", int{option}, ": ", std::string(curl().error_text(code))));
}

long milliseconds_of(const HttpRequest& request, const HttpTimeouts& timeouts) {
  const size_t bytes = std::max(request.body.size(), request.into.size());
  return static_cast<long>(timeouts.request.count()) + static_cast<long>(bytes / kSlowestBytesPerSecond * 1000);
}

void set_connection(CurlHandle* handle, const HttpRequest& request, const HttpTimeouts& timeouts) {
  const CurlLibrary& library = curl();
  require_option(handle, kUrl, request.url.c_str());
  library.set(handle, kPathAsIs, 1L);  // keys may contain "/../"
  const bool tls = request.url.starts_with("https:");
  require_option(handle, kProtocols, tls ? kProtocolHttps : kProtocolHttp | kProtocolHttps);
  require_option(handle, kRedirectProtocols, tls ? kProtocolHttps : kProtocolHttp | kProtocolHttps);
  library.set(handle, kHttpVersion, kHttp11);
  library.set(handle, kFollowLocation, request.follow_redirects ? 1L : 0L);
  library.set(handle, kMaxRedirects, kRedirects);
  library.set(handle, kNoSignal, 1L);
  library.set(handle, kTcpKeepAlive, 1L);
  library.set(handle, kSuppressConnectHeaders, 1L);
  library.set(handle, kConnectTimeoutMs, static_cast<long>(timeouts.connect.count()));
  library.set(handle, kTimeoutMs, milliseconds_of(request, timeouts));
  library.set(handle, kLowSpeedLimit, kStalledBytesPerSecond);
  library.set(handle, kLowSpeedTime, static_cast<long>(timeouts.stall.count()));
  library.set(handle, kUserAgent, "dtrain/" DTRAIN_VERSION);
  if (request.without_proxy) library.set(handle, kNoProxy, "*");
}

// `upload`: the rest of the body; must live as long as the request.
void set_method(CurlHandle* handle, const HttpRequest& request, std::string_view& upload) {
  const CurlLibrary& library = curl();
  if (request.method == "HEAD") {
    library.set(handle, kNoBody, 1L);
  } else if (request.method == "PUT") {
    library.set(handle, kUpload, 1L);
    library.set(handle, kReadFunction, on_upload);
    library.set(handle, kReadData, &upload);
    library.set(handle, kInFileSize, static_cast<int64_t>(request.body.size()));
  } else if (request.method == "POST") {
    library.set(handle, kPost, 1L);
    library.set(handle, kPostFieldSize, static_cast<int64_t>(request.body.size()));
    library.set(handle, kPostFields, request.body.data() == nullptr ? "" : request.body.data());
  } else if (request.method != "GET") {
    library.set(handle, kCustomRequest, request.method.c_str());
  }
}

bool may_retry(CurlCode code) {
  for (const CurlCode final : {kUnsupportedProtocol, kWrongUrl, kWriteError, kTooManyRedirects, kCertificate, kCaFile})
    if (code == final) return false;
  return true;
}

}  // namespace

HttpClient::HttpClient(const Variables& variables)
    : connections_(std::make_unique<Connections>()), ca_folder_(value_of(variables, "SSL_CERT_DIR")) {
  for (const char* name : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (ca_file_.empty()) ca_file_ = value_of(variables, name);
  const std::chrono::milliseconds total = RetryPolicy::from(variables).total;
  timeouts_.connect = std::min(timeouts_.connect, total / 6);
  timeouts_.request = std::min(timeouts_.request, total / 2);
  timeouts_.stall =
      std::clamp(std::chrono::duration_cast<std::chrono::seconds>(total / 6), std::chrono::seconds(1), timeouts_.stall);
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::send(const HttpRequest& request) {
  const CurlLibrary& library = curl();
  const Lease lease(*connections_);
  CurlHandle* const handle = lease.get();
  HttpAnswer answer;
  Exchange exchange{request, answer};
  const HeaderList headers(request.headers);
  std::array<char, kErrorBytes> reason{};
  std::string_view upload = request.body;

  library.reset(handle);
  set_connection(handle, request, request.timeouts.value_or(timeouts_));
  set_method(handle, request, upload);
  library.set(handle, kErrorBuffer, reason.data());
  library.set(handle, kHttpHeader, headers.get());
  library.set(handle, kHeaderFunction, on_header);
  library.set(handle, kHeaderData, &exchange);
  library.set(handle, kWriteFunction, on_body);
  library.set(handle, kWriteData, &exchange);
  if (!ca_file_.empty()) require_option(handle, kCaInfo, ca_file_.c_str());
  if (!ca_folder_.empty()) require_option(handle, kCaPath, ca_folder_.c_str());
  const CurlCode code = library.perform(handle);
  if (code != kCurlOk) {
    const bool truncated = code == kPartialFile && answer.status != 0;
    answer.failure = !exchange.overflow.empty() ? exchange.overflow
                     : truncated                ? concat("the answer ends after ", answer.received, " bytes")
                     : reason[0] != '\0'        ? std::string(reason.data())
                                                : std::string(library.error_text(code));
    answer.can_retry = may_retry(code);
    answer.status = 0;
  }
  library.reset(handle);  // it must not point to this function's variables; connections stay open
  return answer;
}

HttpAnswer HttpClient::send(const HttpRequest& request, const RetryPolicy& policy, const AnswerCheck& check) {
  Attempts attempts(policy);
  for (;;) {
    HttpAnswer answer = send(request);
    apply_check(check, answer);
    if (!is_transient(answer) || !attempts.wait(answer)) return answer;
  }
}

}  // namespace dtrain::remote
