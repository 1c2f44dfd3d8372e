#include "apps/serve/page.h"

namespace dtrain::serve {
namespace {

// Server texts become text nodes, never HTML.
constexpr std::string_view kViews = R"JS(
"use strict";
const colors = ["#e6194b", "#0a84ff", "#ff9f0a", "#34c759", "#bf5af2", "#00b8c4", "#ffd60a", "#ff6ab0"];
const colorOf = id => colors[Math.abs(id) % colors.length];
// Characters that turn the direction of writing, break lines or control become \u202e, as dtrain's programs print them:
// a name cannot change how the numbers beside it read.
const shown = text => String(text).replace(
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
  one => ({"\n": "\\n", "\r": "\\r"})[one] || (one < "\u0100" ? "\\x" + one.charCodeAt(0).toString(16).padStart(2, "0") :
    "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0")));
const make = (parent, name, attributes = {}, text = "") => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = shown(text);
  parent.append(node);
  return node;
};
const shape = (parent, name, attributes, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  parent.append(node);
  return node;
};

// COCO's compressed runs, column by column: calls set(row, column) for each pixel of the mask.
const eachPixel = (mask, set) => {
  const [height] = mask.size, runs = [];
  for (let at = 0; at < mask.counts.length;) {
    let value = 0, digit = 0, more = true;
    while (more) {
      const part = mask.counts.charCodeAt(at++) - 48;
      value += (part & 31) * 2 ** (5 * digit++);
      more = (part & 32) !== 0;
      if (!more && part & 16) value -= 2 ** (5 * digit);
    }
    runs.push(runs.length > 2 ? value + runs[runs.length - 2] : value);
  }
  let pixel = 0;
  runs.forEach((run, i) => {
    if (i % 2) for (let p = pixel; p < pixel + run; ++p) set(p % height, Math.floor(p / height));
    pixel += run;
  });
};

const drawMasks = (canvas, objects) => {
  const draw = canvas.getContext("2d"), pixels = draw.createImageData(canvas.width, canvas.height);
  for (const object of objects.slice().reverse()) {
    if (!object.segmentation) continue;
    const color = parseInt(colorOf(object.category_id).slice(1), 16);
    eachPixel(object.segmentation, (row, column) => {
      const at = 4 * (row * canvas.width + column);
      pixels.data.set([color >> 16, color >> 8 & 255, color & 255, 110], at);
    });
  }
  draw.putImageData(pixels, 0, 0);
};

const drawBoxes = (svg, objects, attributes) => {
  for (const object of objects) {
    const [x, y, width, height] = object.bbox;
    shape(svg, "rect", {x, y, width, height, fill: "none", stroke: colorOf(object.category_id), "stroke-width": 2,
      "vector-effect": "non-scaling-stroke", ...attributes});
  }
};

const showObjects = (card, answer, image, isShown, truth) => {
  const objects = answer.detections.filter(isShown);
  const stage = make(card, "div", {class: "stage"});
  make(stage, "img", {src: image.url, alt: `${shown(image.name)} with ${objects.length} objects`});
  drawMasks(make(stage, "canvas", {width: answer.width, height: answer.height, "aria-hidden": "true"}), objects);
  const svg = shape(stage, "svg", {viewBox: `0 0 ${answer.width} ${answer.height}`, "aria-hidden": "true",
    preserveAspectRatio: "none"});
  if (truth) drawBoxes(svg, truth, {"stroke-dasharray": "5 4"});
  drawBoxes(svg, objects, {});
  make(card, "p", {class: "count"}, `${objects.length} of ${answer.detections.length} objects` +
    (truth ? `; ${truth.length} are annotated (dashed)` : ""));
  if (!objects.length) return;
  const table = make(make(card, "div", {class: "table", tabindex: 0, role: "region", "aria-label": "Objects"}), "table");
  const head = make(make(table, "thead"), "tr");
  for (const title of ["Class", "Score", "Box"]) make(head, "th", {scope: "col"}, title);
  const rows = make(table, "tbody");
  for (const object of objects) {
    const row = make(rows, "tr"), name = make(row, "td");
    make(name, "span", {class: "chip"}).style.background = colorOf(object.category_id);
    name.append(shown(object.category));
    make(row, "td", {}, object.score.toFixed(3));
    make(row, "td", {}, object.bbox.map(value => Math.round(value)).join(", "));
  }
};

const showRanking = (card, answer, image, label) => {
  make(make(card, "div", {class: "stage plain"}), "img", {src: image.url, alt: shown(image.name)});
  const called = one => one.name === undefined ? `class ${one.class}` : `${one.name} (class ${one.class})`;
  if (label !== undefined)
    make(card, "p", {}, `The label is ${called(answer.find(one => one.class === label) || {class: label})}.`);
  const list = make(card, "ol", {class: "ranking"});
  for (const one of answer.slice(0, 5)) {
    const item = make(list, "li", {}, `${called(one)}: ${(100 * one.probability).toFixed(2)} %`);
    make(make(item, "span", {class: "bar", "aria-hidden": "true"}), "span").style.width = `${100 * one.probability}%`;
  }
};

const overlap = (a, b) => {
  const side = (p, q) => Math.max(0, Math.min(a[p] + a[q], b[p] + b[q]) - Math.max(a[p], b[p]));
  const both = side(0, 2) * side(1, 3);
  return both ? both / (a[2] * a[3] + b[2] * b[3] - both) : 0;
};
// Annotated objects that none is matched with, and objects that match none.
const mistakes = (objects, truth) => {
  const open = new Set(truth);
  let unmatched = 0;
  for (const object of objects) {
    let best = null, least = 0.5;
    for (const one of open) {
      const share = one.category_id === object.category_id ? overlap(one.bbox, object.bbox) : 0;
      if (share >= least) [best, least] = [one, share];
    }
    if (best) open.delete(best); else ++unmatched;
  }
  return open.size + unmatched;
};

const scoring = (answer, least) => answer.detections.filter(one => one.score >= least);
const errorOf = (sample, answer, least) => {
  if (!Array.isArray(answer)) return mistakes(scoring(answer, least), sample.objects || []);
  const own = answer.find(one => one.class === sample.label);
  return own ? -Math.log(Math.max(own.probability, 1e-30)) : Infinity;
};
// Of two answers that name all classes: the probability that one of them moves; of two detectors: unmatched objects.
const disagreementOf = (a, b, least) => {
  if (!Array.isArray(a)) return mistakes(scoring(a, least), scoring(b, least));
  const shares = new Map(a.map(one => [one.class, one.probability]));
  for (const one of b) shares.set(one.class, (shares.get(one.class) || 0) - one.probability);
  return [...shares.values()].reduce((sum, share) => sum + Math.abs(share) / 2, 0);
};

// Begins work on all items in their order, and on at most `most` of them at once.
const forEachOf = async (items, most, work) => {
  const rest = items[Symbol.iterator]();
  await Promise.all(Array.from({length: most}, async () => { for (const item of rest) await work(item); }));
};
)JS";

}  // namespace

std::string_view page_views_script() { return kViews; }

}  // namespace dtrain::serve
