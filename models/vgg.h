// VGG without batch norm (Simonyan and Zisserman 2014, columns A, D and E), with torchvision's parameter names.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// The models of columns A, D and E. They work at any image size from 32 up: the first linear layer takes what the last
// pooling leaves, 7 x 7 at 224.
std::vector<Entry> vgg_entries();

}  // namespace dtrain::models
