// dtrain-info --conv: which algorithms a convolution may be computed by on this processor.
#pragma once

#include <string>
#include <vector>

#include "dtrain/core/context.h"

namespace dtrain::info {

// The lists of the algorithms of a convolution written as NxCxHxW,K,RxS,stride,pad,dtype[,pass], one line each: a mark
// for the one that is taken, and why others are not. Without a pass, the lists of all passes that have the type. Throws
// Error with what was expected where the text is not of this form.
std::vector<std::string> conv_lines(const Context& context, const std::string& text);

}  // namespace dtrain::info
