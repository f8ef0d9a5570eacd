// The page of one model: puts the parts together and speaks with the server.

import { spelled } from "/web/dom.js";
import { placeIcons } from "/web/icons.js";
import { Live, socketBeside } from "/web/live.js";
import { notice } from "/web/notice.js";
import { paced } from "/web/pace.js";
import { spaced } from "/web/text.js";
import { toggleTheme } from "/web/theme.js";
import { boxEdges } from "./box.js";
import { brushesGroup, setTool } from "./brushes.js";
import { fit, sections, zoom } from "./commands.js";
import { fieldsGroup, hasArrows, showVolume, toggleArrows } from "./fields.js";
import { Files } from "./files.js";
import { parseFrame } from "./frame.js";
import { Keys } from "./keys.js";
import { arrows, border, gridlines } from "./layers.js";
import { Legend } from "./legend.js";
import { Paint } from "./paint.js";
import { togglePanel } from "./panel.js";
import { plotsGroup } from "./plots.js";
import { Probe } from "./probe.js";
import { runGroup } from "./run.js";
import { Share, choicesOf } from "./share.js";
import { parametersGroup } from "./sliders.js";
import { Stage } from "./stage.js";
import { look, on, planePlace, state, tell } from "./state.js";
import {
    compilingNote,
    connectionBanner,
    describe,
    statusBar,
    waitingNote,
} from "./status.js";
import { Tables } from "./tables.js";
import { listen } from "./touch.js";
import { Transport } from "./transport.js";

const LOOK_EVERY = 40;

const element = (id) => document.getElementById(id);

// The token is a cookie by now; in the address it would be copied and shown.
const query = new URLSearchParams(location.search);
query.delete("token");
const asked = query.size > 0 ? `?${query}` : "";
if (location.search !== asked) {
    history.replaceState(null, "", location.pathname + asked + location.hash);
}

const live = new Live(socketBeside(`${location.pathname.replace(/\/$/, "")}/live`, asked));
const stage = new Stage({
    box: element("stage"),
    canvas: element("canvas"),
    above: element("above"),
    volumeCanvas: element("volume"),
    acknowledge: (frame) => live.send({ type: "ack", frame }),
});
stage.layers.push(gridlines, arrows, border, boxEdges(stage));
const paint = new Paint(live, stage);
const transport = new Transport(live);
const files = new Files(live);
const share = new Share(stage);
const probe = new Probe(live, stage, element("readout"));
let tables = null;
let declared = null;
let refusal = null;

new Legend(stage, element("legend"));
const keys = new Keys(
    sections({ stage, paint, transport, files, share, tables: () => tables }),
);
listen(stage, paint);
statusBar(stage);
connectionBanner(live);
describe(stage);
waitingNote();
compilingNote();
placeIcons();

// Tests and scripts find cells on the screen with these.
Object.assign(state, {
    cellAt: (x, y) => stage.cellAt(x, y),
    placeOf: (y, x) => stage.placeOf(y, x),
    pixelOf: (y, x) => stage.camera.toScreen(y + 0.5, x + 0.5).map(Math.round),
    show: (region) => {
        stage.camera.show(region);
        stage.moved();
    },
    link: () => share.link,
});

for (const [id, press] of Object.entries({
    "tool-hand": () => setTool("hand", stage),
    "tool-paint": () => setTool("paint", stage),
    "tool-stamp": () => setTool("stamp", stage),
    "zoom-in": () => zoom(stage, 1.5),
    "zoom-out": () => zoom(stage, 1 / 1.5),
    fit: () => fit(stage),
    "toggle-arrows": toggleArrows,
    "toggle-volume": () => showVolume(stage, !state.volume),
    "panel-toggle": togglePanel,
    theme: toggleTheme,
    help: () => keys.open(),
})) {
    element(id).addEventListener("click", press);
}

