#include "apps/cli/ranking.h"

#include <algorithm>
#include <numeric>

namespace dtrain::cli {

std::vector<size_t> ranking(const std::vector<float>& probabilities, size_t count) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  count = std::min(order.size(), count);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) {
                      return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
                    });
  order.resize(count);
  return order;
}

}  // namespace dtrain::cli
