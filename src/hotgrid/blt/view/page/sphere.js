// The page of a sphere: points that can be turned, searched and coloured.

import { make, segments } from "/web/dom.js";
import { placeIcons } from "/web/icons.js";
import { complain, notice } from "/web/notice.js";
import { Orbit } from "/web/orbit.js";
import { short, whole } from "/web/text.js";
import { onTheme, toggleTheme, token } from "/web/theme.js";
import { GRADIENT, coloured, ways } from "./colours.js";
import { hands } from "./hands.js";
import { PointCloud } from "./points.js";

const $ = (id) => document.getElementById(id);
const EDGES = { next: "To the next leaf", same_source: "Of the same source" };
const HOVER = 60;
const canvas = $("canvas");
const orbit = new Orbit([1, 1, 1], 1.45);
const known = new Map();

let about, points, cloud, colourings;
let waiting = 0;
let hover = -1;
let hoverTimer = 0;
let chosen = null;
// Other programs, tests among them, read the state here.
window.hotgrid = { ready: false, frames: 0, marked: 0, chosen: null, tip: "", orbit };

async function ask(path) {
    const answer = await fetch(path);
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.error ?? `the server answers ${answer.status}`);
}

/** The columns of points, and their places turned so that the north pole is up. */
function unpack(buffer, count) {
    let at = 0;
    const next = (Kind, parts = 1) => {
        const found = new Kind(buffer, at, parts * count);
        at += found.byteLength;
        return found;
    };
    const [xyz, entropies, densities, nodes, shells] = [
        next(Float32Array, 3),
        next(Float32Array),
        next(Float32Array),
        next(Uint32Array),
        next(Uint16Array),
    ];
    const places = new Float32Array(xyz.length);
    for (let i = 0; i < xyz.length; i += 3) {
        places.set([xyz[i] / 2, xyz[i + 2] / 2, -xyz[i + 1] / 2], i);
    }
    return {
        places,
        entropies,
        densities,
        nodes,
        shells,
        zones: next(Uint8Array),
        kinds: next(Uint8Array),
    };
}

function redraw() {
    waiting ||= requestAnimationFrame(() => {
        waiting = 0;
        cloud?.draw(orbit, tints());
        window.hotgrid.frames += 1;
    });
}

let tinted = null;
function tints() {
    const parts = (name) => {
        const hex = token(name);
        return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
    };
    tinted ??= { ground: parts("--stage"), line: parts("--edge"), edge: parts("--text") };
    return tinted;
}

function colourBy(name) {
    const way = colourings[name];
    cloud.colour(coloured(way));
    window.hotgrid.colour = name;
    const legend = way.names
        ? way.names.map(({ text, count, colour }) =>
              make(
                  "div",
                  { class: "key" },
                  make("i", { style: `background: ${colour}` }),
                  make("span", {}, text),
                  make("span", {}, whole(count)),
              ),
          )
        : [
              make("div", { class: "ramp", style: `background: ${GRADIENT}` }),
              make("div", { class: "ends" }, ...way.range.map((end) => make("span", {}, short(end, 3)))),
          ];
    $("legend").replaceChildren(...legend);
    redraw();
}

async function leafOf(node) {
    if (!known.has(node)) known.set(node, ask(`/node/${node}`).then((answer) => answer.json()));
    try {
        return await known.get(node);
    } catch (problem) {
        known.delete(node);
        throw problem;
    }
}

function hovered(place) {
    const at = place && cloud ? cloud.pick(orbit, ...place) : -1;
    if (at === hover) return;
    hover = at;
    clearTimeout(hoverTimer);
    $("tip").hidden = true;
    window.hotgrid.tip = "";
    if (at >= 0) hoverTimer = setTimeout(() => tell(at, place).catch(complain), HOVER);
}

