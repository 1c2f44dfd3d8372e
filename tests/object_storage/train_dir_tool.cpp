// A run without a network to train, for tests of train_dirs in object storage: its parameters are a function of the
// steps, and a checkpoint comes after every second step.
//     train_dir_tool URL FOLDER STEPS [keep=N] [lease=SECONDS] [pause=MILLISECONDS] [best=STEP] [clear=1]
// FOLDER is the working folder. URL "local": no object storage.
//     train_dir_tool copies URL FOLDER   for each line of standard input, "newest", "steps" or a step: the path of the
//                                        copy in FOLDER, or the steps
//     train_dir_tool weights URL         prints weights_file()
// Errors: one line on stderr, and the fault's number as exit code.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include <unistd.h>

#include "dtrain/autograd/parameters.h"
#include "dtrain/io/remote_path.h"
#include "dtrain/train/checkpoint.h"
#include "libdtrain/train/checkpoint_copies.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/remote_train_dir.h"

namespace dtrain {
namespace {

using Options = std::map<std::string, int64_t>;

void tell(const std::string& text) { std::cerr << ("note: " + text + "\n"); }

std::unique_ptr<RemoteTrainDir> open(const std::string& url, const std::string& folder, const Options& options) {
  if (url == "local") return nullptr;
  RemoteTrainDirOptions remote{
      .url = url, .folder = folder, .host = "host-" + std::to_string(::getpid()), .note = tell};
  if (options.contains("lease")) remote.lease_seconds = options.at("lease");
  remote.clear = options.contains("clear");
  return std::make_unique<RemoteTrainDir>(remote);
}

void train(const std::string& url, const std::string& folder, uint64_t steps, const Options& options) {
  const std::unique_ptr<RemoteTrainDir> remote = open(url, folder, options);
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  store.add("weight", {4'200'000}, Init::constant(0));  // above the size of a part of an upload
  store.allocate(1);
  CheckpointOptions checkpoints{.train_dir = folder};
  if (options.contains("keep")) checkpoints.keep = options.at("keep");
  if (remote) checkpoints.publish = [&](const CommittedCheckpoint& committed) { remote->publish(committed); };
  Checkpointer checkpointer(store, checkpoints, tell);
  TrainState state{.step = 0, .identity = {{"model", "test"}}};
  if (const auto restored = checkpointer.restore_latest(state)) state.step = restored->state.step;
  std::ofstream log(folder + "/run.log", std::ios::app);
  while (state.step < steps) {
    const uint64_t step = ++state.step;
    float add = static_cast<float>(step);
    for (float& value : store.parameters()[0].value.span<float>()) value = value * 0.5f + (add += 0.25f);
    log << "step " << step << std::endl;
    if (step % 2 == 0) checkpointer.save(state);
    if (options.contains("best") && static_cast<uint64_t>(options.at("best")) == step) checkpointer.keep_best(step);
    if (options.contains("pause")) std::this_thread::sleep_for(std::chrono::milliseconds(options.at("pause")));
  }
  if (!checkpointer.wait()) throw Error(Fault::resource, "the last checkpoint could not be written");
  if (remote) remote->finish();
}

void copy(const std::string& url, const std::string& folder) {
  CheckpointCopies copies({.url = url, .parent = folder, .note = tell});
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "steps") {
      for (const uint64_t step : copies.steps()) std::cout << step << ' ';
      std::cout << std::endl;
    } else {
      const auto path = line == "newest" ? copies.newest() : copies.of(std::stoull(line));
      std::cout << path.value_or("none") << std::endl;
    }
  }
}

void run(const std::string& command, int count, char** words) {
  if (command == "copies") return copy(words[2], words[3]);
  if (command == "weights") {
    std::cout << weights_file(words[2]) << '\n';
    return;
  }
  Options options;
  for (int i = 4; i < count; ++i) {
    const std::string word = words[i];
    options[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
  }
  train(command, words[2], std::stoull(words[3]), options);
}

}  // namespace
}  // namespace dtrain

int main(int count, char** words) {
  if (count < 3) return 1;
  dtrain::set_remote_variables([](const char* name) { return std::getenv(name); });
  try {
    dtrain::run(words[1], count, words);
    return 0;
  } catch (const dtrain::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(error.fault());
  }
}
