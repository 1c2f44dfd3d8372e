#include "libdtrain/io/remote/lease.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/remote/curl_library.h"

namespace dtrain::remote {
namespace {

using std::chrono::seconds;
using Json = nlohmann::json;

constexpr int64_t kMostLeaseSeconds = 86'400;

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 21> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

// Both times are the service's.
seconds age_of(const HttpAnswer& answer) {
  const std::time_t now = curl().date(answer.header("date").c_str(), nullptr),
                    modified = curl().date(answer.header("last-modified").c_str(), nullptr);
  return seconds(now > 0 && modified > 0 ? std::max<std::time_t>(now - modified, 0) : 0);
}

}  // namespace

std::string lease_text(const LeaseHolder& holder) {
  return Json{{"writer", holder.writer}, {"run", holder.run},   {"host", holder.host},
              {"pid", holder.pid},       {"time", holder.time}, {"seconds", holder.seconds}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

LeaseHolder lease_from(const std::string& text, const std::string& where) {
  try {
    const auto json = parse_json<Json>(text, where, Fault::config, {.bytes = 1 << 16, .values = 100});
    LeaseHolder holder;
    for (const auto& [key, value] : {std::pair("writer", &holder.writer), std::pair("run", &holder.run),
                                     std::pair("host", &holder.host), std::pair("time", &holder.time)})
      *value = json.at(key).get<std::string>().substr(0, 256);
    holder.pid = static_cast<int64_t>(count_at(json, "pid", INT32_MAX, where, Fault::config));
    holder.seconds = static_cast<int64_t>(count_at(json, "seconds", kMostLeaseSeconds, where, Fault::config));
    return holder;
  } catch (const std::exception&) {
    throw Error(Fault::config,
                where + ": is not a lease of dtrain; choose another --train_dir, or delete it if no job writes there");
  }
}

Lease::Lease(std::shared_ptr<RemoteStorage> storage, S3Address object, LeaseHolder own, const LeaseOptions& options)
    : storage_(std::move(storage)), object_(std::move(object)), own_(std::move(own)) {
  acquire(options);
  thread_ = std::thread([this] { refresh_regularly(); });
}

Lease::~Lease() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
  try {
    if (const auto seen = read(/*once=*/true); seen && seen->holder.writer == own_.writer)
      storage_->s3.send({.method = "DELETE", .address = object_, .once = true});
  } catch (...) {  // it expires
  }
}

std::optional<Lease::Seen> Lease::read(bool once) const {
  const HttpAnswer answer = storage_->s3.send({.address = object_, .most_bytes = 1 << 16, .once = once});
  if (answer.status == 404 && error_code_in(answer.body) != " (NoSuchBucket)") return std::nullopt;
  if (answer.status != 200) fail_with(object_.text(), answer, Fault::resource);
  return Seen{lease_from(answer.body, object_.text()), answer.header("etag"), age_of(answer)};
}

bool Lease::write(const std::string& etag) {
  own_.time = time_now();
  const std::string text = lease_text(own_);
  S3Request request{.method = "PUT", .address = object_, .body = text};
  request.headers = etag.empty() ? std::map<std::string, std::string>{{"if-none-match", "*"}}
                                 : std::map<std::string, std::string>{{"if-match", etag}};
  HttpAnswer answer = storage_->s3.send(request);
  if (answer.status == 501 || answer.status == 400) {  // the service knows no such condition
    request.headers.clear();
    answer = storage_->s3.send(request);
  }
  // 412: made meanwhile, perhaps by this request, whose first answer was lost. 404: gone. 409: another is under way.
  if (answer.status / 100 != 2 && answer.status != 412 && answer.status != 404 && answer.status != 409)
    fail_with(object_.text(), answer, Fault::resource);
  const auto seen = read();
  return seen && seen->holder.writer == own_.writer;
}

std::string Lease::describe(const Seen& seen) const {
  return concat(object_.text(), ": held by process ", seen.holder.pid, " on ", seen.holder.host, ", run ",
                seen.holder.run, ", and refreshed ", seen.age.count(), " s ago");
}

void Lease::acquire(const LeaseOptions& options) {
  constexpr std::chrono::milliseconds kPoll{250};
  std::string first;  // ETag of another's lease
  const auto begun = std::chrono::steady_clock::now();
  for (auto next = begun;;) {
    auto seen = read();
    // The service may tell no times.
    if (seen && seen->etag == first)
      seen->age = std::max(seen->age, std::chrono::floor<seconds>(std::chrono::steady_clock::now() - begun));
    const bool own = seen && seen->holder.writer == own_.writer;
    if (!seen || own || seen->age.count() > seen->holder.seconds) {
      if (write(seen ? seen->etag : "")) return;
      continue;
    }
    if (first.empty()) {
      first = seen->etag;
      if (options.note)
        options.note(concat(describe(*seen), ": waiting for up to ", seen->holder.seconds - seen->age.count() + 1,
                            " s, to see whether that job is alive"));
    } else if (seen->etag != first) {
      throw Error(Fault::config,
                  describe(*seen) + ", writes to this folder; wait for it, stop it, or choose another --train_dir");
    }
    // As often as a short lease needs, but no more than once a second.
    next += std::clamp<std::chrono::milliseconds>(seconds(seen->holder.seconds) / 8, kPoll, seconds(1));
    std::this_thread::sleep_until(next);
    if (options.stop && options.stop())
      throw Error(Fault::resource, describe(*seen) + "; a stop was requested before it was free");
  }
}

void Lease::refresh() {
  const auto seen = read();
  const bool is_free = !seen || seen->holder.writer == own_.writer;  // or deleted, as by a user
  if (is_free && write(seen ? seen->etag : "")) return;
  if (const auto now = read(); now && now->holder.writer != own_.writer)
    throw Error(Fault::config, describe(*now) + ": it has taken over from this job");
}

void Lease::set_run(const std::string& run) {
  const std::lock_guard lock(mutex_);
  own_.run = run;
}

void Lease::require_held() {
  const std::lock_guard lock(mutex_);
  refresh();
}

void Lease::refresh_regularly() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::milliseconds(own_.seconds * 1000 / 4), [&] { return ending_; })) {
    try {
      refresh();
    } catch (const Error&) {  // require_held() reports what lasts
    }
  }
}

}  // namespace dtrain::remote
