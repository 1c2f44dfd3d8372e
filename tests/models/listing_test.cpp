// Layer tables: totals match the catalogue.
#include "models/listing.h"

#include <numeric>
#include <sstream>

#include "dtrain/models/catalog.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

struct Listed {
  std::vector<std::string> lines;
  int64_t parameters = 0, multiply_adds = 0;          // summed over the layers
  int64_t all_parameters = 0, all_multiply_adds = 0;  // of the last line
};

// Last two words of a line.
std::pair<int64_t, int64_t> figures_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return {std::stoll(all.at(all.size() - 2)), std::stoll(all.back())};
}

Listed list(const char* name, const char* dataset, const ClassifierOptions& options = {}) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  const Classifier model = make_classifier(store, classifier_info(name, dataset), options);
  store.allocate(1);
  Listed listed{.lines = list_layers(model, store)};
  for (size_t i = 2; i + 1 < listed.lines.size(); ++i) {
    const auto [parameters, multiply_adds] = figures_of(listed.lines[i]);
    listed.parameters += parameters;
    listed.multiply_adds += multiply_adds;
  }
  std::tie(listed.all_parameters, listed.all_multiply_adds) = figures_of(listed.lines.back());
  EXPECT_EQ(listed.all_multiply_adds, model.multiply_adds);
  return listed;
}

TEST(Listing, LinesAddUpToTotals) {
  for (const auto& [name, dataset] :
       {std::pair("lenet", "mnist"), std::pair("resnet20", "cifar10"), std::pair("densenet40_k12", "cifar10")}) {
    const Listed listed = list(name, dataset);
    EXPECT_EQ(listed.parameters, listed.all_parameters) << name;
    EXPECT_EQ(listed.multiply_adds, listed.all_multiply_adds) << name;
    EXPECT_GT(listed.parameters, 100000) << name;
  }
}

TEST(Listing, ListsLayersWithShapes) {
  const Listed lenet = list("lenet", "mnist");
  std::string text;
  for (const std::string& line : lenet.lines) text += line + "\n";
  EXPECT_TRUE(contains(text, "lenet: 10 classes, images of 28 x 28\n")) << text;
  for (const char* part : {"conv1 ", "conv2 ", "fc1 ", "fc2 ", "conv2d ", "max_pool ", "linear ", "[1, 28, 28, 3] ",
                           "[1, 28, 28, 32] ", "[1, 512] "})
    EXPECT_TRUE(contains(text, part)) << part << " is missing in\n" << text;
  EXPECT_FALSE(contains(text, "(not in this pass)")) << text;
}

TEST(Listing, HasAuxiliaryHeads) {
  const Listed with = list("inception3", "imagenet", {.classes = 1000, .auxiliary_head = true});
  EXPECT_EQ(with.parameters, 27161264);
  EXPECT_EQ(with.parameters, with.all_parameters);
  EXPECT_EQ(with.multiply_adds, with.all_multiply_adds);
}

}  // namespace
}  // namespace dtrain::models
