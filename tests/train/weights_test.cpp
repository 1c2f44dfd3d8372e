// Weights in torchvision's layouts; the files themselves are tested with the checkpoints.
#include "libdtrain/train/weights.h"

#include "libdtrain/io/safetensors.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::vector<float> read(const std::filesystem::path& path, const std::string& name) {
  const SafetensorsFile file(path.string());
  const SafetensorsEntry* entry = file.find(name);
  DT_CHECK(entry, "no ", name);
  std::vector<float> values(entry->bytes / sizeof(float));
  file.read(*entry, values.data());
  return values;
}

TEST(Weights, LayoutsOfTorchvision) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Parameter& filters = store.add("filters", {2, 1, 2, 3}, Init::constant(0), {.layout = Layout::krsc});
  const Parameter& flat = store.add("flat", {2, 6}, Init::constant(0), {.layout = Layout::flat, .channels = 3});
  store.allocate(0);
  // k r s c, counted through: [[0 1 2], [3 4 5]] are the two pixels of filter 0.
  const std::vector<float> ours = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<float> torch = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  context->upload(ours.data(), filters.value);
  context->upload(ours.data(), flat.value);
  const TempDirectory folder;
  const std::string path = (folder / "weights.safetensors").string();
  save_weights(store, path);
  EXPECT_EQ(read(path, "filters"), torch);
  EXPECT_EQ(read(path, "flat"), torch);
  EXPECT_EQ(torch_shape(filters), (Shape{2, 3, 1, 2}));
  EXPECT_EQ(torch_shape(flat), (Shape{2, 6}));

  context->fill_zero(store.values());
  EXPECT_TRUE(load_weights(store, path).complete());
  EXPECT_EQ(values_of<float>(*context, filters.value), ours);
  EXPECT_EQ(values_of<float>(*context, flat.value), ours);
}

}  // namespace
}  // namespace dtrain
