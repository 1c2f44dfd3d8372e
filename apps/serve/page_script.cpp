#include "apps/serve/page.h"

namespace dtrain::serve {
namespace {

constexpr std::string_view kScript = R"JS(
(() => {
const $ = id => document.getElementById(id);
const allClasses = 1000000, mostRequests = 4;
let token = "", models = [], measures = [], samples = [], walk = [], failed = [], place = -1, current = null, turn = 0;

const say = text => { $("message").textContent = shown(text); };
const ask = async (path, options = {}) => {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  let response;
  try {
    response = await fetch(path, {...options, headers, cache: "no-store"});
  } catch (error) {
    throw new Error("The server does not respond.");
  }
  if (response.ok) return response;
  if (response.status === 401) {
    $("access").hidden = false;
    $("token").focus();
    throw new Error(token ? "The server rejected this token." : "The server requires a token.");
  }
  const text = await response.text();
  let why = text;
  try { why = JSON.parse(text).error || text; } catch (error) { /* not every answer is JSON */ }
  throw new Error(`${response.status}: ${why}`);
};
const guarded = work => async (...given) => {
  try { say(""); await work(...given); } catch (error) { say(error.message); }
};

const predict = async (model, blob, top = 5) => {
  const begin = performance.now();
  const response = await ask(`predictions/${model.name}?top=${top}`, {method: "PUT", body: blob});
  const answer = await response.json();
  const server = /dur=([\d.]+)/.exec(response.headers.get("Server-Timing") || "");
  return {answer, version: response.headers.get("X-Model-Version"), total: performance.now() - begin,
    server: server ? Number(server[1]) : null};
};

const isShown = object => object.score >= Number($("score").value) &&
  (!$("category").value || object.category === $("category").value);
const draw = () => {
  const answers = $("answers");
  answers.replaceChildren();
  if (!current) return;
  for (const {model, result} of current.results) {
    const card = make(answers, "article", {class: "card", "aria-label": model.name});
    make(card, "h3", {}, `${model.name}, step ${result.version}`);
    if (Array.isArray(result.answer)) showRanking(card, result.answer, current, current.label);
    else showObjects(card, result.answer, current, isShown, current.objects);
    const server = result.server === null ? "" : `${result.server.toFixed(1)} ms in the server, `;
    make(card, "p", {class: "timing"}, `${server}${result.total.toFixed(1)} ms in total`);
  }
};

const show = async (fetchBlob, name, known = {}) => {
  const mine = ++turn, results = [], blob = await fetchBlob();
  for (const model of models) results.push({model, result: await predict(model, blob)});
  if (mine !== turn) return;  // another image was chosen meanwhile
  if (current) URL.revokeObjectURL(current.url);
  current = {...known, name, results, url: URL.createObjectURL(blob)};
  draw();
};

const fetched = async sample => (await ask(`images/${sample.index}`)).blob();
const open = guarded(async at => {
  place = at;
  [...$("images").querySelectorAll("button")].forEach((button, i) => button.setAttribute("aria-current", i === at));
  $("previous").disabled = at <= 0;
  $("next").disabled = at + 1 >= walk.length;
  await show(() => fetched(walk[at]), walk[at].name, walk[at]);
});
// The error of each model, and the disagreement of two models of one kind.
const figuresOf = async (sample, least) => {
  const blob = await fetched(sample), answers = [];
  for (const model of models) answers.push((await predict(model, blob, allClasses)).answer);
  const figures = answers.map(answer => errorOf(sample, answer, least));
  if (figures.length < measures.length) figures.push(disagreementOf(...answers, least));
  return figures;
};
const sort = async () => {
  const by = Number($("order").value);
  walk.sort((a, b) => b.figures[by] - a.figures[by] || a.index - b.index);
  $("images").replaceChildren();
  walk.forEach((sample, at) => {
    const texts = sample.figures.map(figure => sample.label === undefined ? `${figure}` : figure.toFixed(3));
    const text = texts.length === 1 ? texts[0] : texts.map((figure, i) => `${measures[i]} ${figure}`).join(", ");
    make(make($("images"), "li"), "button", {type: "button"}, `${sample.name}: ${text}`)
      .addEventListener("click", () => open(at));
  });
  for (const one of failed) make($("images"), "li", {class: "failed"}, `${one.name}: ${one.why}`);
  if (walk.length) await open(0);
};
const predictAll = guarded(async () => {
  const least = Number($("score").value);
  $("sort").disabled = $("order").disabled = true;
  [walk, failed] = [[], []];
  try {
    await forEachOf(samples, mostRequests, async sample => {
      try { walk.push({...sample, figures: await figuresOf(sample, least)}); }
      catch (error) { failed.push({...sample, why: error.message}); }
      $("progress").textContent = `${walk.length + failed.length} of ${samples.length}`;
    });
    failed.sort((a, b) => a.index - b.index);
    $("progress").textContent = `${walk.length} images`;
    await sort();
    if (failed.length) say(`${failed.length} of ${samples.length} images failed: ${failed[0].name}: ${failed[0].why}`);
  } finally { $("sort").disabled = $("order").disabled = false; }
});

const start = guarded(async () => {
  const about = await (await ask("models")).json();
  $("access").hidden = true;
  models = about.models.filter(model => model.ready);
  $("status").textContent = about.models.map(model => model.ready ? `${model.name} serves step ${model.version}` :
    `${model.name} has no checkpoint yet`).join("; ");
  const detects = models.some(model => model.detects);
  $("controls").hidden = !detects;
  const names = new Set(models.flatMap(model => model.categories.map(category => category.name)));
  for (const name of names) make($("category"), "option", {value: name}, name);
  if (about.images) samples = (await (await ask("images")).json()).images.map((sample, index) => ({...sample, index}));
  $("walk").hidden = !about.images || !models.length;
  measures = models.map(model => model.name);
  if (models.length === 2 && models[0].detects === models[1].detects) measures.push("disagreement");
  $("order").replaceChildren();
  measures.forEach((measure, i) => make($("order"), "option", {value: i}, i < models.length ? `error of ${measure}` : measure));
  $("order-of").hidden = measures.length < 2;
  $("measure").textContent = detects ?
    "Error: false negatives plus false positives, at an IoU of 0.5 and the minimum score that is set at prediction." :
    "Error: cross-entropy, the negative log-probability of the label.";
  if (measures.length > models.length)
    $("measure").textContent += detects ? " Disagreement: number of objects of either model that the other one does not detect." :
      " Disagreement: total variation distance between the class probabilities, from 0 to 1.";
});

const pick = guarded(async file => { if (file) { if (!models.length) await start(); await show(() => file, file.name); } });
$("file").addEventListener("change", event => pick(event.target.files[0]));
for (const name of ["dragover", "dragleave", "drop"])
  $("drop").addEventListener(name, event => {
    event.preventDefault();
    $("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") pick(event.dataTransfer.files[0]);
  });
$("score").addEventListener("input", () => { $("score-value").textContent = Number($("score").value).toFixed(2); draw(); });
$("category").addEventListener("change", draw);
$("access").addEventListener("submit", event => { event.preventDefault(); token = $("token").value.trim(); start(); });
$("random").addEventListener("click", guarded(async () => {
  const sample = samples[Math.floor(Math.random() * samples.length)];
  await show(() => fetched(sample), sample.name, sample);
}));
$("sort").addEventListener("click", predictAll);
$("order").addEventListener("change", guarded(async () => { if (walk.length) await sort(); }));
$("previous").addEventListener("click", () => open(place - 1));
$("next").addEventListener("click", () => open(place + 1));
start();
})();
)JS";

}  // namespace

std::string_view page_script() { return kScript; }

}  // namespace dtrain::serve
