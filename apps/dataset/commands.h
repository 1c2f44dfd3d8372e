// Commands of dtrain-data. argv[0] is "dtrain-data <command>"; each returns the exit code.
#pragma once

#include <string>
#include <vector>

namespace dtrain::dataset {

using Arguments = std::vector<std::string>;

int imagenet(const Arguments& argv);
int imagenet_labels(const Arguments& argv);
int synthesize(const Arguments& argv);
int shapes(const Arguments& argv);
int cifar10(const Arguments& argv);
int coco(const Arguments& argv);
int resize(const Arguments& argv);
int inspect(const Arguments& argv);
int check(const Arguments& argv);
int split(const Arguments& argv);
int stats(const Arguments& argv);
int show(const Arguments& argv);
int verify(const Arguments& argv);
int index(const Arguments& argv);
int throughput(const Arguments& argv);

}  // namespace dtrain::dataset