/** Shows the text of a point beside the pointer, inside of the stage. */
async function tell(at, [x, y]) {
    const leaf = await leafOf(points.nodes[at]);
    if (hover !== at) return;
    const tip = $("tip");
    const facts = `${leaf.zone}, shell ${leaf.shell}, ${short(leaf.entropy, 3)} nats`;
    tip.replaceChildren(make("p", {}, leaf.text || leaf.label), make("span", {}, facts));
    tip.hidden = false;
    const stage = $("stage");
    const left = Math.min(x + 14, stage.clientWidth - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > stage.clientHeight ? y - tip.offsetHeight - 10 : y + 18;
    tip.style.translate = `${Math.max(8, left)}px ${Math.max(8, top)}px`;
    window.hotgrid.tip = leaf.text;
}

async function choose(node) {
    const leaf = await leafOf(node);
    chosen = node;
    cloud.chosen = numberOf(node);
    window.hotgrid.chosen = node;
    $("chosen").hidden = false;
    $("chosen-node").textContent = leaf.node;
    $("chosen-text").textContent = leaf.text || "–";
    const degrees = (angle) => `${short((angle * 180) / Math.PI, 4)}°`;
    const facts = {
        Document: leaf.document || "–",
        Piece: leaf.label,
        Kind: leaf.modality || "–",
        Zone: leaf.zone,
        Shell: `${leaf.shell}, radius ${short(leaf.radius)}`,
        Place: `${degrees(leaf.theta)} from the pole, longitude ${degrees(leaf.phi)}`,
        Entropy: `${short(leaf.entropy)} nats`,
        Prominence: leaf.prominence === null ? "–" : short(leaf.prominence),
    };
    $("chosen-facts").replaceChildren(
        ...Object.entries(facts).flatMap(([name, text]) => [
            make("dt", {}, name),
            make("dd", {}, text),
        ]),
    );
    redraw();
}

/** The number of a node's point; -1 if it is not shown. Nodes are in ascending order. */
function numberOf(node) {
    let [low, high] = [0, points.nodes.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (points.nodes[middle] < node) low = middle + 1;
        else high = middle;
    }
    return points.nodes[low] === node ? low : -1;
}

/** Asks for a cone, lights what is in it and turns it to the front. */
async function search(query) {
    const angle = Number($("angle").value);
    const found = await (await ask(`/cone?${new URLSearchParams({ ...query, angle })}`)).json();
    cloud.mark(found.points);
    const [x, y, z] = found.axis;
    orbit.turn = Math.atan2(x, -y);
    orbit.tilt = Math.min(1.45, Math.max(-1.45, Math.asin(Math.min(1, Math.max(-1, z)))));
    $("clear").disabled = false;
    $("found").textContent =
        `${whole(found.inside)} of ${whole(about.leaves)} leaves within ${angle}°`;
    $("hits").replaceChildren(...found.hits.map(hit));
    window.hotgrid.marked = found.points.length;
    window.hotgrid.inside = found.inside;
    redraw();
}

function hit(leaf) {
    const press = () => choose(leaf.node).catch(complain);
    return make(
        "li",
        {},
        make(
            "button",
            { type: "button", on: { click: press } },
            make("code", {}, leaf.text.trim().slice(0, 80) || leaf.label),
            make("span", {}, `${leaf.angle.toFixed(1)}°`),
            make("span", { class: "from" }, leaf.document || `node ${leaf.node}`),
        ),
    );
}

function clear() {
    cloud.mark(null);
    $("hits").replaceChildren();
    $("found").textContent = "";
    $("clear").disabled = true;
    window.hotgrid.marked = 0;
    redraw();
}

/** A check box for each kind of edges that there are; one kind is drawn at a time. */
function edgeBoxes() {
    const boxes = Object.entries(EDGES).map(([label, text]) => {
        const count = about.edges[label];
        const box = make("input", { type: "checkbox", id: `edges-${label}`, disabled: !count });
        box.addEventListener("change", () => join(label, box).catch(complain));
        const name = make("label", { for: box.id }, `${text} (${whole(count)})`);
        return make("div", { class: "check" }, box, name);
    });
    $("edges").replaceChildren(...boxes);
}

async function join(label, box) {
    for (const other of $("edges").querySelectorAll("input")) {
        if (other !== box) other.checked = false;
    }
    if (box.checked) {
        cloud.join(new Uint32Array(await (await ask(`/edges/${label}`)).arrayBuffer()));
    }
    cloud.edges.on = box.checked;
    window.hotgrid.edges = box.checked ? cloud.edges.count / 2 : 0;
    redraw();
}

async function load() {
    about = await (await ask("/sphere.json")).json();
    points = unpack(await (await ask("/points.bin")).arrayBuffer(), about.points);
    document.title = `${about.name} · hotgrid sphere`;
    $("title").textContent = about.name;
    $("summary").textContent =
        `${whole(about.leaves)} leaves on ${about.shells} shells, directions by ${about.by}`;
    canvas.setAttribute("aria-label", `Sphere of ${about.leaves} leaves`);
    if (about.points < about.leaves) {
        notice(`${whole(about.points)} of ${whole(about.leaves)} leaves are shown; see \`--most\`.`);
    }
    const height = (degrees) => 0.5 * Math.cos((degrees * Math.PI) / 180);
    const borders = [...about.zones.slice(0, -1).map(({ to }) => to), 90];
    cloud = new PointCloud(canvas, points.places, borders.map(height));
    colourings = ways(about, points);
    const options = Object.entries(colourings).map(([name, { text }]) => [name, text]);
    $("colour").append(segments("Colours", options, "zone", colourBy));
    colourBy("zone");
    edgeBoxes();
    if (about.by === "order") $("text").disabled = true;
    hands(canvas, orbit, {
        changed: redraw,
        hovered,
        pressed: (place) => {
            const at = cloud.pick(orbit, ...place, 14);
            if (at >= 0) choose(points.nodes[at]).catch(complain);
        },
    });
    canvas.addEventListener("redraw", redraw);
    new ResizeObserver(redraw).observe(canvas);
    Object.assign(window.hotgrid, { ready: true, points: about.points, cloud });
}

function slide() {
    const { value, min, max } = $("angle");
    $("degrees").textContent = `${value}°`;
    $("angle").style.setProperty("--filled", `${(100 * (value - min)) / (max - min)}%`);
}

const zoom = (factor) => {
    orbit.zoomBy(factor);
    redraw();
};
$("nearer").addEventListener("click", () => zoom(1.25));
$("farther").addEventListener("click", () => zoom(0.8));
$("home").addEventListener("click", () => {
    orbit.home();
    redraw();
});
$("theme").addEventListener("click", toggleTheme);
$("angle").addEventListener("input", slide);
$("clear").addEventListener("click", clear);
$("around").addEventListener("click", () => search({ node: chosen }).catch(complain));
$("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("text").value;
    if (text) search({ text }).catch(complain);
});
onTheme(() => {
    tinted = null;
    redraw();
});
placeIcons();
slide();
load().catch(complain);
