// Writes to pipes and terminals with slow or stalled readers.
#pragma once

#include <ostream>
#include <string_view>

namespace dtrain::cli {

// Writes all of `text`; on failure returns false with errno set. Blocks on a full pipe or a halted terminal. From two
// seconds after a stop request it no longer blocks, and fails with ENOBUFS.
bool write_patiently(int fd, std::string_view text) noexcept;

// Makes stdout and stderr use this function on flush.
std::ostream& patient_stdout();
std::ostream& patient_stderr();

}  // namespace dtrain::cli
