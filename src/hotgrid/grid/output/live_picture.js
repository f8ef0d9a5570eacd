// The page of a live picture: draws the frames it is sent, and says what is wanted.

function element(kind, properties, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  made.append(...children);
  return made;
}

function draw(model, canvas) {
  const frame = model.get("frame");
  const palette = model.get("palette");
  if (!frame || frame.byteLength < 24 || !palette || palette.byteLength < 768) return null;
  const rows = frame.getUint32(0, true);
  const columns = frame.getUint32(4, true);
  const levels = new Uint8Array(frame.buffer, frame.byteOffset + 24, rows * columns);
  const colours = new Uint8Array(palette.buffer, palette.byteOffset, 768);
  const image = new ImageData(columns, rows);
  for (let i = 0; i < levels.length; i++) {
    const colour = 3 * levels[i];
    image.data[4 * i] = colours[colour];
    image.data[4 * i + 1] = colours[colour + 1];
    image.data[4 * i + 2] = colours[colour + 2];
    image.data[4 * i + 3] = 255;
  }
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
    const zoom = Math.max(1, Math.floor(Math.min(640 / columns, 480 / rows)));
    canvas.style.width = `${columns * zoom}px`;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return [frame.getFloat64(8, true), frame.getFloat64(16, true)];
}

function render({ model, el }) {
  const canvas = element("canvas", { role: "img" });
  canvas.style.cssText = "display: block; max-width: 100%; image-rendering: pixelated";
  const play = element("button", { type: "button" });
  const step = element("button", { type: "button", textContent: "Step" });
  const views = element(
    "select",
    { ariaLabel: "View" },
    ...model.get("views").map((name) => element("option", { value: name, textContent: name })),
  );
  const stride = element("input", { type: "number", min: 0, max: 1000000 });
  stride.style.width = "6em";
  stride.title = "0: as many as there is time for";
  const status = element("span", {});
  const problem = element("div", { role: "alert" });
  const bar = element("div", {}, play, step, views);
  bar.append(element("label", {}, "steps a frame ", stride), status);
  bar.style.cssText = "display: flex; flex-wrap: wrap; gap: 0.6em; align-items: center";
  el.append(canvas, bar, problem);

  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  play.addEventListener("click", () => set("playing", !model.get("playing")));
  step.addEventListener("click", () => model.send({ kind: "step" }));
  views.addEventListener("change", () => set("view", views.value));
  stride.addEventListener("change", () => {
    const wanted = Math.trunc(Number(stride.value));
    if (wanted >= 0 && wanted <= 1000000) set("steps_per_frame", wanted);
  });

  const show = () => {
    const range = draw(model, canvas);
    const name = `${model.get("title")}: ${model.get("view").replaceAll("_", " ")}`;
    canvas.setAttribute("aria-label", name);
    const shown = range ? range.map((x) => Number(x.toPrecision(3))).join(" to ") : "";
    const when = `step ${model.get("step")}, time ${Number(model.get("time").toPrecision(6))}`;
    status.textContent = `${name}, ${when}, ${shown}`;
  };
  const showFrame = () => {
    show();
    model.send({ kind: "drawn", number: model.get("number") });
  };
  const showState = () => {
    const playing = model.get("playing");
    play.textContent = playing ? "Pause" : "Play";
    step.disabled = playing;
    views.value = model.get("view");
    stride.value = model.get("steps_per_frame");
    problem.textContent = model.get("problem");
  };
  const states = ["playing", "view", "steps_per_frame", "problem"].map((n) => `change:${n}`);
  model.on("change:number", showFrame);
  for (const state of states) model.on(state, showState);
  show();
  showState();
  return () => {
    model.off("change:number", showFrame);
    for (const state of states) model.off(state, showState);
  };
}

export default { render };
