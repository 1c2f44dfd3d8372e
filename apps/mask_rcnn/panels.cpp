#include "apps/mask_rcnn/panels.h"

#include <algorithm>
#include <cmath>

#include "apps/mask_rcnn/text.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {

data::Image side_by_side(std::span<const Panel> panels) {
  constexpr Color kGround{24, 27, 33}, kTitle{236, 239, 244};
  DT_CHECK(!panels.empty(), "there are no panels to put beside each other");
  const double scale = Canvas(panels.front().picture.view()).text_scale();
  const int gap = static_cast<int>(std::lround(6 * scale)), head = 2 * gap + cap_height(scale);
  int width = gap, height = 0;
  for (const Panel& panel : panels) {
    width += panel.picture.width + gap;
    height = std::max(height, panel.picture.height);
  }
  Canvas canvas(width, head + height + gap, kGround);
  int x = gap;
  for (const Panel& panel : panels) {
    draw_text(canvas, x, gap, shortened(panel.title, scale, panel.picture.width), scale, kTitle);
    canvas.paste(panel.picture.view(), x, head);
    x += panel.picture.width + gap;
  }
  return canvas.image();
}

}  // namespace dtrain::mask_rcnn
