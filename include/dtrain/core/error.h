// Error, the project's only exception type, and DT_CHECK, which throws it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace dtrain {

// Class of an error. The values are the programs' exit codes.
enum class Fault {
  config = 1,         // usage or configuration, and misuse of an interface
  data = 2,           // bytes of a data set
  numeric = 3,        // NaN, Inf, divergence
  communication = 4,  // a peer or the network
  checkpoint = 5,     // no usable checkpoint, or it does not fit the run
  resource = 6,       // memory, disk, file descriptors, device
};

// One line: what failed, where, what was expected, what was found.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  explicit Error(const std::string& message) : Error(Fault::config, message) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

// Concatenates its arguments as an ostream formats them.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace dtrain

// DT_CHECK(condition, parts...): throws Error(Fault::config) with the concatenated parts. Always on; for public entry
// points and I/O boundaries. Elsewhere, and for other faults, throw Error directly.
#define DT_CHECK(condition, ...)                                                     \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      throw ::dtrain::Error(::dtrain::Fault::config, ::dtrain::concat(__VA_ARGS__)); \
  } while (false)
