// Commands of dtrain-mask-rcnn. argv[0] is program and command; all return the exit code.
#pragma once

#include <string>
#include <vector>

namespace dtrain::mask_rcnn {

using Arguments = std::vector<std::string>;

int train(const Arguments& argv);
int eval(const Arguments& argv);
int predict(const Arguments& argv);
int visualize(const Arguments& argv);
int convert(const Arguments& argv);
int export_model(const Arguments& argv);

// Front ends for command lines of TensorPack's train.py and predict.py, and of AWS Mask R-CNN's train.py.
int tensorpack_train(const Arguments& argv);
int tensorpack_predict(const Arguments& argv);
int aws_train(const Arguments& argv);

}  // namespace dtrain::mask_rcnn
