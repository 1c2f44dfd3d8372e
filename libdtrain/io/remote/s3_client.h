// S3Client: requests to S3 and compatible services, signed, retried, and sent to the bucket's region.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/core/error.h"
#include "libdtrain/io/remote/aws_credentials.h"
#include "libdtrain/io/remote/http_client.h"
#include "libdtrain/io/remote/s3_messages.h"

namespace dtrain::remote {

// An object, or with an empty key a bucket.
struct S3Address {
  std::string bucket{}, key{};
  std::string text() const { return "s3://" + bucket + "/" + key; }
};

struct S3Request {
  std::string method = "GET";
  S3Address address{};
  std::map<std::string, std::string> query{};    // not encoded
  std::map<std::string, std::string> headers{};  // names in lower case; all are signed
  std::string_view body{};
  std::span<char> into{};
  size_t most_bytes = size_t{8} << 20;  // of an answer that does not go to `into`
  bool once = false;                    // a transient failure is not repeated
};

// Thread-safe. Region: AWS_REGION, AWS_DEFAULT_REGION, the profile's, or us-east-1; another region that S3 names in its
// answer is used from then on. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the profile's endpoint_url, else
// AWS. Addressing: the bucket is part of the host for AWS, of the path for other endpoints, as the profile's
// s3.addressing_style says, or where its name is not a DNS label. AWS_REQUEST_PAYER=requester accepts costs.
class S3Client {
 public:
  S3Client(HttpClient& http, const Variables& variables);

  // Empty for AWS.
  const std::string& endpoint() const { return endpoint_; }

  // Repeats transient failures; returns the last answer, of whatever status. Throws Error for wrong credentials.
  HttpAnswer send(const S3Request& request, const AnswerCheck& check = {});

  // Objects and, with a delimiter, prefixes whose names begin with address.key, in S3's order; at most `most` of both
  // together. Throws Error(fault).
  S3Listing list(const S3Address& address, const std::string& delimiter, size_t most, Fault fault);

  // Writes an object in one request; returns its ETag. Throws Error(Fault::resource).
  std::string put(const S3Address& address, std::string_view content);
  // Deletes an object, or none. Throws Error(Fault::resource).
  void remove(const S3Address& address);

 private:
  enum class Addressing { automatic, path, host };

  std::string region_of(const std::string& bucket);
  bool move_to_region_in(const HttpAnswer& answer, const std::string& bucket);
  HttpAnswer attempt(const S3Request& request, const std::optional<AwsSession>& session);

  HttpClient& http_;
  const RetryPolicy policy_;
  const AwsProfile profile_;
  std::string region_, endpoint_;  // endpoint_: without a slash at its end; empty: AWS
  Addressing addressing_ = Addressing::automatic;
  bool requester_pays_ = false;
  AwsCredentials credentials_;
  std::atomic<int64_t> clock_offset_ = 0;  // seconds of the server's clock ahead of this machine's
  std::mutex mutex_;
  std::map<std::string, std::string> regions_;  // of buckets elsewhere
};

// Throws Error for an answer that is no success: `shown`, what the server or the transport says, and what to do. Fault:
// `fault`, but Fault::resource where the server cannot be reached or is overloaded.
[[noreturn]] void fail_with(const std::string& shown, const HttpAnswer& answer, Fault fault);

}  // namespace dtrain::remote
