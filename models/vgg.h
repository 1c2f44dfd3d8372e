// VGG without batch norm (Simonyan and Zisserman 2014, columns A, D and E), with torchvision's parameter names.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// Columns A, D and E, for image sizes of at least 32. The first linear layer reads the output of the last pool, 7 x 7
// at size 224.
std::vector<Entry> vgg_entries();

}  // namespace dtrain::models
