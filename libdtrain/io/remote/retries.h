// Retries of requests that failed for a passing reason.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "libdtrain/io/remote/http_message.h"

namespace dtrain::remote {

// Whether an answer may differ at another attempt: no answer, 408, 429, 500, 502, 503, 504, or a 2xx with less of the
// body than announced.
bool is_transient(const HttpAnswer& answer);

// Attempts with growing pauses. The pause before attempt n is random in [0, min(longest, first * 2^n)] (full jitter),
// but no shorter than the answer's Retry-After.
struct RetryPolicy {
  int attempts = 10;
  std::chrono::milliseconds first{200}, longest{20'000};
  std::chrono::milliseconds total{300'000};  // no attempt begins later

  // Attempts from AWS_MAX_ATTEMPTS, `total` from DTRAIN_REMOTE_TIMEOUT in seconds.
  static RetryPolicy from(const Variables& variables);
};

// Why a 2xx answer is not the expected one; empty if it is.
using AnswerCheck = std::function<std::string(const HttpAnswer&)>;
// Turns a 2xx answer with a problem into a failure that may be retried.
void apply_check(const AnswerCheck& check, HttpAnswer& answer);

// State of one operation's attempts.
class Attempts {
 public:
  explicit Attempts(const RetryPolicy& policy);
  // Waits, and returns true; false if the policy allows no further attempt.
  bool wait(const HttpAnswer& answer);

 private:
  const RetryPolicy policy_;
  const std::chrono::steady_clock::time_point begin_;
  int made_ = 1;
};

}  // namespace dtrain::remote
