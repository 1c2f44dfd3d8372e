// dtrain-info --models: the image classifiers that there are.
#pragma once

#include <string>

namespace dtrain::info {

// A table in Markdown, with a row for each model and data set that it has a form for.
std::string table_of_models();

}  // namespace dtrain::info
