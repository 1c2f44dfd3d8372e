#include "apps/report/page.h"

namespace dtrain::report {
namespace {

// Contrast is at least 4.5 to 1 for text and 3 to 1 for curves, in both colour schemes.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --text: #1b1f27; --faint: #565f6d; --line: #dfe3e9;
  --mark: #fff3d6; --focus: #1d4fd8; --c0: #1d5fd0; --c1: #b8480a; --c2: #17794a; --c3: #9a2fa3; --c4: #b3261e;
  --c5: #0b7285; --c6: #7a5c00; --c7: #5b4bc4; }
@media (prefers-color-scheme: dark) { :root { --ground: #13161b; --card: #1d2128; --text: #e7eaf0; --faint: #a3adba;
  --line: #343b47; --mark: #3d3317; --focus: #8fb3ff; --c0: #79a9ff; --c1: #ff9f5c; --c2: #5ecb8b; --c3: #e28bea;
  --c4: #ff8a80; --c5: #5ccfe0; --c6: #e3c14b; --c7: #b0a3ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1680px; padding: 24px clamp(12px, 3vw, 40px) 48px; background: var(--ground);
  color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { margin: 0 0 8px; font-size: 26px; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 36px 0 12px; font-size: 19px; }
h3 { margin: 20px 0 8px; font-size: 16px; overflow-wrap: anywhere; }
h4 { margin: 14px 0 8px; font-size: 14px; color: var(--faint); }
p { margin: 0 0 8px; color: var(--faint); overflow-wrap: anywhere; }
a { color: var(--c0); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.skip { position: absolute; left: -999px; padding: 8px; background: var(--card); }
.skip:focus { left: 8px; top: 8px; }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0; padding: 0; list-style: none; }
.grid { display: grid; gap: 16px; margin-bottom: 16px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); }
.card, figure { margin: 0; padding: 12px 14px; min-width: 0; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.notices { border-left: 4px solid var(--c1); }
.notices li { overflow-wrap: anywhere; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
.plot { margin: 6px 0; cursor: crosshair; touch-action: pan-y; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--faint); font-size: 12px; font-variant-numeric: tabular-nums; }
.axes path { stroke: var(--line); fill: none; }
.curve { fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.curve path { vector-effect: non-scaling-stroke; }
.band { opacity: .35; }
.dots { stroke-width: 5; }
.dashed { stroke-dasharray: 6 4; }
.off { display: none; }
.cursor line { stroke: var(--faint); stroke-dasharray: 3 3; }
.cursor circle { fill: currentColor; }
.values { min-height: 1.6em; margin: 0; font-size: 13px; font-variant-numeric: tabular-nums; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 8px; }
.legend button { padding: 2px 10px; font: inherit; font-size: 13px; color: inherit; background: none; cursor: pointer;
  border: 1px solid currentColor; border-radius: 99px; overflow-wrap: anywhere; }
.legend button::before { content: ""; display: inline-block; width: 14px; margin-right: 6px; vertical-align: 4px;
  border-top: 3px solid currentColor; }
.legend button.dashed::before { border-top-style: dashed; }
.legend button[aria-pressed="false"] { text-decoration: line-through; color: var(--faint); }
.c0 { color: var(--c0) !important; } .c1 { color: var(--c1) !important; } .c2 { color: var(--c2) !important; }
.c3 { color: var(--c3) !important; } .c4 { color: var(--c4) !important; } .c5 { color: var(--c5) !important; }
.c6 { color: var(--c6) !important; } .c7 { color: var(--c7) !important; }
details { margin-top: 6px; }
summary { cursor: pointer; color: var(--faint); font-size: 14px; }
.table { overflow-x: auto; margin: 0 0 12px; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.scroll .table { max-height: 480px; overflow: auto; }
table { width: 100%; border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: 6px 12px; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
td { overflow-wrap: anywhere; min-width: 5em; }
thead th { border-top: 0; color: var(--faint); font-size: 13px; white-space: nowrap; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 7em; }
tr.differs td, tr.differs th { background: var(--mark); }
tr.failure th, tr.lost th { color: var(--c4); font-weight: 700; }
tr.restart th { color: var(--c1); font-weight: 700; }
small { color: var(--faint); }
figure.sample { padding: 0; overflow: hidden; }
figure.sample img { display: block; width: 100%; height: auto; max-height: 420px; object-fit: contain;
  background: var(--line); image-rendering: auto; }
figure.sample figcaption, figure.sample p { padding: 8px 14px 0; margin: 0; }
figure.sample p:last-child { padding-bottom: 12px; }
.lane path { fill: currentColor; }
.timeline { overflow-x: auto; }
.timeline svg { min-width: 640px; }
@media print { .values, nav, .skip { display: none; } figure, tr { break-inside: avoid; } }
)";

}  // namespace

std::string_view page_style() { return kStyle; }

}  // namespace dtrain::report
