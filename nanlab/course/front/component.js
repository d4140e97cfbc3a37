// One view of nanlab: controls, a picture beside them, and one sentence that is spoken when it changes. Python says
// what there is (`form`) and what it shows (`shown`, `picture`, `map`); every act of the learner is asked of Python.

const RESTARTED = "The kernel was restarted or has ended, so nothing here answers any more. Run this cell again.";
const SILENT = "Waiting for the kernel. If no cell is running, run this cell again.";

function initialize({ model }) {
  return keep(model);
}

function render({ model, el }) {
  const form = model.get("form");
  const status = { dead: false, silent: false };
  const gone = () => {
    status.dead = true;
    show();
  };
  const silent = (is) => {
    status.silent = is;
    show();
  };
  const asks = asker(model, silent, gone);
  const controls = form.controls.map((about) => control(about, asks, form.live));
  const texts = () => Object.fromEntries(controls.map((one) => [one.name, one.text()]));
  const buttons = form.buttons.map((label, n) =>
    h("button", { type: "button", onclick: () => asks.ask(`press:${n}`, { press: n, texts: texts() }) }, label));
  const picture = h("div", { class: "nanlab-picture" });
  const sentence = h("p", { class: "nanlab-sentence", role: "status", "aria-live": "polite" });
  const more = h("div", { class: "nanlab-more" });
  const map = mapView(form, asks);
  const head = h("div", { class: "nanlab-head" });
  head.innerHTML = form.head;
  const group = buttons.length
    ? h("div", { class: "nanlab-buttons", role: "group", "aria-label": form.buttons_label || "actions" },
        h("span", { class: "nanlab-label" }, form.buttons_label), ...buttons)
    : null;
  const side = h("fieldset", { class: "nanlab-side" }, ...controls.map((one) => one.element), group);
  const main = h("div", { class: "nanlab-main" }, picture, sentence, ...(map ? [map.element] : []), more);
  el.classList.add("nanlab", `nanlab-${form.kind}`);
  el.replaceChildren(h("div", { class: "nanlab-frame" }, head, h("div", { class: "nanlab-body" }, side, main)));
  const unshield = shield(el);
  let drawn = { picture: null, more: null };

  function show() {
    const shown = model.get("shown");
    if (drawn.picture !== model.get("picture")) picture.innerHTML = drawn.picture = model.get("picture");
    if (drawn.more !== shown.more) more.innerHTML = drawn.more = shown.more ?? "";
    controls.forEach((one) => one.show(shown.controls[one.name], shown.fixed));
    buttons.forEach((button, n) => {
      const { pressed, hidden } = shown.buttons[n];
      button.hidden = Boolean(hidden);
      if (pressed === null) button.removeAttribute("aria-pressed");
      else button.setAttribute("aria-pressed", String(pressed));
    });
    side.disabled = status.dead;
    map?.show(model.get("map"), shown.here, status.dead);
    const said = status.dead ? RESTARTED : status.silent ? SILENT : shown.sentence;
    if (sentence.textContent !== said) sentence.textContent = said;
    sentence.classList.toggle("nanlab-bad", status.dead || status.silent);
  }
  const unwatch = onceGone(model, el, gone);
  model.on("change:shown", show);
  model.on("change:picture", show);
  model.on("change:map", show);
  show();
  if (map) asks.ask("map", { map: true });
  return () => {
    unwatch();
    asks.stop();
    unshield();
    for (const name of ["change:shown", "change:picture", "change:map"]) model.off(name, show);
  };
}

// Lumino skips its key bindings for what carries this attribute, so that no key typed here edits the notebook. It looks
// at the focused element first, and a selector of JupyterLab's ends in :focus: an attribute on the root is not enough.
// Ctrl+S is let through: it saves, as everywhere.
function shield(el) {
  const attribute = "data-lm-suppress-shortcuts";
  const mark = (event) => event.target.setAttribute(attribute, "true");
  const pass = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "s" || !el.contains(event.target)) return;
    const marked = [el, event.target];
    marked.forEach((element) => element.removeAttribute(attribute));
    setTimeout(() => marked.forEach((element) => element.setAttribute(attribute, "true")));
  };
  el.setAttribute(attribute, "true");
  el.addEventListener("focusin", mark);
  window.addEventListener("keydown", pass, true);
  return () => {
    el.removeEventListener("focusin", mark);
    window.removeEventListener("keydown", pass, true);
  };
}

export default { initialize, render };
