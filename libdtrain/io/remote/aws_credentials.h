// AwsCredentials: finds, caches and refreshes the credentials that sign requests to S3.
#pragma once

#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/io/remote/aws_config.h"
#include "libdtrain/io/remote/http_client.h"
#include "libdtrain/io/remote/sigv4.h"

namespace dtrain::remote {

// Credentials from one source.
struct AwsSession {
  SigningKey key;
  std::optional<time_t> expires{};
  std::string source{};  // for messages: "AWS_ACCESS_KEY_ID"
};

// "2026-11-30T17:00:00Z" to seconds; nullopt for other text.
std::optional<time_t> parse_utc(const std::string& text);

// Answers of credential services. Throw Error(Fault::config), prefixed by `where`, without any of the text.
AwsSession parse_session_json(const std::string& text, const std::string& where);
AwsSession parse_session_xml(const std::string& text, const std::string& where);

// Sources, in this order: variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN); a web identity token
// (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, or the same of the profile) exchanged by STS; keys in the shared files;
// the container's service (ECS, EKS Pod Identity); the instance's service, version 2 (IMDSv2). The shared files are
// read again when their keys are refused. Thread-safe.
class AwsCredentials {
 public:
  // `region`: whose STS is asked.
  AwsCredentials(HttpClient& http, Variables variables, const AwsProfile& profile, std::string region);

  // Valid credentials, refreshed if they expire within five minutes, by one thread while others use the current ones;
  // nullopt if no source has any, for anonymous access. Throws Error(Fault::config) for a source that is configured,
  // but wrong; Error(Fault::resource) if a service does not answer.
  std::optional<AwsSession> get();
  // Forgets the current ones, which the service has refused as expired or unknown.
  void discard(const SigningKey& refused);

 private:
  std::optional<AwsSession> find();
  std::optional<AwsSession> from_profile();
  AwsSession reread_profile();
  std::optional<AwsSession> from_web_identity();
  std::optional<AwsSession> from_container();
  std::optional<AwsSession> from_instance();
  HttpAnswer ask(HttpRequest request, const std::string& service);
  std::string variable(const char* name) const { return value_of(variables_, name); }

  HttpClient& http_;
  const Variables variables_;
  const AwsProfile profile_;
  const std::string region_;
  bool is_valid(time_t now) const;
  bool is_fresh(time_t now) const;

  std::mutex refresh_mutex_;  // held while a service is asked; locked before mutex_
  std::mutex mutex_;          // of the current ones
  std::optional<AwsSession> current_;
  time_t next_refresh_ = 0;                               // while the current ones are valid
  bool none_ = false;                                     // no source has any
  bool is_instance_ = false;                              // the instance's service has answered
  bool is_profile_ = false, has_token_ = false;           // the shared files had keys, and with them a token
  std::chrono::steady_clock::time_point next_rereads_{};  // after rereads without keys
};

}  // namespace dtrain::remote
