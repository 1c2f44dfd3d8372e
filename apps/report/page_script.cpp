#include "apps/report/page.h"

namespace dtrain::report {
namespace {

// Progressive enhancement: values at a step and legend switches. Chart geometry must match chart.cpp.
constexpr std::string_view kScript = R"JS(
"use strict";
(() => {
const left = 62, right = 470, top = 10, bottom = 190;
const format = value => value === null ? "not finite" : String(Number(value.toPrecision(5)));
const draw = (parent, name, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
};
// The index of the point whose step is nearest.
const nearest = (points, step) => {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < step) low = middle + 1; else high = middle;
  }
  return low > 0 && step - points[low - 1][0] < points[low][0] - step ? low - 1 : low;
};
const prepare = figure => {
  const plot = figure.querySelector(".plot"), cursor = figure.querySelector(".cursor");
  const values = figure.querySelector(".values"), curves = [...figure.querySelectorAll(".curve")];
  const limits = plot.dataset, low = Number(limits.low), high = Number(limits.high);
  const base = Number(limits.bottom), height = Number(limits.top) - base;
  let lines = null, steps = null, at = -1;
  const load = () => {
    if (lines) return;
    lines = JSON.parse(figure.querySelector("script").textContent);
    steps = [...new Set(lines.flatMap(line => line.points.map(point => point[0])))].sort((a, b) => a - b);
  };
  const show = step => {
    const x = left + (right - left) * (step - low) / (high - low), texts = [];
    cursor.replaceChildren();
    draw(cursor, "line", {x1: x, x2: x, y1: top, y2: bottom});
    lines.forEach((line, i) => {
      if (curves[i].classList.contains("off") || line.points.length === 0) return;
      const [own, value] = line.points[nearest(line.points, step)];
      texts.push(`${line.name} ${format(value)}${own === step ? "" : ` (at ${own})`}`);
      if (value === null) return;
      const cx = left + (right - left) * (own - low) / (high - low);
      const cy = bottom - (bottom - top) * (value - base) / height;
      draw(cursor, "circle", {r: 4, cx, cy, class: curves[i].getAttribute("class").replace("curve", "")});
    });
    const text = `Step ${step}: ${texts.join(", ")}`;
    values.textContent = text;
    plot.setAttribute("aria-valuenow", step);
    plot.setAttribute("aria-valuetext", text);
  };
  const move = index => {
    at = Math.max(0, Math.min(steps.length - 1, index));
    if (steps.length > 0) show(steps[at]);
  };
  plot.addEventListener("pointermove", event => {
    load();
    const box = plot.querySelector("svg").getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * 480 - left) / (right - left);
    move(nearest(steps.map(step => [step]), low + share * (high - low)));
  });
  plot.addEventListener("keydown", event => {
    load();
    const from = at < 0 ? steps.length : at, page = Math.max(2, Math.round(steps.length / 20));
    const to = {ArrowLeft: from - 1, ArrowDown: from - 1, ArrowRight: from + 1, ArrowUp: from + 1,
      PageDown: from - page, PageUp: from + page, Home: 0, End: steps.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  });
  figure.querySelectorAll(".legend button").forEach((button, i) => button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    curves[i].classList.toggle("off", !shown);
    if (at >= 0) show(steps[at]);
  }));
};
document.querySelectorAll("figure.chart").forEach(prepare);
})();
)JS";

}  // namespace

std::string_view page_script() { return kScript; }

}  // namespace dtrain::report
