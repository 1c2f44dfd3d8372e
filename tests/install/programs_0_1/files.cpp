// Readers and writers of version 0.1: TFRecord, safetensors, npz, event files, weights.
#include <cstdio>
#include <string>

#include "data/example.h"
#include "libdtrain/io/array_file.h"
#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/event_file.h"
#include "libdtrain/io/file_system.h"
#include "libdtrain/io/histogram.h"
#include "libdtrain/io/input_file.h"
#include "libdtrain/io/npz.h"
#include "libdtrain/io/npz_output.h"
#include "libdtrain/io/record_file.h"
#include "libdtrain/io/safetensors.h"
#include "libdtrain/io/summary.h"
#include "libdtrain/layers.h"
#include "libdtrain/train/weights.h"

using namespace dtrain;

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 1;
  const std::string folder = argv[1];
  RecordWriter writer(folder + "/train-00000-of-00001");
  data::ExampleWriter example;
  example.int64("label", 7);
  writer.append(example.take());
  writer.finish();
  RecordReader reader(folder + "/train-00000-of-00001");
  data::Example parsed;
  while (const auto record = reader.next()) parsed.parse(record->bytes);

  AtomicFile file(folder + "/array.npz");
  ArrayOutput output(file.output(), ArrayFormat::npz, std::vector<TensorSpec>{{"x", DType::f32, {2}}});
  const float values[] = {1, 2};
  output.write(values);
  output.finish();
  file.commit();
  const NpzFile npz(folder + "/array.npz");
  const std::vector<float> read = npz.read(*npz.find("x"));

  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Linear layer(store, "fc", 2, 2, Init::normal(1));
  store.allocate(/*seed=*/1);
  save_weights(store, folder + "/weights.safetensors");
  const SafetensorsFile weights(folder + "/weights.safetensors");
  const WeightReport report = load_weights(store, folder + "/weights.safetensors");
  const ArrayFile arrays(folder + "/weights.safetensors");

  EventFile events({.folder = folder, .host = "host"}, std::nullopt, /*wall_time=*/1);
  Histogram histogram;
  histogram.add(read);
  Summary summary;
  summary.scalar("loss", 0.5);
  summary.histogram("values", histogram);
  events.add(1, 2, summary);
  events.flush();
  std::printf("label %d, %zu arrays, %zu tensors, %s\n", static_cast<int>(parsed.int64("label")), npz.entries().size(),
              weights.entries().size() + arrays.entries().size(), report.summary().c_str());
  return report.complete() && read[1] == 2 && layer.weight ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
