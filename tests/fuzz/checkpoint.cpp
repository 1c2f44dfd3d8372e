// State and manifest of a checkpoint, selected by the first byte.
#include "libdtrain/train/checkpoint_files.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  if (size == 0) return 0;
  const std::string text = fuzz::text_of(data + 1, size - 1);
  return fuzz::expect(Fault::checkpoint, [&] {
    if (data[0] % 2 == 0) {
      train_state_from(train_state_text(train_state_from(text, "state.json")), "what was written");
      return;
    }
    fuzz::file_of("MANIFEST.json", text);
    looks_complete(fuzz::folder().string());
    verify_checkpoint(fuzz::folder().string());
  });
}
