// Native controls, each with a name, a message that belongs to it, and `show(state)`.

function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const BUILD = { number: numberControl, text: textControl, area: textControl, select: selectControl, radio: radioControl };
let made = 0;

function control(about, asks, live) {
  const id = `nanlab-${Math.random().toString(36).slice(2)}-${++made}`;
  const message = h("div", { class: "nanlab-message", id: `${id}-message` });
  const typed = (text) => live && asks.ask(`text:${about.name}`, { text, name: about.name });
  const part = BUILD[about.kind](about, { id, message, asks, typed });
  let moves = 0;
  return {
    name: about.name,
    element: h("div", { class: `nanlab-control nanlab-${about.kind}` }, ...part.elements, message),
    text: part.text,
    show(state, fixed) {
      if (state.moves !== moves) part.put(state.text);
      moves = state.moves;
      part.move?.(state);
      message.textContent = state.message || about.hint || "";
      message.classList.toggle("nanlab-bad", state.bad);
      for (const entry of part.entries) {
        entry.disabled = Boolean(fixed);
        if (state.bad) entry.setAttribute("aria-invalid", "true");
        else entry.removeAttribute("aria-invalid");
      }
    },
  };
}

function numberControl(about, { id, message, asks, typed }) {
  const step = (up) => asks.ask(`step:${about.name}:${up}`, { step: about.name, up });
  const keys = (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    step(event.key === "ArrowUp");
  };
  const entry = h("input", {
    id, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false",
    "aria-describedby": message.id, oninput: () => typed(entry.value), onkeydown: keys,
  });
  const button = (sign, word, up) =>
    h("button", { type: "button", class: "nanlab-step", "aria-label": `${word} ${about.label}`, onclick: () => step(up) }, sign);
  const slider = about.rungs > 1 ? h("input", {
    type: "range", min: 0, max: about.rungs - 1, step: 1, "aria-label": `${about.label}, slider`,
    oninput: () => asks.ask(`slide:${about.name}`, { slide: about.name, rung: Number(slider.value) }),
  }) : null;
  const row = h("div", { class: "nanlab-row" }, button("−", "lower", false), entry, button("+", "higher", true));
  return {
    elements: [h("label", { for: id }, about.label), row, ...(slider ? [slider] : [])],
    entries: [entry],
    text: () => entry.value,
    put: (text) => (entry.value = text),
    move(state) {
      if (!slider || asks.busyWith(`slide:${about.name}`)) return;
      slider.value = state.rung;
      slider.setAttribute("aria-valuetext", state.said);
    },
  };
}

function textControl(about, { id, message, typed }) {
  const tag = about.kind === "area" ? "textarea" : "input";
  const entry = h(tag, {
    id, type: tag === "input" ? "text" : null, placeholder: about.placeholder, rows: tag === "input" ? null : 8,
    autocomplete: "off", spellcheck: "false", "aria-describedby": message.id, oninput: () => typed(entry.value),
  });
  return {
    elements: [h("label", { for: id }, about.label), entry],
    entries: [entry],
    text: () => entry.value,
    put: (text) => (entry.value = text),
  };
}

function selectControl(about, { id, message, typed }) {
  const options = about.options.map((text, n) => h("option", { value: n }, text));
  const entry = h("select", { id, "aria-describedby": message.id, onchange: () => typed(entry.value) }, ...options);
  return {
    elements: [h("label", { for: id }, about.label), entry],
    entries: [entry],
    text: () => entry.value,
    put: (text) => (entry.value = text),
  };
}

function radioControl(about, { id, message, typed }) {
  const entries = about.options.map((_, n) =>
    h("input", { type: "radio", name: id, id: `${id}-${n}`, value: n, onchange: () => typed(String(n)) }));
  const rows = entries.map((entry, n) => h("label", { for: entry.id }, entry, h("span", {}, about.options[n])));
  const legend = h("legend", {}, about.label);
  return {
    elements: [h("fieldset", { "aria-describedby": message.id }, legend, h("div", { class: "nanlab-options" }, ...rows))],
    entries,
    text: () => entries.find((entry) => entry.checked)?.value ?? "",
    put: (text) => entries.forEach((entry) => (entry.checked = entry.value === text)),
  };
}
