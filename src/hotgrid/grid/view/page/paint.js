// Strokes and stamps: what the pointer does to the cells, and what is shown of it.

import { paced } from "/web/pace.js";
import { complain } from "/web/notice.js";
import { planePlace, state, tell } from "./state.js";
import { parseRle } from "./rle.js";

const SEND_EVERY = 33;
const MOST_POINTS = 400;
const FLASH = 900;

export class Paint {
    brush = null;
    value = 1;
    radius = 3;
    /** The pattern of the stamp, or null where its text is wrong. */
    pattern = null;
    rle = "";

    #live;
    #stage;
    #stroke = 0;
    #active = null;
    #flashes = [];
    #send = paced(() => this.#sendPoints(), SEND_EVERY);

    constructor(live, stage) {
        this.#live = live;
        this.#stage = stage;
        stage.layers.push((...given) => this.#draw(...given));
    }

    /** Sets the pattern of the stamp; throws where the text cannot be read. */
    setRle(text) {
        this.rle = text;
        this.pattern = null;
        this.pattern = parseRle(text);
    }

    begin(cell, erase) {
        if (!this.brush) return;
        this.#stroke += 1;
        const value = erase ? (this.brush.low ?? 0) : this.value;
        this.#active = { points: [cell], last: cell, joint: null, value, sent: 0 };
        this.#send();
    }

    move(cell) {
        const active = this.#active;
        if (!active) return;
        // Points close enough that their discs overlap, however fast the pointer was.
        const [fromY, fromX] = active.last;
        const way = Math.hypot(cell[0] - fromY, cell[1] - fromX);
        const count = Math.min(MOST_POINTS, Math.ceil(way / Math.max(0.5, this.radius / 2)));
        for (let index = 1; index <= count; index += 1) {
            const part = index / count;
            active.points.push([
                fromY + (cell[0] - fromY) * part,
                fromX + (cell[1] - fromX) * part,
            ]);
        }
        if (count > 0) active.last = cell;
        this.#send();
    }

    end() {
        this.#send.flush();
        this.#sendPoints();
        this.#active = null;
    }

    /** Takes back a stroke that turned out to be something else, such as a pinch. */
    cancel() {
        const sent = this.#active?.sent > 0;
        this.#active = null;
        if (sent) this.undo();
    }

    /** One touch of the brush. */
    dab(cell, erase = false) {
        this.begin(cell, erase);
        this.end();
    }

    #sendPoints() {
        const active = this.#active;
        if (!active) return;
        while (active.points.length > 0) {
            const points = active.points
                .splice(0, MOST_POINTS)
                .map((point) => point.map((part) => Math.round(part * 100) / 100));
            active.sent += points.length;
            // From where the message before has ended, or the line would have notches.
            if (active.joint) points.unshift(active.joint);
            active.joint = points.at(-1);
            this.#live.send({
                type: "stroke",
                stroke: this.#stroke,
                brush: this.brush.name,
                value: active.value,
                radius: this.radius,
                points,
                ...planePlace(),
            });
        }
    }

    /** The cell of the stamp's first corner when its middle is at `cell`. */
    corner([y, x]) {
        const { height, width } = this.pattern;
        return [Math.floor(y) - Math.floor(height / 2), Math.floor(x) - Math.floor(width / 2)];
    }

    stamp(cell) {
        if (!this.pattern) return;
        const message = {
            type: "stamp",
            rle: this.rle,
            at: this.corner(cell),
            ...planePlace(),
        };
        this.#live.ask(message).catch(complain);
    }

    undo() {
        this.#live.ask({ type: "undo" }).catch(complain);
    }

    redo() {
        this.#live.ask({ type: "redo" }).catch(complain);
    }

    setRadius(radius) {
        this.radius = Math.min(100, Math.max(0.5, radius));
        tell("brush");
        this.#stage.redrawAbove();
    }

    /** Shows briefly what another viewer painted. */
    flash({ points, radius, viewer }) {
        this.#flashes.push({ points, radius, viewer, since: performance.now() });
        this.#stage.redrawAbove();
    }

    #draw(context, camera) {
        if (state.volume) return;
        this.#drawFlashes(context, camera);
        if (!state.cursor || state.tool === "hand") return;
        if (state.tool === "paint") this.#drawRing(context, camera);
        else if (this.pattern) this.#drawGhost(context, camera);
    }

    #drawRing(context, camera) {
        const [py, px] = camera.toScreen(...state.cursor);
        const radius = Math.max(2, this.radius * camera.cell);
        for (const [colour, width] of [
            ["rgb(0 0 0 / 70%)", 3],
            ["#ffffff", 1.25],
        ]) {
            context.beginPath();
            context.arc(px / camera.density, py / camera.density, radius, 0, 2 * Math.PI);
            context.strokeStyle = colour;
            context.lineWidth = width;
            context.stroke();
        }
    }

    #drawGhost(context, camera) {
        const [top, left] = this.corner(state.cursor);
        const { density } = camera;
        const box = (y0, x0, y1, x1) => {
            const { x, y, width, height } = camera.place([y0, x0, y1, x1]);
            return [x / density, y / density, width / density, height / density];
        };
        const accent = getComputedStyle(this.#stage.element).getPropertyValue("--accent");
        context.fillStyle = accent;
        context.globalAlpha = 0.7;
        for (const [y, x] of this.pattern.cells) {
            context.fillRect(...box(top + y, left + x, top + y + 1, left + x + 1));
        }
        context.globalAlpha = 1;
        context.strokeStyle = accent;
        context.setLineDash([4, 3]);
        const { height, width } = this.pattern;
        context.strokeRect(...box(top, left, top + height, left + width));
    }

    #drawFlashes(context, camera) {
        const now = performance.now();
        this.#flashes = this.#flashes.filter(({ since }) => now - since < FLASH);
        if (this.#flashes.length === 0) return;
        const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
        context.fillStyle = "#ff9f1c";
        for (const { points, radius, since } of this.#flashes) {
            context.globalAlpha = still ? 0.35 : 0.5 * (1 - (now - since) / FLASH);
            context.beginPath();
            for (const [y, x] of points) {
                const [py, px] = camera.toScreen(y, x).map((pixels) => pixels / camera.density);
                const size = Math.max(3, radius * camera.cell);
                context.moveTo(px + size, py);
                context.arc(px, py, size, 0, 2 * Math.PI);
            }
            context.fill();
        }
        this.#stage.redrawAbove();
    }
}
