// The map: one cell for each pair of settings, coloured by what becomes of the run; a click takes its settings.

const CELL = { width: 26, height: 17, left: 74, bottom: 44, top: 8 };
const SVG = "http://www.w3.org/2000/svg";

function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function mapView(form, asks) {
  const about = form.map;
  if (!about) return null;
  const columns = about.x.length;
  const rows = about.y.length;
  const width = CELL.left + columns * CELL.width + 12;
  const height = CELL.top + rows * CELL.height + CELL.bottom;
  const left = (x) => CELL.left + x * CELL.width;
  const top = (y) => CELL.top + (rows - 1 - y) * CELL.height;
  const cells = [];
  const body = s("g", {});
  for (let y = 0; y < rows; y++)
    for (let x = 0; x < columns; x++) {
      const box = s("rect", { x: left(x), y: top(y), width: CELL.width - 1, height: CELL.height - 1, class: "nanlab-cell" });
      const mark = s("text", { x: left(x) + CELL.width / 2 - 0.5, y: top(y) + 12, "text-anchor": "middle", "font-size": 10 });
      const title = s("title", {});
      box.append(title);
      body.append(box, mark);
      cells.push({ x, y, box, mark, title });
    }
  const here = s("rect", { width: CELL.width + 1, height: CELL.height + 1, class: "nanlab-here", visibility: "hidden" });
  const lines = s("g", {});
  const name = (text, attributes) => s("text", { "font-size": 12, ...attributes }, text);
  const ticks = [
    ...about.x.map((text, x) => x % about.every ? null : name(text, { x: left(x) + CELL.width / 2, y: height - 28, "text-anchor": "middle" })),
    ...about.y.map((text, y) => name(text, { x: CELL.left - 6, y: top(y) + 13, "text-anchor": "end" })),
  ].filter(Boolean);
  const labels = [
    name(about.x_label, { x: CELL.left + (columns * CELL.width) / 2, y: height - 8, "text-anchor": "middle" }),
    name(about.y_label, { x: 14, y: CELL.top + (rows * CELL.height) / 2, "text-anchor": "middle",
      transform: `rotate(-90 14 ${CELL.top + (rows * CELL.height) / 2})` }),
  ];
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    ...ticks, ...labels, body, lines, here);
  let at = [0, 0];
  let drawn = null;
  const go = ([x, y]) => {
    at = [Math.min(columns - 1, Math.max(0, x)), Math.min(rows - 1, Math.max(0, y))];
    asks.ask("cell", { cell: at });
  };
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const frame = h("div", {
    class: "nanlab-map", tabindex: 0, role: "application", "aria-label": about.title,
    "aria-roledescription": "map; arrow keys move in it",
    onkeydown: (event) => {
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      go([at[0] + move[0], at[1] + move[1]]);
    },
  }, svg);
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = width / box.width;
    const x = Math.floor(((event.clientX - box.left) * scale - CELL.left) / CELL.width);
    const y = rows - 1 - Math.floor(((event.clientY - box.top) * scale - CELL.top) / CELL.height);
    if (x >= 0 && x < columns && y >= 0 && y < rows && (x !== at[0] || y !== at[1] || event.type === "pointerdown")) go([x, y]);
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    point(event);
  });
  svg.addEventListener("pointermove", (event) => event.buttons && point(event));
  const progress = h("progress", { max: columns * rows, "aria-label": "runs done" });
  const stop = h("button", { type: "button", onclick: () => asks.ask("stop", { stop: true }) }, "Stop");
  const wait = h("div", { class: "nanlab-wait" }, progress, stop);
  const legend = h("ul", { class: "nanlab-legend" }, ...about.kinds.map((kind) =>
    h("li", {}, h("span", { class: `nanlab-swatch nanlab-${kind.tone}` }, kind.mark), kind.label)));
  const element = h("details", { class: "nanlab-map-fold", open: "" },
    h("summary", {}, about.title), frame, wait, legend, h("p", { class: "nanlab-note" }, about.note));
  return {
    element,
    show(map, place, dead) {
      if (map !== drawn) for (const cell of cells) {
        const code = map.cells?.[cell.y * columns + cell.x];
        const kind = code ? about.kinds[code.kind] : null;
        cell.box.setAttribute("class", `nanlab-cell ${kind ? `nanlab-${kind.tone}` : ""}`);
        cell.mark.setAttribute("class", kind ? `nanlab-ink-${kind.tone}` : "");
        cell.mark.textContent = code?.mark ?? "";
        cell.title.textContent = kind ? `${about.x_label} ${about.x[cell.x]}, ${about.y_label} ${about.y[cell.y]}: ${kind.label}` : "";
      }
      drawn = map;
      if (place && !asks.busyWith("cell")) at = place;
      here.setAttribute("visibility", place ? "visible" : "hidden");
      here.setAttribute("x", left(at[0]) - 1);
      here.setAttribute("y", top(at[1]) - 1);
      lines.replaceChildren(...(map.lines ?? []).map((line) => {
        const points = line.points.map(([x, y]) => `${left(x) + CELL.width / 2},${top(y) + CELL.height / 2}`).join(" ");
        return s("polyline", { points, class: "nanlab-theory" }, s("title", {}, line.label));
      }));
      wait.hidden = dead || !map.working;
      progress.value = (map.cells ?? []).filter(Boolean).length;
    },
  };
}
