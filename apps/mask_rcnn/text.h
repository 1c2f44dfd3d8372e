// Text on pictures, in a font of our own that covers the printable characters of ASCII.
#pragma once

#include <string>
#include <string_view>

#include "apps/mask_rcnn/canvas.h"

namespace dtrain::mask_rcnn {

// Capitals are 7 pixels high at scale 1, and a line of text 9 with what goes below the baseline. Scales are multiples
// of one half, at least 1; sizes are rounded up to whole pixels.

// The pixels that text takes. A character of UTF-8 that is not printable ASCII is shown as one '?'.
int text_width(std::string_view text, double scale);
int text_height(double scale);
int cap_height(double scale);

// `text`, or as much of its beginning as fits into `width` pixels with ".." after it; empty where nothing fits.
std::string shortened(std::string_view text, double scale, int width);

// Draws `text` where (x, y) is the upper left corner of its capitals.
void draw_text(Canvas& canvas, int x, int y, std::string_view text, double scale, Color color);

}  // namespace dtrain::mask_rcnn
