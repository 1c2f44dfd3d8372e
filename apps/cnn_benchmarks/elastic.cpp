// The global batch of a checkpoint, divided among ranks and micro-steps; and the order of its sums.
#include "apps/cnn_benchmarks/elastic.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::cnn_benchmarks {
namespace {

// The newest complete checkpoint of train_dir, or the one that --resume names; empty where the run starts afresh.
std::string checkpoint_to_resume(const Config& config) {
  const Flags& f = config.flags;
  if (f.train_dir.empty() || !config.trains() || f.resume == "never") return "";
  if (f.resume != "auto") return f.resume;
  const std::string directory = f.train_dir + "/checkpoints";
  if (!std::filesystem::is_directory(directory)) return "";
  const std::vector<uint64_t> steps = list_checkpoints(directory);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (const std::string path = checkpoint_path(directory, *step); looks_complete(path)) return path;
  return "";
}

// The state of the chief's checkpoint. None, or not to be read: whoever restores it says why.
std::optional<TrainState> state_to_resume(const Config& config, Group& group) {
  std::string text;
  if (const std::string checkpoint = config.ranks.is_chief() ? checkpoint_to_resume(config) : ""; !checkpoint.empty()) {
    try {
      text = train_state_text(read_train_state(checkpoint));
    } catch (const Error&) {
      text.clear();
    }
  }
  text = group.broadcast(text, config.ranks.chief, "state of the checkpoint");
  if (text.empty()) return std::nullopt;
  return train_state_from(text, "the state of the checkpoint");
}

std::string setting(const std::map<std::string, std::string>& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : found->second;
}

// 0: it is not there, or none.
int64_t number(const std::map<std::string, std::string>& settings, const std::string& key) {
  const std::string text = setting(settings, key);
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string numbers_of_ranks(int64_t global, int64_t batch) {
  std::string text;
  for (int64_t ranks = 1; ranks * batch <= global; ++ranks)
    if (global % (ranks * batch) == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks);
  return text.empty() ? "none" : text;
}

void keep_global_batch(Config& config, int64_t saved) {
  if (saved == 0 || saved == config.global_batch()) return;
  const int64_t together = config.batch * config.ranks.size;
  DT_CHECK(saved % together == 0, "the checkpoint was trained with a global batch of ", saved, "; ", config.ranks.size,
           config.ranks.size == 1 ? " rank" : " ranks", " with --batch_size=", config.batch,
           " cannot share it: with that batch size, numbers of ranks that can are ",
           numbers_of_ranks(saved, config.batch));
  config.flags.gradient_accumulation = saved / together;
  config.notices.push_back(
      fmt::format("the global batch of the checkpoint, {}, is kept: {} ranks x batch size {} x {} "
                  "micro-steps",
                  saved, config.ranks.size, config.batch, saved / together));
}

constexpr char kWire[] = "wire of gradients", kAlgorithm[] = "all-reduce algorithm", kSegment[] = "all-reduce segment";
constexpr char kBucket[] = "bucket bytes", kLastBucket[] = "last bucket bytes";

void keep_sums(Config& config, const cli::FlagSet& set, const std::map<std::string, std::string>& saved) {
  Distribution& now = config.distribution;
  const std::map<std::string, std::string> asked = summation_settings(now.gradients, now.buckets);
  // True where the checkpoint's value is to be taken.
  const auto keeps = [&](const char* key, const std::vector<const char*>& flags) {
    const std::string before = setting(saved, key);
    if (before.empty() || before == setting(asked, key)) return false;
    for (const char* flag : flags) {
      if (!set.given(flag)) continue;
      config.notices.push_back(
          fmt::format("--{}: the checkpoint was trained with {} {}: numbers are added in another order, so that bits "
                      "will differ from those of a run that was not interrupted",
                      flag, key, before));
      return false;
    }
    return true;
  };
  if (keeps(kWire, {"wire_precision"})) now.gradients.wire = cli::precision_of(setting(saved, kWire));
  if (keeps(kAlgorithm, {"all_reduce_algorithm", "all_reduce_spec"}))
    now.gradients.algorithm = setting(saved, kAlgorithm);
  if (keeps(kSegment, {}) && number(saved, kSegment) > 0) now.gradients.segment = number(saved, kSegment);
  // How many bytes --gradient_repacking comes to is known once the model is: then a difference is told of.
  if (now.packs > 0) return;
  const bool tuned = now.autotune && number(saved, kBucket) > 0;
  const auto cut_by = [&](const char* flag) {
    return tuned ? std::vector<const char*>{} : std::vector<const char*>{flag};
  };
  if (keeps(kBucket, cut_by("bucket_mb"))) now.buckets.bytes = std::max<int64_t>(1, number(saved, kBucket));
  if (keeps(kLastBucket, cut_by("last_bucket_mb")))
    now.buckets.last_bytes = std::max<int64_t>(1, number(saved, kLastBucket));
  if (!tuned) return;
  now.autotune = false;
  config.notices.push_back(fmt::format(
      "--autotune_buckets: buckets of {} bytes are kept, with which the checkpoint was trained", now.buckets.bytes));
}

// On another number of ranks each has other batches, and its share of the cores is another.
void keep_threads(Config& config, const std::map<std::string, std::string>& saved) {
  const auto threads = static_cast<int>(number(saved, "compute threads"));
  const bool chosen = config.flags.num_intra_threads.value_or(0) > 0 || std::getenv("OMP_NUM_THREADS") != nullptr;
  if (config.machine.gpu || chosen || number(saved, "ranks") != config.ranks.size) return;
  if (threads > 0 && threads <= cli::available_cores().usable) config.machine.threads = threads;
}

}  // namespace

std::map<std::string, std::string> summation_settings(const CommunicatorOptions& gradients,
                                                      const BucketOptions& buckets) {
  const char* wire = gradients.wire == DType::bf16 ? "bf16" : gradients.wire == DType::f16 ? "fp16" : "fp32";
  return {{kWire, wire},
          {kAlgorithm, gradients.algorithm},
          {kSegment, fmt::format("{}", gradients.segment)},
          {kBucket, fmt::format("{}", buckets.bytes)},
          {kLastBucket, fmt::format("{}", buckets.last_bytes)}};
}

void keep_checkpoint(Config& config, const cli::FlagSet& set, Group& group) {
  const std::optional<TrainState> state = state_to_resume(config, group);
  if (!state) return;
  keep_global_batch(config, number(state->identity, "global batch"));
  if (setting(state->settings, "device") != config.flags.device) return;
  if (config.ranks.size > 1) keep_sums(config, set, state->settings);
  keep_threads(config, state->settings);
}

}  // namespace dtrain::cnn_benchmarks