const showTools = () => {
    const { hello, tool } = state;
    for (const name of ["hand", "paint", "stamp"]) {
        element(`tool-${name}`).setAttribute("aria-pressed", String(tool === name));
    }
    element("tool-paint").hidden = !hello?.brushes.length;
    element("tool-stamp").hidden = !hello?.rle;
    element("toggle-arrows").hidden = !hasArrows();
    element("toggle-arrows").setAttribute("aria-pressed", String(state.arrows > 0));
    element("toggle-volume").hidden = hello?.size.length !== 3;
    element("toggle-volume").setAttribute("aria-pressed", String(state.volume));
};
on("tool", showTools);
on("look", showTools);

const sendLook = paced(() => {
    if (!state.connected || !state.hello) return;
    const { view, range, volume } = state;
    const message = { type: "look", view, range, arrows: state.arrows, volume };
    message.region = state.region.map((part) => Math.round(part * 1000) / 1000);
    message.pixels = [...stage.camera.screen];
    if (live.send({ ...message, ...planePlace() })) state.looks += 1;
}, LOOK_EVERY);
on("look", sendLook);
on("camera", sendLook);

/** What must stay the same for a panel to fit the model after a new connection. */
function declarationOf({ model, size, views, parameters, brushes, observables, rle, flow }) {
    const names = parameters.map(({ name, low, high }) => [name, low, high]);
    return JSON.stringify([model, size, views, names, brushes, observables, rle, flow]);
}

function hello(message) {
    const again = declared !== null;
    if (again && declared !== declarationOf(message)) {
        // The server came back with another model or size: nothing on this page fits it.
        location.reload();
        return;
    }
    state.looks = 0;
    Object.assign(state, {
        connected: true,
        hello: message,
        viewer: message.viewer,
        model: message.model,
        title: spaced(message.title),
        size: message.size,
        seed: message.seed,
        parameters: Object.fromEntries(
            message.parameters.map(({ name, value }) => [name, value]),
        ),
    });
    if (again) files.list(message.saved);
    else build(message);
    stage.setGrid();
    tell("hello", message);
    tell("connection");
    sendLook();
}

/** The first connection: the panel is made from what the model declares. */
function build(message) {
    declared = declarationOf(message);
    tables = new Tables(message.maps);
    stage.setTables(tables);
    document.title = `${state.title} \u00b7 hotgrid`;
    element("title").textContent = state.title;
    element("summary").replaceChildren(...spelled(message.summary));
    element("summary").title = message.summary;
    state.view = message.view;
    state.slice = Math.floor(message.size[0] / 2);
    element("panel").replaceChildren(
        fieldsGroup(message, tables, stage),
        parametersGroup(live, message),
        brushesGroup(message, paint, stage),
        plotsGroup(message),
        runGroup(transport),
        files.part(message),
        share.part(),
    );
    const { found, region } = choicesOf(location.hash, message);
    stage.setGrid();
    look(found);
    if (region) state.show(region);
    showTools();
}

function status(message) {
    const { step, time, playing, parameters, seed, viewers, recording } = message;
    // While it runs, the picture and the count belong together: the frame says the step.
    const running = playing && state.playing;
    Object.assign(state, { status: message, playing, parameters, seed, viewers, recording });
    if (!running) Object.assign(state, { step, time });
    tell("status", message);
}

const HEARD = {
    hello,
    status,
    history: (message) => tell("history", message),
    compiling: () => tell("compiling"),
    stroke: (message) => paint.flash(message),
    value: (message) => probe.answer(message),
    saved: (message) => tell("saved", message),
    notice: ({ text }) => notice(text),
    error: ({ text }) => {
        // Before the first hello an error says why there will be none.
        if (!state.connected) refusal = text;
        else notice(text, { error: true });
    },
};

live.addEventListener("text", ({ detail }) => HEARD[detail.type]?.(detail));
live.addEventListener("bytes", ({ detail }) => {
    try {
        stage.receive(parseFrame(detail));
    } catch (error) {
        console.error(error);
    }
});
live.addEventListener("lost", ({ detail }) => {
    state.connected = false;
    tell("connection", { ...detail, text: refusal });
});
live.open();
