// The canvases: their sizes, and what draws on them when. A frame is drawn when the
// display asks for the next picture, and only then acknowledged, so that the server never
// sends faster than this page draws.

import { isDark, onTheme, remembered } from "/web/theme.js";
import { Rate } from "/web/pace.js";
import { renderer } from "/web/program.js";
import { Camera } from "./camera.js";
import { Draw2d } from "./draw2d.js";
import { DrawGl } from "./drawgl.js";
import { VOLUME } from "./frame.js";
import { on, planeSize, state, tell } from "./state.js";
import { Volume } from "./volume.js";

// A larger canvas costs more than the eye gains.
const MOST_DENSITY = 2;
const MARGIN = 12;

export class Stage {
    camera = new Camera();
    /** The last frame that was drawn. */
    frame = null;
    /** The colours of the last frame. */
    table = null;
    volume = null;
    /** Functions `(context, camera, frame, table)` that draw above it, in CSS pixels. */
    layers = [];

    #box;
    #canvas;
    #above;
    #volumeCanvas;
    #drawing;
    #tables = null;
    #acknowledge;
    #waiting = [];
    #scheduled = false;
    // What has to be drawn: the picture, what lies above it, or the frame in other colours.
    #paint = { picture: true, above: true, colours: false };
    #rate = new Rate();

