// dtrain-allreduce-benchmark: measures and verifies the all-reduce of a job's ranks.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/allreduce_benchmark/measure.h"
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/machine.h"
#include "apps/cli/options/ranks.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "dtrain/data/catalog.h"
#include "dtrain/models/catalog.h"
#include "libdtrain/io/result_file.h"

namespace {

using namespace dtrain;
using allreduce_benchmark::Message;
using allreduce_benchmark::Row;

constexpr char kAbout[] =
    "Measures the all-reduce of f32 messages over the ranks that mpirun or srun started, with the implementation that "
    "training uses. Time is the median over the iterations of the slowest rank; bandwidths are defined as in "
    "nccl-tests: algbw is bytes / time, busbw is algbw x 2 (n - 1) / n. Every result is checked.\n"
    "Exit codes: 0 done, 1 usage, 4 wrong results, or a rank or the network failed, 6 memory or disk.";

struct Options {
  std::string min_bytes = "4K", max_bytes = "64M";
  int64_t factor = 4;
  std::vector<std::string> sizes;
  std::string model, dataset = "imagenet";
  cli::BucketFlags buckets;
  std::string wire = "fp32", algorithm = "auto", device = "cpu", json_file;
  int64_t segment = CommunicatorOptions{}.segment;
  cli::JobFlags job;
  allreduce_benchmark::Repeats repeats;
};

// "500K" -> "0.48828125", exactly.
std::optional<std::string> mebibytes_of(const std::string& bytes) {
  if (bytes == "0") return bytes;
  return fmt::format("{}", static_cast<double>(allreduce_benchmark::parse_bytes(bytes)) / cli::kMebibyte);
}

void declare(cli::FlagSet& flags, Options& options) {
  flags.group("Messages");
  flags.add("min_bytes", options.min_bytes, "smallest message; K, M and G are powers of 1024");
  flags.add("max_bytes", options.max_bytes, "largest message");
  flags.add("factor", options.factor, "factor between message sizes", {2, 1 << 20});
  flags.add("sizes", options.sizes, "list of message sizes, instead of a range");
  flags.add(
      "model", options.model,
      fmt::format("all-reduce the gradients of a model instead: {}", fmt::join(models::classifier_names(), ", ")));
  flags.add(
      "data_name", options.dataset,
      fmt::format("{}: data set that determines the variant of the model", fmt::join(data::dataset_names(), " or ")));
  options.buckets.declare(flags, /*least=*/0).first.former_name("bucket_bytes", mebibytes_of);
  flags.group("Sums");
  flags.add_choice("wire_precision", options.wire, {"fp32", "bf16", "fp16"}, "data type on the wire")
      .former_name("wire");
  flags
      .add("all_reduce_algorithm", options.algorithm,
           "auto, ring, direct, hierarchical or doubling over MPI; auto, ring, tree and others over NCCL")
      .former_name("algorithm");
  flags.add("segment", options.segment, "elements per chunk of the pipelined ring", cli::kPositiveCount);
  flags.add_choice("device", options.device, {"cpu", "gpu"}, "gpu: each rank uses the GPU of its local rank");
  flags.group("Run");
  flags.add("iterations", options.repeats.iterations, "timed iterations; the median is reported", {1, 1'000'000});
  flags.add("warmup", options.repeats.warmup, "untimed warm-up iterations", {0, 1'000'000});
  flags.add("json_file", options.json_file, "JSON file for the results: bytes, seconds, bytes per second")
      .former_name("json");
  options.job.declare(flags);
}

std::vector<Message> messages_of(const Options& options) {
  if (!options.model.empty())
    return allreduce_benchmark::gradients_of(options.model, options.dataset, options.buckets.options());
  if (!options.sizes.empty()) return allreduce_benchmark::list_of_sizes(options.sizes);
  return allreduce_benchmark::range_of_sizes(allreduce_benchmark::parse_bytes(options.min_bytes),
                                             allreduce_benchmark::parse_bytes(options.max_bytes), options.factor);
}

std::unique_ptr<Context> make_context(const Options& options, const Group& group) {
  cli::Machine machine{.gpu = options.device == "gpu", .trial = true, .threads = 1};
  if (machine.gpu) {
    machine.index = cli::gpu_of_rank(group.places()[static_cast<size_t>(group.rank())].local_rank);
    const std::string reason = cli::why_no_gpu(machine.index);
    DT_CHECK(reason.empty(), "--device=gpu: no GPU ", machine.index, ": ", reason);
  }
  return machine.make_context();
}

void print_head(const Options& options, const Communicator& communicator) {
  fmt::print("{} rank{}, {}: {}; {} iterations after {}\n", communicator.size(), communicator.size() == 1 ? "" : "s",
             options.device, communicator.describe(), options.repeats.iterations, options.repeats.warmup);
  static constexpr char kColumns[] = "{:>14} {:>14} {:>12} {:>9} {:>9} {:>8}\n";
  fmt::print(kColumns, "size", "count", "time", "algbw", "busbw", "#wrong");
  fmt::print(kColumns, "(bytes)", "(f32)", "(us)", "(GB/s)", "(GB/s)", "");
}

void print(const Row& row, int ranks) {
  constexpr double kGiga = 1e9, kMicro = 1e-6;
  fmt::print("{:>14} {:>14} {:>12.1f} {:>9.3f} {:>9.3f} {:>8}{}\n", row.bytes,
             row.bytes / static_cast<int64_t>(sizeof(float)), row.seconds / kMicro, row.algorithm_bandwidth() / kGiga,
             row.bus_bandwidth(ranks) / kGiga, row.wrong, row.name.empty() ? "" : "  " + row.name);
  std::fflush(stdout);
}

void write_json(const Options& options, const Communicator& communicator, const std::vector<Row>& rows) {
  nlohmann::ordered_json json = {{"ranks", communicator.size()},
                                 {"device", options.device},
                                 {"communicator", communicator.describe()},
                                 {"segment", options.segment},
                                 {"iterations", options.repeats.iterations},
                                 {"warmup", options.repeats.warmup},
                                 {"rows", nlohmann::ordered_json::array()}};
  std::vector<std::string> hosts;
  for (const Place& place : communicator.group().places()) hosts.push_back(place.host);
  json["hosts"] = hosts;
  for (const Row& row : rows)
    json["rows"].push_back({{"name", row.name},
                            {"bytes", row.bytes},
                            {"seconds", row.seconds},
                            {"algorithm_bandwidth", row.algorithm_bandwidth()},
                            {"bus_bandwidth", row.bus_bandwidth(communicator.size())},
                            {"wrong", row.wrong}});
  ResultFile file(options.json_file);
  file.write(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  file.commit();
}

void measure_all(const Options& options, const std::vector<Message>& messages, Group& group) {
  const std::unique_ptr<Context> context = make_context(options, group);
  const std::unique_ptr<Communicator> communicator = make_communicator(group, *context,
                                                                       {.wire = cli::precision_of(options.wire),
                                                                        .algorithm = options.algorithm,
                                                                        .segment = options.segment,
                                                                        .even_alone = options.device == "gpu"});
  const bool speaks = group.rank() == 0;
  if (speaks) print_head(options, *communicator);
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, std::span<const Message> parts) {
    group.enter(Section::step, rows.size());
    rows.push_back(allreduce_benchmark::measure(*communicator, *context, name, parts, options.repeats));
    if (speaks) print(rows.back(), group.size());
  };
  for (const Message& message : messages) add(options.model.empty() ? "" : message.name, std::span(&message, 1));
  if (!options.model.empty()) add(options.model + ", all of them", messages);
  if (speaks && !options.json_file.empty()) write_json(options, *communicator, rows);
  int64_t wrong = 0;
  for (const Row& row : rows) wrong += row.wrong;
  if (wrong > 0) throw Error(Fault::communication, fmt::format("{} elements of the results are wrong", wrong));
}

int run(const std::vector<std::string>& argv) {
  Options options;
  cli::FlagSet flags("dtrain-allreduce-benchmark", "[flags]", kAbout);
  declare(flags, options);
  flags.add_config_file();
  if (!cli::read_flags(flags, argv)) return 0;
  const std::vector<Message> messages = messages_of(options);
  const std::unique_ptr<Group> group = cli::open_group(options.job.limits(), options.job.expect_ranks);
  measure_all(options, messages, *group);
  group->finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
