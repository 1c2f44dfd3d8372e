// Partition of a checkpoint's global batch among ranks and micro-steps, and adoption of its order of additions.
#include "dtrain/run/elastic.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain {
namespace {

using Settings = std::map<std::string, std::string>;

constexpr int64_t kMaxGlobalBatch = INT32_MAX;
constexpr int64_t kMostRanksNamed = 4096;

// State of the newest valid checkpoint of train_dir, or of `resume_from`; empty for a fresh start or a damaged
// checkpoint, which the restore reports.
std::string state_text_to_resume(const RunOptions& run) {
  std::string text;
  const auto is_sound = [&](const std::string& path) {
    try {
      text = train_state_text(verify_checkpoint(path).state);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (run.train_dir.empty()) return text;
  if (!run.resume_from.empty())
    is_sound(run.resume_from);
  else if (run.resume == Resume::newest)
    newest_checkpoint(run.train_dir, is_sound);
  return text;
}

// The same on all ranks.
std::optional<TrainState> state_to_resume(const RunOptions& run, Group& group) {
  const std::string text =
      group.broadcast(group.rank() == run.chief ? state_text_to_resume(run) : "", run.chief, "state of the checkpoint");
  if (text.empty()) return std::nullopt;
  std::optional<TrainState> state;
  read_text(group, run.chief, text, "state of the checkpoint",
            [&](const std::string& told) { state = train_state_from(told, "the state of the checkpoint"); });
  return state;
}

std::string setting(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : found->second;
}

// 0 if missing or not positive.
int64_t number(const Settings& settings, const std::string& key) {
  const std::string text = setting(settings, key);
  const char* const end = text.data() + text.size();
  int64_t value = 0;
  const auto [read, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && read == end ? std::max<int64_t>(value, 0) : 0;
}

// 0 if none was saved.
int64_t saved_global_batch(const TrainState& state) {
  constexpr char kKey[] = "global batch";
  const int64_t batch = number(state.identity, kKey);
  const std::string text = setting(state.identity, kKey);
  if (!text.empty() && (batch == 0 || batch > kMaxGlobalBatch))
    throw Error(Fault::checkpoint, fmt::format("the checkpoint of step {}: {} is '{}', expected 1 to {}", state.step,
                                               kKey, text, kMaxGlobalBatch));
  return batch;
}

std::string numbers_of_ranks(int64_t global, int64_t batch) {
  std::string text;
  for (int64_t ranks = 1; ranks <= std::min(global / batch, kMostRanksNamed); ++ranks)
    if (global % (ranks * batch) == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks);
  return text.empty() ? "none" : text;
}

void keep_global_batch(RunShape& shape, int ranks, int64_t saved, std::vector<std::string>& notices) {
  const int64_t together = shape.batch * ranks;
  if (saved == 0 || saved == together * shape.micro_steps) return;
  DT_CHECK(saved % together == 0, "the checkpoint was trained with a global batch of ", saved, "; ", ranks,
           ranks == 1 ? " rank" : " ranks", " with a batch size of ", shape.batch,
           " cannot share it: with that batch size, numbers of ranks that can are ",
           numbers_of_ranks(saved, shape.batch));
  shape.micro_steps = static_cast<int>(saved / together);
  notices.push_back(
      fmt::format("the global batch of the checkpoint, {}, is kept: {} ranks x batch size {} x {} "
                  "micro-steps",
                  saved, ranks, shape.batch, shape.micro_steps));
}

constexpr char kWire[] = "wire of gradients", kAlgorithm[] = "all-reduce algorithm", kSegment[] = "all-reduce segment";
constexpr char kBucket[] = "bucket bytes", kLastBucket[] = "last bucket bytes";

const char* wire_name(DType wire) { return wire == DType::bf16 ? "bf16" : wire == DType::f16 ? "fp16" : "fp32"; }

DType wire_type(const std::string& name) {
  return name == "bf16" ? DType::bf16 : name == "fp16" ? DType::f16 : DType::f32;
}

// Adopts settings from `saved` that differ and were not given explicitly.
class SumOrder {
 public:
  SumOrder(const RunShape& shape, const Settings& saved, std::vector<std::string>& notices)
      : asked_(summation_settings(shape.gradients, shape.buckets)), saved_(saved), notices_(notices) {}

  // The checkpoint's value if it is to be adopted.
  std::optional<std::string> kept(const char* key, bool asked_for) const {
    const std::string before = setting(saved_, key);
    if (before.empty() || before == setting(asked_, key)) return std::nullopt;
    if (!asked_for) return before;
    notices_.push_back(
        fmt::format("{}: {} was requested, but the checkpoint was trained with {}: the order of additions changes, "
                    "so that bits will differ from those of a run that was not interrupted",
                    key, setting(asked_, key), before));
    return std::nullopt;
  }
  // The same for a positive number; 0: nothing to adopt.
  int64_t kept_number(const char* key, bool asked_for) const { return kept(key, asked_for) ? number(saved_, key) : 0; }

 private:
  const Settings asked_;
  const Settings& saved_;
  std::vector<std::string>& notices_;
};

void keep_sums(RunShape& shape, const ExplicitSettings& asked, const Settings& saved,
               std::vector<std::string>& notices) {
  const SumOrder order(shape, saved, notices);
  if (const auto wire = order.kept(kWire, asked.wire)) shape.gradients.wire = wire_type(*wire);
  if (const auto algorithm = order.kept(kAlgorithm, asked.algorithm)) shape.gradients.algorithm = *algorithm;
  if (const int64_t segment = order.kept_number(kSegment, false); segment > 0) shape.gradients.segment = segment;
  if (asked.bucket_count) return;
  // Tuned sizes are adopted, not tuned again.
  const bool tuned = shape.tune_buckets && number(saved, kBucket) > 0;
  if (const int64_t bytes = order.kept_number(kBucket, asked.bucket_bytes && !tuned); bytes > 0)
    shape.buckets.bytes = bytes;
  if (const int64_t bytes = order.kept_number(kLastBucket, asked.last_bucket_bytes && !tuned); bytes > 0)
    shape.buckets.last_bytes = bytes;
  if (!tuned) return;
  shape.tune_buckets = false;
  notices.push_back(fmt::format("gradient buckets of {} bytes are adopted from the checkpoint", shape.buckets.bytes));
}

}  // namespace

std::map<std::string, std::string> summation_settings(const CommunicatorOptions& gradients,
                                                      const BucketOptions& buckets) {
  return {{kWire, wire_name(gradients.wire)},
          {kAlgorithm, gradients.algorithm},
          {kSegment, fmt::format("{}", gradients.segment)},
          {kBucket, fmt::format("{}", buckets.bytes)},
          {kLastBucket, fmt::format("{}", buckets.last_bytes)}};
}

std::vector<std::string> elastic_resume(RunShape& shape, const ExplicitSettings& asked, const RunOptions& run,
                                        Group& group) {
  std::vector<std::string> notices;
  const std::optional<TrainState> state = state_to_resume(run, group);
  if (!state) return notices;
  keep_global_batch(shape, group.size(), saved_global_batch(*state), notices);
  if (setting(state->settings, "device") != shape.device) return notices;
  if (group.size() > 1) keep_sums(shape, asked, state->settings, notices);
  // With another number of ranks, batches and shares of the cores differ.
  const int64_t threads = number(state->settings, "compute threads");
  const bool kept = shape.device == "cpu" && !asked.threads && number(state->settings, "ranks") == group.size();
  if (kept && threads > 0 && threads <= shape.cores) shape.threads = static_cast<int>(threads);
  return notices;
}

}  // namespace dtrain
