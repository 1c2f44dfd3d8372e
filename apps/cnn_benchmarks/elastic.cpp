// The global batch of a checkpoint, divided among ranks and micro-steps.
#include "apps/cnn_benchmarks/elastic.h"

#include <charconv>
#include <filesystem>

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

// 0: none, or not to be read: whoever restores it says why.
int64_t global_batch_of(const std::string& checkpoint) {
  if (checkpoint.empty()) return 0;
  try {
    const TrainState state = read_train_state(checkpoint);
    const auto found = state.identity.find("global batch");
    int64_t batch = 0;
    if (found != state.identity.end())
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), batch);
    return batch;
  } catch (const Error&) {
    return 0;
  }
}

std::string numbers_of_ranks(int64_t global, int64_t batch) {
  std::string text;
  for (int64_t ranks = 1; ranks * batch <= global; ++ranks)
    if (global % (ranks * batch) == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks);
  return text.empty() ? "none" : text;
}

}  // namespace

void keep_global_batch(Config& config, Group& group) {
  const bool chief = config.ranks.is_chief();
  const std::string checkpoint = chief ? checkpoint_to_resume(config) : "";
  const auto saved = group.extremes(chief ? global_batch_of(checkpoint) : 0, "global batch of the checkpoint").second;
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

}  // namespace dtrain::cnn_benchmarks
