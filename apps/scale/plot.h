// SVG plot of curves over the number of GPUs.
#pragma once

#include <string>
#include <vector>

namespace dtrain::scale {

struct Curve {
  std::string name;
  std::vector<double> y;  // fractions, one per Plot::x
  int colour = 0;         // below 6
  bool dashed = false;
};

// Panels stacked vertically, with a shared x axis.
struct Panel {
  std::string title;
  double top = 0;  // end of the y axis, which starts at 0; 0: automatic
  std::vector<Curve> curves;
};

struct Plot {
  std::string title;
  std::vector<std::string> notes;  // lines below the title
  std::vector<double> x;           // ascending, positive; logarithmic axis
  std::string x_label;
  std::vector<Panel> panels;
};

// Fractions are labelled in per cent.
std::string to_svg(const Plot& plot);

}  // namespace dtrain::scale
