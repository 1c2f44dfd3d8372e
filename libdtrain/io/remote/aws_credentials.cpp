#include "libdtrain/io/remote/aws_credentials.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <thread>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/remote/s3_messages.h"

namespace dtrain::remote {
namespace {

constexpr time_t kRefreshBefore = 300;  // seconds before credentials expire
constexpr time_t kRefreshPause = 60;    // seconds after a refresh without new ones
constexpr size_t kMostTokenBytes = size_t{64} << 10;
constexpr int kMostRereads = 20;
constexpr std::chrono::milliseconds kRereadPause{250};
constexpr const char* kInstanceService = "http://169.254.169.254";

std::string token_of(const std::string& path) {
  std::string token = read_text(path, kMostTokenBytes, Fault::config);
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0) token.pop_back();
  return token;
}

[[noreturn]] void fail(const std::string& service, const HttpAnswer& answer) {
  const std::string what = answer.status != 0 ? concat("answers ", answer.status, error_code_in(answer.body))
                                              : concat("cannot be reached: ", answer.failure);
  throw Error(is_transient(answer) ? Fault::resource : Fault::config, concat("AWS credentials: ", service, " ", what));
}

// They become headers; secrets that were mounted or pasted often end with a line feed.
void require_printable(const AwsSession& session) {
  for (const std::string* text : {&session.key.access_key, &session.key.secret_key, &session.key.session_token})
    if (std::ranges::any_of(*text, [](unsigned char c) { return c <= ' ' || c > '~'; }))
      throw Error(Fault::config, concat("AWS credentials: ", session.source,
                                        ": the key, secret or token contains a space, line feed or control character"));
}

// The container's service sends credentials over plain HTTP only from these hosts. In http://127.0.0.1:80@HOST/ the
// local address is a user's name.
bool is_local(const std::string& url) {
  if (url.find('@') != url.npos) return false;
  const size_t begin = std::string_view("http://").size();
  const std::string host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const std::string name = host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  for (const char* local : {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "localhost", "127.0.0.1", "[::1]"})
    if (name == local) return true;
  return false;
}

AwsSession session_in(const AwsProfile& profile) {
  return {{profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"), profile.get("aws_session_token")},
          {},
          concat("profile ", profile.name())};
}

bool is_complete(const AwsSession& session) {
  return !session.key.access_key.empty() && !session.key.secret_key.empty();
}

}  // namespace

std::optional<time_t> parse_utc(const std::string& text) {
  std::tm utc{};
  char zone = 0;
  double seconds = 0;  // some services state fractions
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf%c", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour,
                  &utc.tm_min, &seconds, &zone) != 7 ||
      zone != 'Z' || !(seconds >= 0 && seconds < 61) || utc.tm_year < 1970)
    return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  utc.tm_sec = static_cast<int>(seconds);
  return timegm(&utc);
}

AwsSession parse_session_json(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_json_line<nlohmann::json>(text, {.bytes = kMostTokenBytes, .values = 100});
  const auto value = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  AwsSession session{
      {value("AccessKeyId"), value("SecretAccessKey"), value("Token")}, parse_utc(value("Expiration")), where};
  if (session.key.access_key.empty() || session.key.secret_key.empty())
    throw Error(Fault::config,
                concat("AWS credentials: ", where, ": expected JSON with AccessKeyId and SecretAccessKey"));
  return session;
}

