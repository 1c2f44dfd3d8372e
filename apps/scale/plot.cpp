#include "apps/scale/plot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace dtrain::scale {
namespace {

// Pixels.
constexpr double kWidth = 1000, kLeft = 80, kRight = 260, kPanel = 250, kGap = 60, kHead = 40, kNote = 18, kFoot = 70;
// Okabe-Ito palette, safe for colour-blind readers.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

std::string text_at(double x, double y, const std::string& text, const std::string& attributes = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, attributes.empty() ? "" : " " + attributes,
                     escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                     attributes);
}

// Tick distance: the next of 1, 2, 5, 10, 20, ... per cent with at most six ticks.
double round_step(double top) {
  const double raw = std::max(top, 1e-4) / 6, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string percent(double share, double step) {
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(100 * step) - 1e-9)));
  return fmt::format("{:.{}f} %", 100 * share, digits);
}

// "512", "2k" for 2048: binary prefixes.
std::string count(double x) {
  return x >= 1000 && std::fmod(x, 1024) == 0 ? fmt::format("{:.0f}k", x / 1024) : fmt::format("{:.0f}", x);
}

class Frame {
 public:
  Frame(const Plot& plot, const Panel& panel, double y) : plot_(plot), panel_(panel), y_(y) {
    double largest = panel.top;
    for (const Curve& curve : panel.curves)
      for (const double value : curve.y) largest = std::max(largest, value);
    step_ = round_step(largest);
    top_ = step_ * std::ceil(largest / step_ - 1e-9);
    if (top_ == 0) top_ = step_;
  }

  std::string draw(bool lowest) const {
    std::string out = text_at(kLeft, y_ - 12, panel_.title, "font-weight=\"600\" fill=\"#222\"");
    for (double share = 0; share <= top_ * (1 + 1e-9); share += step_) {
      out += line(kLeft, at_y(share), kWidth - kRight, at_y(share), "stroke=\"#ddd\"");
      out += text_at(kLeft - 10, at_y(share) + 4, percent(share, step_), "text-anchor=\"end\"");
    }
    double last_label = -1e9;
    for (const double x : plot_.x) {
      out += line(at_x(x), y_, at_x(x), y_ + kPanel, "stroke=\"#eee\"");
      out += line(at_x(x), y_ + kPanel, at_x(x), y_ + kPanel + 5, "stroke=\"#444\"");
      if (at_x(x) - last_label < 34) continue;
      last_label = at_x(x);
      out += text_at(at_x(x), y_ + kPanel + 20, count(x), "text-anchor=\"middle\"");
    }
    out += line(kLeft, y_ + kPanel, kWidth - kRight, y_ + kPanel, "stroke=\"#444\"");
    out += line(kLeft, y_, kLeft, y_ + kPanel, "stroke=\"#444\"");
    for (size_t i = 0; i < panel_.curves.size(); ++i) out += draw(panel_.curves[i], i);
    if (lowest)
      out += text_at((kLeft + kWidth - kRight) / 2, y_ + kPanel + 46, plot_.x_label, "text-anchor=\"middle\"");
    return out;
  }

 private:
  double at_x(double x) const {
    const double low = std::log(plot_.x.front()), high = std::log(plot_.x.back());
    const double width = kWidth - kRight - kLeft - 40;
    return kLeft + 20 + (high > low ? (std::log(x) - low) / (high - low) : 0.5) * width;
  }
  double at_y(double share) const { return y_ + kPanel * (1 - share / top_); }

  // With its entry in the legend.
  std::string draw(const Curve& curve, size_t index) const {
    const std::string colour = kColours.at(static_cast<size_t>(curve.colour));
    const std::string stroke = fmt::format("stroke=\"{}\" stroke-width=\"2.5\" fill=\"none\"{}", colour,
                                           curve.dashed ? " stroke-dasharray=\"7 5\"" : "");
    std::string points, dots;
    for (size_t i = 0; i < curve.y.size(); ++i) {
      const double x = at_x(plot_.x[i]), y = at_y(curve.y[i]);
      points += fmt::format("{}{:.1f},{:.1f}", i > 0 ? " " : "", x, y);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", x, y, colour);
    }
    const double x = kWidth - kRight + 20, y = y_ + 14 + 24 * static_cast<double>(index);
    return fmt::format("<polyline points=\"{}\" {}/>\n", points, stroke) + dots + line(x, y, x + 28, y, stroke) +
           fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", x + 14, y, colour) +
           text_at(x + 36, y + 4, curve.name);
  }

  const Plot& plot_;
  const Panel& panel_;
  double y_, step_ = 0, top_ = 0;
};

}  // namespace

std::string to_svg(const Plot& plot) {
  const double head = kHead + kNote * static_cast<double>(plot.notes.size()) + 44;
  const auto panels = static_cast<double>(plot.panels.size());
  const double height = head + panels * kPanel + (panels - 1) * kGap + kFoot;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, height);
  out += text_at(kLeft, kHead, plot.title, "font-size=\"19\" font-weight=\"600\" fill=\"#111\"");
  for (size_t i = 0; i < plot.notes.size(); ++i)
    out +=
        text_at(kLeft, kHead + kNote * static_cast<double>(i + 1) + 4, plot.notes[i], "font-size=\"12\" fill=\"#666\"");
  for (size_t i = 0; i < plot.panels.size(); ++i)
    out +=
        Frame(plot, plot.panels[i], head + static_cast<double>(i) * (kPanel + kGap)).draw(i + 1 == plot.panels.size());
  return out + "</svg>\n";
}

}  // namespace dtrain::scale
