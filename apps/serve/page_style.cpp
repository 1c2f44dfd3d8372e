#include "apps/serve/page.h"

namespace dtrain::serve {
namespace {

// Contrast of text is at least 4.5 to 1 in both colour schemes.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --text: #1b1f27; --faint: #565f6d; --line: #dfe3e9;
  --focus: #1d4fd8; --bar: #1d5fd0; --wrong: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #13161b; --card: #1d2128; --text: #e7eaf0; --faint: #a3adba;
  --line: #343b47; --focus: #8fb3ff; --bar: #79a9ff; --wrong: #ff8a80; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 1400px; padding: 24px clamp(12px, 3vw, 40px) 48px; background: var(--ground);
  color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { margin: 0 0 4px; font-size: 26px; }
h2 { margin: 0 0 12px; font-size: 19px; }
h3 { margin: 0 0 8px; font-size: 16px; }
h3, p, li, td:first-child { overflow-wrap: anywhere; }
p { margin: 0 0 8px; color: var(--faint); }
section, form { margin-top: 20px; }
button, select, input { font: inherit; max-width: 100%; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.skip { position: absolute; left: -999px; padding: 8px; background: var(--card); }
.skip:focus { left: 8px; top: 8px; }
.card { padding: 14px 16px; min-width: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
#message { margin: 12px 0 0; color: var(--wrong); font-weight: 600; }
#message:empty { display: none; }
#drop { display: flex; flex-wrap: wrap; gap: 8px 16px; padding: 18px; border: 2px dashed var(--line);
  border-radius: 8px; }
#drop.over { border-color: var(--focus); }
#controls { display: flex; flex-wrap: wrap; gap: 8px 28px; margin-top: 12px; }
#controls span { display: flex; align-items: center; gap: 8px; flex-wrap: wrap; min-width: 0; max-width: 100%; }
#category { min-width: 0; }
output { min-width: 3em; font-variant-numeric: tabular-nums; }
#answers { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
.stage { position: relative; margin-bottom: 10px; max-width: 720px; }
.stage img { display: block; width: 100%; }
.stage canvas, .stage svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.plain img { width: auto; min-width: 96px; max-width: 100%; max-height: 320px; }
.ranking { margin: 0; padding-left: 1.6em; }
.bar { display: block; height: 8px; margin-bottom: 6px; border-radius: 4px; background: var(--line); overflow: hidden; }
.bar span { display: block; height: 100%; background: var(--bar); }
.table { overflow: auto; max-height: 320px; margin-bottom: 8px; }
#progress { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px 3px 0; text-align: left; border-bottom: 1px solid var(--line); }
.chip { display: inline-block; width: 12px; height: 12px; margin-right: 6px; border-radius: 3px; }
#images { margin: 0; padding-left: 2.4em; max-height: 360px; overflow-y: auto; }
.failed { color: var(--wrong); }
#images li { margin-bottom: 4px; }
#images button { padding: 0 6px; border: 0; border-radius: 4px; background: none; color: var(--text);
  text-align: left; vertical-align: top; cursor: pointer; }
#images button[aria-current=true] { background: var(--line); font-weight: 600; }
)";

}  // namespace

std::string_view page_style() { return kStyle; }

}  // namespace dtrain::serve