AwsSession parse_session_xml(const std::string& text, const std::string& where) {
  const auto values = flat_values(text, {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"});
  AwsSession session{{values[0], values[1], values[2]}, parse_utc(values[3]), where};
  if (session.key.access_key.empty() || session.key.secret_key.empty())
    throw Error(Fault::config,
                concat("AWS credentials: ", where, ": expected XML with AccessKeyId and SecretAccessKey"));
  return session;
}

AwsCredentials::AwsCredentials(HttpClient& http, Variables variables, const AwsProfile& profile, std::string region)
    : http_(http), variables_(std::move(variables)), profile_(profile), region_(std::move(region)) {}

bool AwsCredentials::is_valid(time_t now) const { return current_ && (!current_->expires || now < *current_->expires); }

bool AwsCredentials::is_fresh(time_t now) const {
  return is_valid(now) && (!current_->expires || now < std::max(*current_->expires - kRefreshBefore, next_refresh_));
}

std::optional<AwsSession> AwsCredentials::get() {
  std::unique_lock refresh(refresh_mutex_, std::defer_lock);
  {
    const std::lock_guard lock(mutex_);
    const time_t now = std::time(nullptr);
    if (is_fresh(now) || none_) return current_;
    // A service may take a minute to answer.
    if (is_valid(now) && !refresh.try_lock()) return current_;
  }
  if (!refresh.owns_lock()) refresh.lock();
  {
    const std::lock_guard lock(mutex_);
    if (is_fresh(std::time(nullptr)) || none_) return current_;  // refreshed by another thread
  }
  std::optional<AwsSession> found;
  std::exception_ptr failure;
  try {
    found = find();
    if (found) require_printable(*found);
  } catch (const Error&) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  // An outage of the service matters only when the old ones have expired.
  if (failure && !is_valid(std::time(nullptr))) std::rethrow_exception(failure);
  none_ = !failure && !found && !current_;
  const bool is_new = !failure && found && (!current_ || found->key.session_token != current_->key.session_token);
  if (!failure && found) current_ = std::move(found);
  if (!is_new) next_refresh_ = std::time(nullptr) + kRefreshPause;
  return current_;
}

void AwsCredentials::discard(const SigningKey& refused) {
  const std::lock_guard lock(mutex_);
  if (current_ && current_->key.access_key == refused.access_key &&
      current_->key.session_token == refused.session_token)
    current_.reset();
}

std::optional<AwsSession> AwsCredentials::find() {
  AwsSession session{{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN")},
                     {},
                     "AWS_ACCESS_KEY_ID"};
  if (session.key.access_key.empty() != session.key.secret_key.empty())
    throw Error(Fault::config,
                "AWS credentials: of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY one is set; expected both");
  if (!session.key.access_key.empty()) return session;
  if (auto found = from_web_identity()) return found;
  if (auto found = from_profile()) return found;
  if (auto found = from_container()) return found;
  return from_instance();
}

std::optional<AwsSession> AwsCredentials::from_profile() {
  if (is_profile_) return reread_profile();
  AwsSession session = session_in(profile_);
  is_profile_ = is_complete(session);
  has_token_ = !session.key.session_token.empty();
  if (is_profile_) return session;
  for (const char* key : {"credential_process", "sso_session", "sso_start_url", "source_profile", "credential_source"})
    if (!profile_.get(key).empty())
      throw Error(Fault::config, concat("AWS credentials: profile ", profile_.name(), " has ", key,
                                        ", which is not supported; export its credentials: "
                                        "eval \"$(aws configure export-credentials --format env)\""));
  return std::nullopt;
}

// While a tool rewrites the files, requests must neither be anonymous nor use the credentials of another source.
AwsSession AwsCredentials::reread_profile() {
  using Clock = std::chrono::steady_clock;
  std::string problem;
  const int most = Clock::now() < next_rereads_ ? 1 : kMostRereads;  // other threads have waited
  for (int i = 0; i < most; ++i) {
    if (i > 0) std::this_thread::sleep_for(kRereadPause);
    try {
      AwsSession session = session_in(AwsProfile::read(variables_));
      const bool lacks_token =
          has_token_ && session.key.session_token.empty() && i + 1 < most;  // which is written last
      if (is_complete(session) && !lacks_token) return session;
      problem = "has no keys any more";
    } catch (const Error& error) {
      problem = concat("cannot be read again: ", error.what());
    }
  }
  next_rereads_ = Clock::now() + kMostRereads * kRereadPause;
  throw Error(Fault::resource, concat("AWS credentials: the keys of profile ", profile_.name(),
                                      " were refused, and the profile ", problem));
}

HttpAnswer AwsCredentials::ask(HttpRequest request, const std::string& service) {
  Attempts attempts(RetryPolicy{.attempts = 5, .total = std::chrono::seconds(60)});
  request.most_bytes = kMostTokenBytes;
  request.timeouts = HttpTimeouts{.connect = std::chrono::seconds(5), .request = std::chrono::seconds(10)};
  for (;;) {
    HttpAnswer answer = http_.send(request);
    if (answer.status == 200) return answer;
    if (!is_transient(answer) || !attempts.wait(answer)) fail(service, answer);
  }
}

std::optional<AwsSession> AwsCredentials::from_web_identity() {
  std::string file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), role = variable("AWS_ROLE_ARN"),
              name = variable("AWS_ROLE_SESSION_NAME");
  if (file.empty()) {
    file = profile_.get("web_identity_token_file");
    role = profile_.get("role_arn");
    name = profile_.get("role_session_name");
  }
  if (file.empty()) return std::nullopt;
  if (role.empty())
    throw Error(Fault::config, "AWS credentials: AWS_WEB_IDENTITY_TOKEN_FILE is set; expected AWS_ROLE_ARN as well");
  const std::string body = encoded_query({{"Action", "AssumeRoleWithWebIdentity"},
                                          {"Version", "2011-06-15"},
                                          {"RoleArn", role},
                                          {"RoleSessionName", name.empty() ? "dtrain" : name},
                                          {"WebIdentityToken", token_of(file)}});
  std::string endpoint = configured_endpoint(variables_, profile_, "STS").url;
  if (endpoint.empty())
    endpoint = concat("https://sts.", region_, ".amazonaws.com", region_.starts_with("cn-") ? ".cn" : "");
  HttpRequest request{.method = "POST",
                      .url = endpoint + "/",
                      .headers = {"content-type: application/x-www-form-urlencoded"},
                      .body = body};
  return parse_session_xml(ask(std::move(request), "STS").body, "STS");
}

std::optional<AwsSession> AwsCredentials::from_container() {
  std::string url = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!url.empty())
    url = concat("http://169.254.170.2", url.starts_with('/') ? "" : "/", url);
  else
    url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (url.empty()) return std::nullopt;
  if (!url.starts_with("https://") && !(url.starts_with("http://") && is_local(url)))
    throw Error(Fault::config,
                "AWS credentials: AWS_CONTAINER_CREDENTIALS_FULL_URI: expected https://, or http:// and the address of "
                "this host, of ECS or of EKS");
  const std::string file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const std::string token = file.empty() ? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") : token_of(file);
  if (token.find_first_of("\r\n") != token.npos)
    throw Error(Fault::config, "AWS credentials: the container's authorization token: expected one line");
  HttpRequest request{.url = url, .without_proxy = true};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  return parse_session_json(ask(std::move(request), "the container's service").body, "the container's service");
}

std::optional<AwsSession> AwsCredentials::from_instance() {
  const std::string disabled = variable("AWS_EC2_METADATA_DISABLED");
  if (disabled == "true" || disabled == "TRUE" || disabled == "True") return std::nullopt;
  std::string endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) endpoint = kInstanceService;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  // Not on EC2: nothing answers at this address.
  HttpRequest request{.method = "PUT",
                      .url = endpoint + "/latest/api/token",
                      .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                      .most_bytes = kMostTokenBytes,
                      .without_proxy = true,
                      .timeouts = HttpTimeouts{.connect = std::chrono::seconds(1), .request = std::chrono::seconds(5)}};
  const std::string folder = endpoint + "/latest/meta-data/iam/security-credentials/",
                    service = "the instance's service";
  HttpAnswer token = http_.send(request);
  // An overloaded service must not make requests anonymous, nor one that answered before.
  if (is_transient(token) && (token.status != 0 || is_instance_)) token = ask(request, service);
  if (token.status != 200 || token.body.empty() || token.body.find_first_of("\r\n") != token.body.npos)
    return std::nullopt;
  is_instance_ = true;
  request.method = "GET";
  request.headers = {"X-aws-ec2-metadata-token: " + token.body};
  request.url = folder;
  HttpAnswer roles = http_.send(request);
  if (roles.status == 404) return std::nullopt;  // the instance has no role
  if (roles.status != 200) roles = ask(request, service);
  request.url = folder + uri_encoded(roles.body.substr(0, roles.body.find_first_of("\r\n")), false);
  return parse_session_json(ask(std::move(request), service).body, service);
}

}  // namespace dtrain::remote
