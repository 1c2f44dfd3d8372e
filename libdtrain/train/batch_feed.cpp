#include "dtrain/train/batch_feed.h"

namespace dtrain {

BatchFeed::BatchFeed(Context& context, int batches)
    : context_(context, "a BatchFeed is used after its Context has been destroyed; expected one that outlives it") {
  DT_CHECK(batches >= 1, "BatchFeed: ", batches, " batches per step");
  batches_.resize(static_cast<size_t>(batches));
}

BatchFeed::~BatchFeed() {
  try {
    wait_until_copied();
  } catch (const Error&) {  // the device has failed: no copy is in flight
  }
}

void BatchFeed::allocate(const std::vector<Tensor>& batch) {
  const auto like_batch = [&] {
    std::vector<Tensor> tensors;
    for (const Tensor& x : batch) tensors.push_back(context_->empty(x.shape(), x.dtype()));
    return tensors;
  };
  for (std::vector<Tensor>& tensors : batches_) tensors = like_batch();
  if (context_->is_cpu()) return;
  for (Staging& staging : staging_) {
    staging.tensors = like_batch();
    // Work in flight may still read the memory's former contents.
    staging.read = context_->record();
  }
}

const std::vector<Tensor>& BatchFeed::put(const std::vector<Tensor>& batch, const Make& make) {
  DT_CHECK(!make || !context_->is_cpu(), "a batch on a CPU is read where it is, not made");
  DT_CHECK(!make || !batch.empty(), "a batch of no tensors, of which the first is to be made");
  for (const Tensor& x : batch)
    DT_CHECK(x && x.device() == Device{}, "a batch with ",
             x ? concat("a tensor on ", x.device()) : "an undefined tensor", ", expected host memory");
  std::vector<Tensor>& target = batches_[count_ % batches_.size()];
  if (context_->is_cpu() && batches_.size() == 1) return target = batch;
  if (count_ == 0) allocate(batch);
  DT_CHECK(batch.size() == target.size(), "a batch of ", batch.size(), " tensors, expected ", target.size());
  for (size_t i = 0; i < batch.size(); ++i)
    DT_CHECK(batch[i].shape() == target[i].shape() && batch[i].dtype() == target[i].dtype(), "a batch with ",
             batch[i].dtype(), " ", batch[i].shape(), ", expected ", target[i].dtype(), " ", target[i].shape());
  const size_t number = count_++;
  if (context_->is_cpu()) {
    for (size_t i = 0; i < batch.size(); ++i) context_->upload(batch[i].raw(), target[i]);
    return target;
  }
  Staging& staging = staging_[number % staging_.size()];
  context_->wait(Stream::copy, staging.read);
  if (make) make(staging.tensors.at(0));
  for (size_t i = make ? 1 : 0; i < batch.size(); ++i)
    context_->upload(batch[i].raw(), staging.tensors[i], Stream::copy);
  copied_ = context_->record(Stream::copy);
  context_->wait(Stream::compute, copied_);
  for (size_t i = 0; i < batch.size(); ++i) context_->copy(staging.tensors[i], target[i]);
  staging.read = context_->record();
  return target;
}

}  // namespace dtrain