    constructor({ box, canvas, above, volumeCanvas, acknowledge }) {
        this.#box = box;
        this.element = box;
        this.#canvas = canvas;
        this.#above = above;
        this.#volumeCanvas = volumeCanvas;
        this.#acknowledge = acknowledge;
        this.#drawing = this.#choose();
        state.backend = this.#drawing.name;
        new ResizeObserver(() => this.#resize()).observe(box);
        onTheme(() => this.recolour());
        on("look", (changes) => {
            if ("axis" in changes) this.setGrid();
            if ("colours" in changes) this.recolour();
            if ("volume" in changes) this.#switch();
            this.redraw();
        });
        this.#resize();
    }

    #choose() {
        const found = renderer();
        const wished = remembered("hotgrid.backend");
        this.software = found !== "gpu";
        if (wished === "webgl2" || (found === "gpu" && wished !== "2d")) {
            try {
                return new DrawGl(this.#canvas, () => this.redraw());
            } catch (error) {
                console.warn("drawing without WebGL2:", error.message);
            }
        }
        return new Draw2d(this.#canvas);
    }

    setTables(tables) {
        this.#tables = tables;
    }

    setGrid() {
        const [height, width] = planeSize();
        this.camera.setGrid(height, width, Boolean(state.hello?.y_up));
        this.moved();
    }

    #resize() {
        const density = Math.min(MOST_DENSITY, devicePixelRatio || 1);
        const width = Math.max(1, Math.round(this.#box.clientWidth * density));
        const height = Math.max(1, Math.round(this.#box.clientHeight * density));
        if (width === this.#canvas.width && height === this.#canvas.height) return;
        for (const canvas of [this.#canvas, this.#above]) {
            canvas.width = width;
            canvas.height = height;
        }
        this.camera.setScreen(height, width, density, this.#areas(height, width, density));
        this.moved();
        // Setting a size empties a canvas: draw before the next paint, or it flashes.
        this.#paint.picture = true;
        this.#paint.above = true;
        this.#draw();
    }

    /** The areas next to the tools and the legend that the grid may fill. */
    #areas(height, width, density) {
        const box = this.#box.getBoundingClientRect();
        const edges = (selector) => {
            const part = this.#box.querySelector(selector).getBoundingClientRect();
            return [part.top - box.top, part.right - box.left, part.bottom - box.top];
        };
        const [, toolsRight, toolsBottom] = edges(".tools");
        const [legendTop, legendRight] = edges(".legend");
        const [bottom, right] = [height / density - MARGIN, width / density - MARGIN];
        const wide = toolsRight < width / density / 3;
        const areas = wide
            ? [
                  [MARGIN, legendRight + MARGIN, bottom, right],
                  [MARGIN, toolsRight + MARGIN, legendTop - MARGIN, right],
                  [MARGIN, toolsRight + MARGIN, bottom, right],
              ]
            : [
                  [toolsBottom + MARGIN, MARGIN, legendTop - MARGIN, right],
                  [MARGIN, MARGIN, bottom, right],
              ];
        return areas.map((area) => area.map((edge) => edge * density));
    }

    /** The camera moved: redraw, and request new frames. */
    moved() {
        state.region = this.camera.region();
        tell("camera");
        this.redraw();
    }

    /** Takes a frame; the newest that waits is the one that is drawn. */
    receive(frame) {
        this.#waiting.push(frame);
        this.#schedule({ picture: true });
    }

    /** Draws what lies above the picture again, such as the brush. */
    redrawAbove() {
        this.#schedule({ above: true });
    }

    redraw() {
        this.#schedule({ picture: true, above: true });
    }

    #schedule(what) {
        Object.assign(this.#paint, what);
        if (this.#scheduled) return;
        this.#scheduled = true;
        requestAnimationFrame(() => {
            this.#scheduled = false;
            this.#draw();
        });
    }

    /** The same frame in other colours. */
    recolour() {
        this.#schedule({ picture: true, above: true, colours: true });
    }

    #switch() {
        this.#volumeCanvas.hidden = !state.volume;
        if (state.volume && !this.volume) {
            this.volume = new Volume(this.#volumeCanvas, this.software, () => this.redraw());
        }
        // An old slice below a new volume, or the other way round, would only confuse.
        this.frame = null;
        this.#drawing.clear();
    }

    #draw() {
        const arrived = this.#waiting;
        this.#waiting = [];
        const newest = arrived.findLast((frame) => (frame.kind === VOLUME) === state.volume);
        const paint = this.#paint;
        this.#paint = { picture: false, above: false, colours: false };
        if (newest) {
            // Only arrows change with the frame; the rest above it stays as it is.
            if (newest.arrows || !this.frame || this.frame.arrows) paint.above = true;
            this.frame = newest;
        }
        if (this.frame && this.#tables && (newest || paint.colours)) {
            this.table = this.#tables.table(state.colours, this.frame.colours, isDark());
            const drawing = state.volume ? this.volume : this.#drawing;
            drawing.setFrame(this.frame, this.table, this.camera.flip);
            if (paint.colours) tell("colours");
        }
        if (paint.picture) this.#drawing.draw(this.camera);
        if (paint.picture && state.volume) {
            this.volume.draw(this.#box.clientWidth, this.#box.clientHeight);
        }
        if (paint.above) this.#drawAbove();
        for (const { number } of arrived) this.#acknowledge(number);
        if (newest) this.#shown(newest);
    }

    #drawAbove() {
        const context = this.#above.getContext("2d");
        const { density } = this.camera;
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.clearRect(0, 0, this.#above.width, this.#above.height);
        context.setTransform(density, 0, 0, density, 0, 0);
        for (const layer of this.layers) {
            context.save();
            layer(context, this.camera, this.frame, this.table);
            context.restore();
        }
    }

    #shown(frame) {
        this.#rate.count();
        state.frames += 1;
        state.frame = frame.number;
        state.low = frame.low;
        state.high = frame.high;
        state.fps = this.#rate.perSecond();
        if (state.playing) {
            state.step = frame.step;
            state.time = frame.time;
        }
        tell("frame", frame);
    }

    /** Frames a second now; it falls to zero when none come. */
    measureRate() {
        state.fps = this.#rate.perSecond();
        return state.fps;
    }

    /** The cell at a place of the window, as fractions. */
    cellAt(clientX, clientY) {
        const box = this.#canvas.getBoundingClientRect();
        const { density } = this.camera;
        return this.camera.toCell(
            (clientY - box.top) * density,
            (clientX - box.left) * density,
        );
    }

    /** Where the middle of a cell is in the window. */
    placeOf(y, x) {
        const box = this.#canvas.getBoundingClientRect();
        const [py, px] = this.camera.toScreen(y + 0.5, x + 0.5);
        const { density } = this.camera;
        return { x: box.left + px / density, y: box.top + py / density };
    }
}
