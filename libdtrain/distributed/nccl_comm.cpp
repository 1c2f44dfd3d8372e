// Initialisation, completion and destruction of an NCCL communicator.
#include "libdtrain/distributed/nccl_comm.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "libdtrain/distributed/awake.h"

namespace dtrain::nccl {
namespace {

constexpr double kGoodbye = 10;  // seconds for an orderly destruction

// Temporarily overrides an environment variable: ncclConfig_t (NCCL 2.28) has no field for the
// algorithm, which each new communicator reads from NCCL_ALGO.
class EnvironmentValue {
 public:
  EnvironmentValue(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~EnvironmentValue() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  EnvironmentValue(const EnvironmentValue&) = delete;
  EnvironmentValue& operator=(const EnvironmentValue&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::string hexadecimal(const char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

// Compares GPU UUIDs and NCCL versions of the ranks.
void compare_ranks(Group& group, const cudaDeviceProp& device) {
  const std::string mine = hexadecimal(device.uuid.bytes, sizeof device.uuid.bytes);
  const auto told = group.all_gather(concat(mine, " ", cuda::nccl().version()), "GPUs and versions of NCCL");
  std::map<std::string, int> rank_of;
  int first_version = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    std::istringstream text(told[static_cast<size_t>(rank)]);
    std::string gpu;
    int version = 0;
    text >> gpu >> version;
    const auto [known, fresh] = rank_of.emplace(gpu, rank);
    DT_CHECK(fresh, group.name(known->second), " and ", group.name(rank), " have the same GPU, ", gpu,
             ": start no more ranks on a host than it has GPUs, and give each its own");
    if (rank == 0) first_version = version;
    DT_CHECK(version == first_version, group.name(0), " has NCCL ", first_version, ", ", group.name(rank), " NCCL ",
             version, ": install one version everywhere");
  }
}

// NCCL's name of an all-reduce algorithm; its other collectives support fewer and would fail.
std::optional<EnvironmentValue> force(const std::string& algorithm) {
  if (algorithm == "auto") return {};
  constexpr const char* kKnown[] = {"ring", "tree", "collnetdirect", "collnetchain", "nvls", "nvlstree"};
  DT_CHECK(std::ranges::find(kKnown, algorithm) != std::end(kKnown), "algorithm ", algorithm,
           " of NCCL: expected auto, ring, tree, collnetdirect, collnetchain, nvls or nvlstree");
  constexpr int kByFunction = 22400;
  return std::optional<EnvironmentValue>(std::in_place, "NCCL_ALGO",
                                         cuda::nccl().version() < kByFunction ? algorithm : "allreduce:" + algorithm);
}

}  // namespace

Comm::Comm(Group& group, const cuda::Runtime& runtime, const std::string& algorithm, int most_blocks) : group_(group) {
  const auto forced = force(algorithm);
  const cuda::Nccl& nccl = cuda::nccl();
  compare_ranks(group, runtime.properties());
  ncclUniqueId id{};
  if (group.rank() == 0) check(nccl.get_unique_id(&id), "ncclGetUniqueId");
  const std::string text = group.broadcast({id.internal, sizeof id.internal}, 0, "NCCL's address");
  DT_CHECK(text.size() == sizeof id.internal, "NCCL's address: ", text.size(), " bytes, expected ", sizeof id.internal);
  text.copy(id.internal, sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (most_blocks > 0) config.maxCTAs = most_blocks;
  check(nccl.init_rank(&comm_, group.size(), id, group.rank(), &config), "ncclCommInitRankConfig");
  settle("the start of NCCL");
}

Comm::~Comm() {
  if (comm_ == nullptr) return;
  const cuda::Nccl& nccl = cuda::nccl();
  const bool orderly = std::uncaught_exceptions() == 0;  // else a peer may be gone
  ncclResult_t state = orderly ? nccl.finalize(comm_) : ncclInternalError;
  if (state == ncclInProgress && !wait_while_in_progress(kGoodbye, state)) state = ncclInternalError;
  static_cast<void>(state == ncclSuccess ? nccl.destroy(comm_) : nccl.abort(comm_));
}

void Comm::enqueue(const std::string& what, const Calls& calls) {
  const std::lock_guard lock(mutex_);
  const cuda::Nccl& nccl = cuda::nccl();
  check(nccl.group_start(), "ncclGroupStart");
  const ncclResult_t called = calls(nccl, comm_);
  check(nccl.group_end(), what);
  check(called, what);
  settle(what);
}

std::string Comm::trouble() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return "";  // enqueue() handles it itself
  ncclResult_t state = ncclSuccess;
  const ncclResult_t status = cuda::nccl().get_async_error(comm_, &state);
  if (status != ncclSuccess) state = status;
  if (state == ncclSuccess || state == ncclInProgress) return "";
  return concat(cuda::nccl().get_error_string(state), ": ", cuda::nccl().get_last_error(comm_));
}

void Comm::abort() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && comm_ != nullptr) static_cast<void>(cuda::nccl().abort(std::exchange(comm_, nullptr)));
}

void Comm::check(ncclResult_t status, const std::string& call) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  const cuda::Nccl& nccl = cuda::nccl();
  stop(concat(call, ": ", nccl.get_error_string(status), ": ", nccl.get_last_error(comm_)));
}

// Waits until NCCL's background thread has finished; no further call is allowed before.
void Comm::settle(const std::string& what) {
  ncclResult_t state = ncclInProgress;
  if (!wait_while_in_progress(group_.limit(), state))
    stop(concat(what, ": NCCL has not reached its peers within ", group_.limit(), " s"));
  check(state, what);
}

bool Comm::wait_while_in_progress(double limit, ncclResult_t& state) {
  constexpr int kEager = 100;
  const SteadyTime begun = std::chrono::steady_clock::now();
  for (int turn = 0;; ++turn) {
    const ncclResult_t status = cuda::nccl().get_async_error(comm_, &state);
    if (status != ncclSuccess) state = status;
    if (state != ncclInProgress) return true;
    if (waited_since(begun) > limit) return false;
    if (turn > kEager) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Comm::stop(const std::string& report) {
  if (comm_ != nullptr) static_cast<void>(cuda::nccl().abort(std::exchange(comm_, nullptr)));
  group_.fail(concat(group_.name(group_.rank()), " in ", group_.where(), ": ", report));
}

}  // namespace dtrain::nccl
