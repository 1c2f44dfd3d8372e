// Exceptions of parallel regions.
#pragma once

#include <atomic>
#include <exception>

namespace dtrain::cpu {

// Carries an exception out of a parallel region, which must not be left by one.
class FirstException {
 public:
  template <class Body>
  void guard(const Body& body) noexcept {
    try {
      body();
    } catch (...) {
      if (!taken_.exchange(true)) exception_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic<bool> taken_ = false;
  std::exception_ptr exception_;
};

}  // namespace dtrain::cpu
