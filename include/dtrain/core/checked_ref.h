// CheckedRef: a reference that throws Error once its object is destroyed, instead of undefined behaviour.
#pragma once

#include <memory>

#include "dtrain/core/error.h"

namespace dtrain {

// Member of a referenced object, whose lifetime() returns it.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  std::weak_ptr<const void> watch() const { return token_; }

 private:
  std::shared_ptr<const int> token_ = std::make_shared<const int>(0);
};

template <class T>
class CheckedRef {
 public:
  // `misuse`: text of the error, a string literal.
  CheckedRef(T& object, const char* misuse) : object_(&object), lifetime_(object.lifetime()), misuse_(misuse) {}

  bool expired() const { return lifetime_.expired(); }
  T& operator*() const {
    if (expired()) [[unlikely]]
      throw Error(misuse_);
    return *object_;
  }
  T* operator->() const { return &**this; }

 private:
  T* object_;
  std::weak_ptr<const void> lifetime_;
  const char* misuse_;
};

}  // namespace dtrain
