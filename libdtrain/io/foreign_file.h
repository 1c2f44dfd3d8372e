// Detection of wrong file types by their first bytes: results of failed downloads or missing Git LFS files, and common
// mistakes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

inline constexpr size_t kForeignBytes = 64;  // examined bytes

// Description of a file that begins with `bytes`, with advice: "an HTML page, such as ...; download ...". Detects Git
// LFS pointers, HTML, compressed files, HDF5, Python pickles and UTF-16 text. Empty otherwise.
std::string foreign_content(std::string_view bytes);

bool begins_safetensors(std::string_view bytes);

// For weight files: empty for safetensors, even if their header size resembles another type, and for zip archives,
// which include NumPy's and PyTorch's.
std::string foreign_weights(std::string_view bytes);

}  // namespace dtrain
