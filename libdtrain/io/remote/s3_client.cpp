#include "libdtrain/io/remote/s3_client.h"

#include <algorithm>
#include <ctime>

#include "libdtrain/io/remote/curl_library.h"
#include "libdtrain/io/remote/sigv4.h"

namespace dtrain::remote {
namespace {

// Names with dots do not match AWS's certificates.
bool is_dns_label(const std::string& bucket) {
  return std::ranges::all_of(bucket,
                             [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values)
    if (!value.empty()) return value;
  return "";
}

std::string region_from(const Variables& variables, const AwsProfile& profile) {
  const std::string region = first_of({value_of(variables, "AWS_REGION"), value_of(variables, "AWS_DEFAULT_REGION"),
                                       profile.get("region"), "us-east-1"});
  // It becomes part of a host name.
  DT_CHECK(is_dns_label(region), "AWS_REGION is ", region, ": expected a name such as us-east-1");
  return region;
}

// Host as libcurl names it in the request: without the scheme's own port.
std::string host_of(const std::string& endpoint) {
  const size_t begin = endpoint.find("://") + 3;
  std::string host = endpoint.substr(begin, endpoint.find('/', begin) - begin);
  const std::string port = endpoint.starts_with("https") ? ":443" : ":80";
  if (host.ends_with(port)) host.resize(host.size() - port.size());
  return host;
}

bool has_code(const HttpAnswer& answer, std::initializer_list<const char*> codes) {
  if (answer.status / 100 != 4) return false;
  const std::string code = error_code_in(answer.body);
  return std::ranges::any_of(codes, [&](const char* one) { return code == concat(" (", one, ")"); });
}

// Keys that were valid before. Those of a user may be replaced, and then be unknown.
constexpr std::initializer_list<const char*> kOldCredentials = {"ExpiredToken", "TokenRefreshRequired",
                                                                "ExpiredTokenException", "InvalidAccessKeyId"};

// Callers cut the prefix off, and ask for pages until there is none.
void check_page(const S3Listing& page, const S3Address& address, const std::string& token, Fault fault) {
  const auto is_below = [&](const std::string& name) { return name.starts_with(address.key); };
  if (!std::ranges::all_of(page.objects, is_below, &S3Object::key) || !std::ranges::all_of(page.prefixes, is_below))
    throw Error(fault, concat(address.text(), ": the server lists names that do not begin with this prefix"));
  if (!page.next.empty() && page.next == token)
    throw Error(fault, concat(address.text(), ": the server's list of objects repeats its continuation token"));
}

}  // namespace

S3Client::S3Client(HttpClient& http, const Variables& variables)
    : http_(http),
      policy_(RetryPolicy::from(variables)),
      profile_(AwsProfile::read(variables)),
      region_(region_from(variables, profile_)),
      requester_pays_(value_of(variables, "AWS_REQUEST_PAYER") == "requester"),
      credentials_(http, variables, profile_, region_) {
  const ConfiguredEndpoint configured = configured_endpoint(variables, profile_, "S3");
  endpoint_ = configured.url;
  while (endpoint_.ends_with('/')) endpoint_.pop_back();
  DT_CHECK(endpoint_.empty() || ((endpoint_.starts_with("https://") || endpoint_.starts_with("http://")) &&
                                 endpoint_.find_first_of("@?# ") == endpoint_.npos),
           configured.origin, ": expected http:// or https://, a host, and no user, query or space");
  const std::string style = profile_.get("s3.addressing_style");
  DT_CHECK(style.empty() || style == "auto" || style == "path" || style == "virtual", "profile ", profile_.name(),
           ": addressing_style below s3 is ", style, ": expected auto, path or virtual");
  if (style == "path") addressing_ = Addressing::path;
  if (style == "virtual") addressing_ = Addressing::host;
}

std::string S3Client::region_of(const std::string& bucket) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(bucket);
  return found == regions_.end() ? region_ : found->second;
}

bool S3Client::move_to_region_in(const HttpAnswer& answer, const std::string& bucket) {
  if (answer.status != 301 && answer.status != 307 && answer.status != 400 && answer.status != 403) return false;
  const std::string region = first_of(
      {answer.header("x-amz-bucket-region"), has_code(answer, {"AuthorizationHeaderMalformed", "PermanentRedirect"})
                                                 ? flat_values(answer.body, {"Region"})[0]
                                                 : ""});
  if (region.empty() || !is_dns_label(region)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(bucket);
  if (region == (found == regions_.end() ? region_ : found->second)) return false;
  regions_[bucket] = region;
  return true;
}

HttpAnswer S3Client::attempt(const S3Request& request, const std::optional<AwsSession>& session) {
  const std::string& bucket = request.address.bucket;
  const std::string region = region_of(bucket);
  std::string base = endpoint_;
  if (base.empty()) base = concat("https://s3.", region, ".amazonaws.com", region.starts_with("cn-") ? ".cn" : "");
  const bool by_host =
      addressing_ != Addressing::path && is_dns_label(bucket) && (addressing_ == Addressing::host || endpoint_.empty());
  const size_t host_begin = base.find("://") + 3, host_end = std::min(base.find('/', host_begin), base.size());
  SignedRequest to_sign{.method = request.method,
                        .host = concat(by_host ? bucket + "." : "", host_of(base)),
                        .path = base.substr(host_end),
                        .query = request.query,
                        .headers = request.headers,
                        .body = request.body};
  if (!by_host) to_sign.path += "/" + bucket;
  to_sign.path += "/" + uri_encoded(request.address.key, true);
  if (requester_pays_) to_sign.headers["x-amz-request-payer"] = "requester";
  if (session) sign(to_sign, session->key, region, std::time(nullptr) + clock_offset_.load());

  HttpRequest http{
      .method = request.method, .body = request.body, .into = request.into, .most_bytes = request.most_bytes};
  const std::string query = encoded_query(request.query);
  http.url = concat(base.substr(0, host_begin), by_host ? bucket + "." : "",
                    base.substr(host_begin, host_end - host_begin), to_sign.path, query.empty() ? "" : "?", query);
  for (const auto& [name, value] : to_sign.headers) http.headers.push_back(concat(name, ": ", value));
  if (!to_sign.headers.contains("content-type")) http.headers.emplace_back("content-type:");  // libcurl's is not signed
  return http_.send(http);
}

HttpAnswer S3Client::send(const S3Request& request, const AnswerCheck& check) {
  Attempts attempts(policy_);
  bool moved = false, refreshed = false, skewed = false;
  for (;;) {
    const std::optional<AwsSession> session = credentials_.get();
    HttpAnswer answer = attempt(request, session);
    apply_check(check, answer);
    if (answer.status / 100 == 2) return answer;
    if (!moved && move_to_region_in(answer, request.address.bucket)) {
      moved = true;
      continue;
    }
    if (session && !refreshed && has_code(answer, kOldCredentials)) {
      credentials_.discard(session->key);
      refreshed = true;
      continue;
    }
    if (!skewed && has_code(answer, {"RequestTimeTooSkewed"})) {
      if (const time_t date = curl().date(answer.header("date").c_str(), nullptr); date > 0)
        clock_offset_ = date - std::time(nullptr);
      skewed = true;
      continue;
    }
    const bool may_pass = is_transient(answer) || has_code(answer, {"RequestTimeout"});
    if (may_pass && !request.once && attempts.wait(answer)) continue;
    answer.hint = session ? concat("signed with the credentials of ", session->source)
                          : "anonymous, because no AWS credentials were found";
    answer.aim = request.method == "DELETE"                            ? "deleted"
                 : request.method == "PUT" || request.method == "POST" ? "written"
                                                                       : "read";
    return answer;
  }
}

S3Listing S3Client::list(const S3Address& address, const std::string& delimiter, size_t most, Fault fault) {
  S3Listing all;
  S3Request request{.address = {address.bucket, ""}};
  request.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", address.key}};
  if (!delimiter.empty()) request.query["delimiter"] = delimiter;
  do {
    const HttpAnswer answer = send(request);
    if (answer.status != 200) fail_with(address.text(), answer, fault);
    S3Listing page = parse_listing(answer.body, address.text());
    check_page(page, address, all.next, fault);
    std::ranges::move(page.objects, std::back_inserter(all.objects));
    std::ranges::move(page.prefixes, std::back_inserter(all.prefixes));
    if (all.objects.size() + all.prefixes.size() > most)
      throw Error(fault, concat(address.text(), ": more than ", most, " objects; expected the folder of one data set"));
    request.query["continuation-token"] = page.next;
    all.next = page.next;
  } while (!all.next.empty());
  return all;
}

std::string S3Client::put(const S3Address& address, std::string_view content) {
  const HttpAnswer answer = send({.method = "PUT", .address = address, .body = content});
  if (answer.status != 200) fail_with(address.text(), answer, Fault::resource);
  return answer.header("etag");
}

void S3Client::remove(const S3Address& address) {
  const HttpAnswer answer = send({.method = "DELETE", .address = address});
  if (answer.status / 100 != 2 && answer.status != 404) fail_with(address.text(), answer, Fault::resource);
}

void fail_with(const std::string& shown, const HttpAnswer& answer, Fault fault) {
  const std::string code = error_code_in(answer.body);
  const std::string hint = answer.hint.empty() ? "" : concat("; the request was ", answer.hint);
  if (answer.status == 0)
    throw Error(answer.can_retry ? Fault::resource : fault,
                concat(shown, ": cannot be ", answer.aim, ": ", answer.failure));
  if (answer.status == 404) throw Error(fault, concat(shown, ": not found", code));
  if (answer.status == 412)
    throw Error(
        fault,
        concat(shown, answer.aim == "read" ? ": was replaced since it was opened" : ": was changed by another writer",
               code));
  if (answer.status == 401 || answer.status == 403)
    throw Error(fault, concat(shown, answer.aim == "read" ? "" : concat(": cannot be ", answer.aim), ": access denied",
                              code, hint));
  throw Error(is_transient(answer) ? Fault::resource : fault,
              concat(shown, ": the server answers ", answer.status, code, answer.status / 100 == 4 ? hint : ""));
}

}  // namespace dtrain::remote
