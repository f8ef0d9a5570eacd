// The page of a policy that acts: its picture, its numbers, and how its training went.

/* global uPlot */

import { segments } from "/web/dom.js";
import { icon, placeIcons } from "/web/icons.js";
import { Live, socketBeside } from "/web/live.js";
import { complain, notice } from "/web/notice.js";
import { short, whole } from "/web/text.js";
import { onTheme, toggleTheme, token } from "/web/theme.js";

const $ = (id) => document.getElementById(id);
const SPEEDS = [0.25, 0.5, 1, 2, 4, 16];
const HEIGHT = 160;
const live = new Live(socketBeside("/live"));
const canvas = $("canvas");
const pen = canvas.getContext("2d");

let status = { playing: true, episode: 0 };
let curve = [];
let plot = null;
// Other programs, tests among them, read the state here.
window.hotgrid = { connected: false, frame: 0, playing: true, step: 0, episode: 0, curve };

const by = segments(
    "Actions",
    [
        ["policy", "Policy"],
        ["chance", "At random"],
    ],
    "policy",
    (chosen) => order({ type: "actions", by: chosen }),
);
$("by").append(by);
$("speed").append(...SPEEDS.map((factor) => new Option(`${factor}x`, factor)));
$("speed").value = "1";

function order(message) {
    live.ask(message).catch(complain);
}

function hello(message) {
    document.title = `${message.name} · hotgrid rl`;
    $("title").textContent = message.name;
    $("summary").textContent = message.summary;
    $("trained").textContent = whole(message.trained);
    $("mean").textContent = short(message.mean);
    curve = message.curve;
    window.hotgrid.curve = curve;
    window.hotgrid.trained = message.trained;
    draw();
}

function show(message) {
    if (message.ended) $("last").textContent = short(message.total);
    status = message;
    Object.assign(window.hotgrid, message);
    $("episode").textContent = message.episode;
    $("step-count").textContent = whole(message.step);
    $("total").textContent = short(message.total);
    $("speed").value = String(message.speed);
    by.press(message.by);
    const name = message.playing ? "Pause" : "Play";
    const play = $("play");
    if (play.getAttribute("aria-label") !== name) {
        play.replaceChildren(icon(message.playing ? "pause" : "play"));
        play.setAttribute("aria-label", name);
        play.title = `${name} (Space)`;
    }
    canvas.setAttribute(
        "aria-label",
        `${$("title").textContent}, step ${message.step}, return ${short(message.total)}`,
    );
}

async function picture(bytes) {
    const frame = new DataView(bytes).getUint32(0, true);
    const image = await createImageBitmap(new Blob([bytes.slice(4)], { type: "image/png" }));
    if (canvas.width !== image.width || canvas.height !== image.height) {
        canvas.width = image.width;
        canvas.height = image.height;
    }
    pen.drawImage(image, 0, 0);
    image.close();
    window.hotgrid.frame = frame;
    live.send({ type: "drawn", frame });
}

/** The curve of evaluations. */
function draw() {
    const place = $("curve");
    if (place.clientWidth === 0 || curve.length === 0) return;
    const data = [curve.map(([step]) => step), curve.map(([, value]) => value)];
    if (plot) {
        plot.setSize({ width: place.clientWidth, height: HEIGHT });
        plot.setData(data);
        return;
    }
    const axis = {
        stroke: token("--muted"),
        grid: { stroke: token("--line"), width: 1 },
        ticks: { show: false },
        font: `11px ${token("--font")}`,
    };
    const stroke = token("--series-1");
    plot = new uPlot(
        {
            width: place.clientWidth,
            height: HEIGHT,
            legend: { show: false },
            padding: [8, 8, 0, 0],
            scales: { x: { time: false } },
            cursor: { show: false },
            axes: [
                { ...axis, size: 24, space: 64, values: (_, ticks) => ticks.map(thousands) },
                { ...axis, size: 52, space: 28 },
            ],
            series: [{}, { stroke, width: 1.5, points: { show: data[0].length < 30 } }],
        },
        data,
        place,
    );
    // The best value is also there as a number, which a screen reader can read.
    place.setAttribute("aria-hidden", "true");
}

function thousands(step) {
    return step >= 10000 ? `${Number((step / 1000).toPrecision(4))}k` : String(step);
}

$("play").addEventListener("click", () => order({ type: "play", on: !status.playing }));
$("step").addEventListener("click", () => order({ type: "step" }));
$("reset").addEventListener("click", () => order({ type: "restart" }));
$("theme").addEventListener("click", toggleTheme);
$("speed").addEventListener("change", () =>
    order({ type: "speed", factor: Number($("speed").value) }),
);
addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("select, input, textarea")) return;
    const button = { " ": "play", ".": "step", r: "reset" }[event.key];
    // A button in focus is pressed by the space bar itself.
    if (!button || (event.key === " " && event.target.matches("button"))) return;
    event.preventDefault();
    $(button).click();
});
onTheme(() => {
    plot?.destroy();
    plot = null;
    draw();
});
new ResizeObserver(draw).observe($("curve"));

live.addEventListener("text", ({ detail }) => {
    if (detail.type === "hello") hello(detail);
    else if (detail.type === "status") show(detail);
    else if (detail.type === "error") notice(detail.text, { error: true });
});
live.addEventListener("bytes", ({ detail }) => picture(detail).catch(complain));
live.addEventListener("open", () => {
    window.hotgrid.connected = true;
    $("banner").hidden = true;
});
live.addEventListener("lost", () => {
    window.hotgrid.connected = false;
    $("banner").hidden = false;
});
placeIcons();
live.open();
