// What each key does. The sheet is made from the same list, so it cannot be wrong.

import { toggleTheme } from "/web/theme.js";
import { setTool } from "./brushes.js";
import {
    moveSlice,
    nextAxis,
    nextColours,
    nextView,
    showVolume,
    toggleArrows,
} from "./fields.js";
import { toggleLock } from "./legend.js";
import { togglePanel } from "./panel.js";
import { planeSize, state, tell } from "./state.js";

const PAN = 64;
const ZOOM = 1.25;
const TURN = 40;

/** Zooms at the middle of the picture. */
export function zoom(stage, factor) {
    if (state.volume) {
        stage.volume.orbit.zoomBy(factor);
        stage.redraw();
        return;
    }
    stage.camera.zoomAt(stage.camera.screen[0] / 2, stage.camera.screen[1] / 2, factor);
    stage.moved();
}

export function fit(stage) {
    stage.camera.fit();
    stage.volume?.orbit.home();
    stage.moved();
}

/** Arrow keys turn a box, move the brush in paint mode, and else the picture. */
function arrow(stage, dy, dx, shift) {
    if (state.volume) {
        stage.volume.orbit.turnBy(dx * TURN, dy * TURN);
        stage.redraw();
    } else if (state.tool === "hand") {
        const way = PAN * (shift ? 4 : 1) * stage.camera.density;
        stage.camera.panBy(-dy * way, -dx * way);
        stage.moved();
    } else {
        moveCursor(stage, dy * (shift ? 10 : 1), dx * (shift ? 10 : 1));
    }
}

function moveCursor(stage, dy, dx) {
    const { camera } = stage;
    const size = planeSize();
    const from = state.cursor ?? camera.centre;
    const by = [camera.flip ? -dy : dy, dx];
    state.cursor = from.map((part, axis) =>
        Math.min(size[axis] - 0.5, Math.max(0.5, Math.floor(part) + 0.5 + by[axis])),
    );
    tell("cursor");
    stage.redrawAbove();
}

function apply(paint, erase) {
    if (!state.cursor || state.volume) return false;
    if (state.tool === "paint") paint.dab(state.cursor, erase);
    else if (state.tool === "stamp") paint.stamp(state.cursor);
    else return false;
    return true;
}

export function sections({ stage, paint, transport, files, share, tables }) {
    const focus = (id) => {
        const input = document.getElementById(id);
        input?.closest("details")?.setAttribute("open", "");
        if (document.body.classList.contains("panel-closed")) togglePanel();
        input?.focus();
    };
    const arrows = (shift) =>
        [
            ["ArrowUp", -1, 0],
            ["ArrowDown", 1, 0],
            ["ArrowLeft", 0, -1],
            ["ArrowRight", 0, 1],
        ].map(([key, dy, dx]) => [
            [shift ? `Shift+${key}` : key],
            null,
            () => arrow(stage, dy, dx, shift),
        ]);
    // On many keyboards `+` is Shift and `=`.
    const hidden = [[["="], null, () => zoom(stage, ZOOM)], ...arrows(false), ...arrows(true)];
    return {
        shown: [
            [
                "Run",
                [
                    [[" "], "Play or pause", () => transport.toggle()],
                    [["."], "One step", () => transport.step()],
                    [[">"], "Ten steps", () => transport.step(10)],
                    [["r"], "Reset", () => transport.reset()],
                    [["n"], "Reset with a random seed", () => transport.reseed()],
                    [["g"], "Go to a step", () => focus("goto")],
                    [
                        ["d", "e"],
                        "Slower, faster",
                        (event) =>
                            transport.changeSpeed(event.key.toLowerCase() === "d" ? -1 : 1),
                    ],
                ],
            ],
            [
                "Picture",
                [
                    [["\u2190 \u2191 \u2193 \u2192"], "Move; turn a box; farther with Shift"],
                    [
                        ["+", "-"],
                        "Zoom",
                        (event) => zoom(stage, event.key === "-" ? 1 / ZOOM : ZOOM),
                    ],
                    [["f", "0"], "Fit", () => fit(stage)],
                    [
                        ["v", "Shift+v"],
                        "Next, previous field",
                        (event) => nextView(event.shiftKey ? -1 : 1),
                    ],
                    [
                        ["c", "Shift+c"],
                        "Next, previous colours",
                        (event) => nextColours(tables(), event.shiftKey ? -1 : 1),
                    ],
                    [["l"], "Lock the range", () => toggleLock()],
                    [["a"], "Flow arrows", () => toggleArrows()],
                ],
            ],
            [
                "Box",
                [
                    [
                        ["[", "]"],
                        "Previous, next slice",
                        (event) => moveSlice(event.key === "[" ? -1 : 1),
                    ],
                    [["x"], "Next axis", () => nextAxis()],
                    [["o"], "Volume or slice", () => showVolume(stage, !state.volume)],
                ],
            ],
            [
                "Paint",
                [
                    [
                        ["h", "b", "t"],
                        "Hand, brush, stamp",
                        (event) =>
                            setTool(
                                { h: "hand", b: "paint", t: "stamp" }[event.key.toLowerCase()],
                                stage,
                            ),
                    ],
                    [
                        ["Enter", "Shift+Enter"],
                        "Paint, erase at the cursor",
                        (event) => apply(paint, event.shiftKey),
                    ],
                    [
                        ["q", "w"],
                        "Smaller, larger brush",
                        (event) =>
                            paint.setRadius(
                                paint.radius * (event.key.toLowerCase() === "q" ? 0.8 : 1.25),
                            ),
                    ],
                    [["Ctrl+z"], "Undo", () => paint.undo()],
                    [["Ctrl+Shift+z", "Ctrl+y"], "Redo", () => paint.redo()],
                    [["Escape"], "Back to the hand", () => setTool("hand", stage)],
                ],
            ],
            [
                "Keep",
                [
                    [["s"], "Save a picture", () => files.save("picture")],
                    [["m"], "Start or stop recording a film", () => files.record()],
                    [["k"], "Save a checkpoint", () => files.save("checkpoint")],
                    [
                        ["y", "u"],
                        "Copy link, copy command",
                        (event) =>
                            void (event.key.toLowerCase() === "y"
                                ? share.copyLink()
                                : share.copyCommand()),
                    ],
                    [["p"], "Show or hide the panel", () => togglePanel()],
                    [["i"], "Switch between light and dark", () => toggleTheme()],
                    [["?"], "This sheet"],
                ],
            ],
            [
                "Mouse and fingers",
                [
                    [["Drag"], "Move; paint with the brush"],
                    [["Wheel", "Pinch"], "Zoom at the cursor"],
                    [["Right button"], "Paint the lowest value"],
                    [["Double click"], "Fit"],
                ],
            ],
        ],
        hidden,
    };
}
