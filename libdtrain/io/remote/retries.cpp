#include "libdtrain/io/remote/retries.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <random>
#include <thread>

#include "dtrain/core/error.h"

namespace dtrain::remote {

std::string value_of(const Variables& variables, const char* name) {
  const char* const value = variables ? variables(name) : nullptr;
  return value == nullptr ? "" : value;
}

const std::string& HttpAnswer::header(const std::string& name) const {
  static const std::string none;
  const auto found = headers.find(name);
  return found == headers.end() ? none : found->second;
}

void apply_check(const AnswerCheck& check, HttpAnswer& answer) {
  if (!check || answer.status / 100 != 2) return;
  answer.failure = check(answer);
  if (!answer.failure.empty()) answer.status = 0;
}

bool is_transient(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.can_retry;
  for (const int status : {408, 429, 500, 502, 503, 504})
    if (answer.status == status) return true;
  return false;
}

RetryPolicy RetryPolicy::from(const Variables& variables) {
  RetryPolicy policy;
  const auto number = [&](const char* name, int64_t most) -> int64_t {
    const std::string text = value_of(variables, name);
    if (text.empty()) return 0;
    int64_t value = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    DT_CHECK(wrong == std::errc{} && end == text.data() + text.size() && value > 0 && value <= most, name, " is ", text,
             ": expected an integer from 1 to ", most);
    return value;
  };
  if (const int64_t attempts = number("AWS_MAX_ATTEMPTS", 1000)) policy.attempts = static_cast<int>(attempts);
  if (const int64_t seconds = number("DTRAIN_REMOTE_TIMEOUT", 86'400)) policy.total = std::chrono::seconds(seconds);
  return policy;
}

Attempts::Attempts(const RetryPolicy& policy) : policy_(policy), begin_(std::chrono::steady_clock::now()) {}

bool Attempts::wait(const HttpAnswer& answer) {
  using std::chrono::milliseconds;
  if (made_ >= policy_.attempts) return false;
  thread_local std::minstd_rand random(std::random_device{}());
  const auto most = std::min(policy_.longest, policy_.first * (int64_t{1} << std::min(made_, 20)));
  milliseconds pause(std::uniform_int_distribution<int64_t>(0, most.count())(random));
  int64_t seconds = 0;
  const std::string& after = answer.header("retry-after");
  std::from_chars(after.data(), after.data() + after.size(), seconds);
  pause = std::max(pause, milliseconds(std::clamp<int64_t>(seconds, 0, policy_.longest.count() / 1000) * 1000));
  if (std::chrono::steady_clock::now() - begin_ + pause > policy_.total) return false;
  std::this_thread::sleep_for(pause);
  ++made_;
  return true;
}

}  // namespace dtrain::remote
