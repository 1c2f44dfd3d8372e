// Files of PyTorch and pickles of arrays.
#include "dtrain/io/torch_file.h"

#include "dtrain/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::data, [&] {
    const TorchFile file(fuzz::file_of("weights.pth", fuzz::text_of(data, size)));
    for (const TorchEntry& entry : file.entries()) {
      if (is_floating(entry.dtype)) file.read_floats(entry.name);
      if (!entry.dtype.starts_with("torch.")) file.read_bytes(entry.name);  // those are of no type of safetensors
    }
  });
}
