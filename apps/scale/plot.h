// Curves over the number of GPUs, as an SVG file.
#pragma once

#include <string>
#include <vector>

namespace dtrain::scale {

struct Curve {
  std::string name;
  std::vector<double> y;  // shares, one for each of Plot::x
  int colour = 0;         // below 6
  bool dashed = false;
};

// Drawn above each other, with one axis of x.
struct Panel {
  std::string title;
  double top = 0;  // where the axis of y, which begins at 0, ends; 0: at a round number above all curves
  std::vector<Curve> curves;
};

struct Plot {
  std::string title;
  std::vector<std::string> notes;  // lines below the title
  std::vector<double> x;           // ascending, above 0; the axis is logarithmic
  std::string x_label;
  std::vector<Panel> panels;
};

// Shares are labelled in per cent.
std::string to_svg(const Plot& plot);

}  // namespace dtrain::scale
