// Single-rank communicator, and selection of the implementation for a group and a device.
#include "dtrain/distributed/communicator.h"

#include "libdtrain/distributed/transports.h"

namespace dtrain {
namespace {

class SingleCommunicator : public Communicator {
 public:
  explicit SingleCommunicator(Group& group) : Communicator(group) {}
  void all_reduce(std::span<const Tensor>, const std::string&, bool) override {}
  void broadcast(const Tensor&, int, const std::string&) override {}
  void join() override {}
  std::string describe() const override { return "one rank"; }
  CommunicatorTimes take_times() override { return {}; }
};

}  // namespace

std::unique_ptr<Communicator> make_communicator(Group& group, Context& context, const CommunicatorOptions& options) {
  DT_CHECK(options.wire == DType::f32 || options.wire == DType::bf16 || options.wire == DType::f16, "wire type ",
           name_of(options.wire), ": expected f32, bf16 or f16");
  DT_CHECK(options.segment > 0, "messages of ", options.segment, " elements");
  if (group.size() == 1 && !options.even_alone) return std::make_unique<SingleCommunicator>(group);
#ifdef DTRAIN_WITH_NCCL
  if (!context.is_cpu()) return make_nccl_communicator(group, context, options);
#endif
  if (!context.is_cpu()) throw Error("all-reduce on GPUs: built without NCCL");
  return make_host_communicator(group, options);
}

}  // namespace dtrain
