// Values, stack and memo of an unpickler, with their limits.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libdtrain/io/pickle_scalars.h"

namespace dtrain::pickle {

// Throws Malformed if a pickle misuses it, e.g. pops from an empty stack.
class Stack {
 public:
  explicit Stack(const Limits& limits) : limits_(limits) {}

  // References to values are valid until the next push().
  Value& operator[](Id id) { return values_[id]; }
  std::vector<Value> take_values() { return std::move(values_); }

  void push(Value value) {
    if (values_.size() >= limits_.values)
      throw Malformed{concat("more than ", limits_.values, " values; expected the tensors of a model and their names")};
    values_.push_back(std::move(value));
    push_again(static_cast<Id>(values_.size() - 1));
  }
  void push_items(Kind kind, std::vector<Id> items) { push({.kind = kind, .items = std::move(items)}); }
  void push_again(Id id) {
    if (stack_.size() >= limits_.values) throw Malformed{"the stack is too deep"};
    stack_.push_back(id);
  }
  void push_mark() { push_again(kMark); }

  Id top() const {
    if (stack_.empty() || stack_.back() == kMark) throw Malformed{"the stack is empty"};
    return stack_.back();
  }
  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }
  void pop_any() {
    if (stack_.empty()) throw Malformed{"the stack is empty"};
    stack_.pop_back();
  }
  std::vector<Id> pop_to_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), kMark);
    if (mark == stack_.rend()) throw Malformed{"there is no mark on the stack"};
    std::vector<Id> items(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return items;
  }

  // Adds to the top of the stack, which must be of `kind`.
  void append(const std::vector<Id>& items, Kind kind) {
    Value& object = values_[top()];
    if (object.kind != kind) throw Malformed{"items are added to an object that has none"};
    if (kind == Kind::dict && items.size() % 2 != 0) throw Malformed{"a key without a value"};
    count_items(items.size());
    object.items.insert(object.items.end(), items.begin(), items.end());
  }
  // Items that are copied do not take input bytes: their number is limited, too.
  void count_items(size_t items) {
    if ((items_ += items) > 2 * limits_.values) throw Malformed{"too many items"};
  }

  size_t memo_size() const { return memo_.size(); }
  void put(uint64_t slot) { memo_[slot] = top(); }
  void get(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) throw Malformed{concat("the memo has no entry ", slot)};
    push_again(found->second);
  }

 private:
  static constexpr Id kMark = UINT32_MAX;

  Limits limits_;
  std::vector<Value> values_;
  std::vector<Id> stack_;
  std::unordered_map<uint64_t, Id> memo_;
  size_t items_ = 0;
};

}  // namespace dtrain::pickle
