// Data sets of version 0.1: one in memory, those of the catalogue, batches of a loader.
#include <cstdio>
#include <memory>
#include <numeric>

#include "data/batch.h"
#include "data/cache.h"
#include "data/catalog.h"
#include "data/cifar10.h"
#include "data/dataset.h"
#include "data/idx.h"
#include "data/imagenet.h"
#include "data/layout.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "data/record_index.h"
#include "data/record_shards.h"

namespace dd = dtrain::data;

class Numbers : public dd::Dataset {
 public:
  const dd::BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return 10; }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  dd::RecordLocation locate(uint64_t record) const override { return {"numbers", record, record}; }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::unique_ptr<dd::SampleReader> reader() const override;
  std::string identity() const override { return "ten numbers"; }

 private:
  dd::BatchLayout layout_{.fields = {{.name = "number", .dtype = dtrain::DType::i32}}};
  std::vector<uint64_t> begins_{0, 10};
  std::vector<std::string> faults_;
};

std::shared_ptr<dd::Dataset> open(const std::string& folder) {
  if (folder.empty()) return std::make_shared<Numbers>();
  const dd::Pixels pixels{.dataset = "imagenet", .preprocessing = "torchvision"};
  const dd::ImagenetOptions imagenet{.directory = folder, .cache = {.keeps_records = true}};
  const dd::MnistOptions mnist{.directory = folder, .size = 32};
  const dd::CifarOptions cifar{.height = 32, .width = 32};
  if (folder.ends_with("mnist")) return std::make_shared<dd::MnistDataset>(mnist);
  if (folder.ends_with("cifar"))
    return std::make_shared<dd::ImagenetDataset>(imagenet, dd::make_cifar_preprocess(cifar));
  return dd::open_split(pixels, {.directory = folder, .classes = 1000});
}

int main(int argc, char** argv) try {
  const std::shared_ptr<dd::Dataset> dataset = open(argc > 1 ? argv[1] : "");
  if (argc > 1) {
    dd::Loader loader(dataset, {.batch = 4, .seed = 1, .workers = 1});
    const dd::Batch& batch = *loader.next();
    std::printf("%d rows, cursor %d\n", static_cast<int>(batch.rows()), static_cast<int>(batch.cursor));
  }
  std::printf("%s: %d records in %zu shards, %zu data sets\n", dataset->identity().c_str(),
              static_cast<int>(dataset->size()), dataset->shard_begins().size() - 1, dd::datasets().size());
  static_cast<void>(&dd::read_idx), static_cast<void>(&dd::RecordIndex::scan);
  return 0;
} catch (const dtrain::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}

std::unique_ptr<dd::SampleReader> Numbers::reader() const { return nullptr; }
