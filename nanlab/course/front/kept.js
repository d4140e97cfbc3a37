// What a notebook keeps of a live view when it is saved. A widget's view can't be shown without its kernel, so it is
// left out of the file; the last picture, with its sentence under it, takes its place.

const VIEW = "application/vnd.jupyter.widget-view+json";
const LINE = 19;
const shared = (globalThis[Symbol.for("nanlab")] ??= { entries: new Set(), notebooks: new WeakSet() });

function keep(model) {
  const entry = { model, still: null };
  shared.entries.add(entry);
  const notebook = model.widget_manager?.context?.model; // JupyterLab's; other programs keep outputs their own way
  if (notebook?.toJSON && !shared.notebooks.has(notebook)) {
    shared.notebooks.add(notebook);
    const whole = notebook.toJSON.bind(notebook);
    notebook.toJSON = () => withoutViews(whole());
  }
  let timer = null;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => (entry.still = await draw(model)), 100);
  };
  model.on("change:picture", later);
  model.on("change:shown", later);
  return () => {
    clearTimeout(timer);
    shared.entries.delete(entry);
  };
}

function withoutViews(notebook) {
  const entries = new Map([...shared.entries].map((entry) => [entry.model.get("name"), entry]));
  const cells = notebook.cells.map((cell) =>
    cell.outputs ? { ...cell, outputs: cell.outputs.map((output) => stillOutput(output, entries)) } : cell,
  );
  return { ...notebook, cells };
}

function stillOutput(output, entries) {
  const entry = entries.get(output.data?.[VIEW]?.model_id);
  if (!entry) return output;
  const { [VIEW]: _, ...data } = output.data;
  if (!entry.still) return { ...output, data };
  const { png, width, height, alt } = entry.still;
  const metadata = { ...output.metadata, "image/png": { width, height, alt }, vscode_altText: alt };
  return { ...output, data: { ...data, "image/png": png }, metadata };
}

async function draw(model) {
  const svg = model.get("picture");
  if (!svg) return null;
  const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const [width, height] = ["width", "height"].map((side) => Number(root.getAttribute(side)));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const paper = document.createElement("canvas").getContext("2d");
  const font = "14px 'DejaVu Sans', system-ui, sans-serif";
  paper.font = font;
  const sentence = model.get("shown").sentence ?? "";
  const lines = wrapped(paper, sentence, width - 32);
  const tall = height + (lines.length ? LINE * lines.length + 16 : 0);
  paper.canvas.width = 1.5 * width;
  paper.canvas.height = 1.5 * tall;
  paper.scale(1.5, 1.5);
  paper.fillStyle = "#ffffff";
  paper.fillRect(0, 0, width, tall);
  paper.drawImage(image, 0, 0, width, height);
  paper.fillStyle = "#222222";
  paper.font = font;
  lines.forEach((line, n) => paper.fillText(line, 16, height + 20 + LINE * n));
  const png = paper.canvas.toDataURL("image/png").split(",")[1];
  return { png, width, height: tall, alt: `${root.getAttribute("aria-label")} ${sentence}` };
}

function wrapped(paper, text, width) {
  const lines = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && paper.measureText(longer).width > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line ? [...lines, line] : lines;
}
