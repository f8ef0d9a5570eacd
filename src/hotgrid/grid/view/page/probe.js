// The value under the cursor: at once from the byte that is drawn, then from the server.

import { paced } from "/web/pace.js";
import { short } from "/web/text.js";
import { BITS, SOLID, byteOfCell, numberOfByte } from "./frame.js";
import { on, planePlace, planeSize, state } from "./state.js";

const ASK_EVERY = 250;

export class Probe {
    #stage;
    #output;
    #exact = null;
    #ask;

    constructor(live, stage, output) {
        this.#stage = stage;
        this.#output = output;
        this.#ask = paced(() => {
            const cell = this.#cell();
            if (!cell || state.volume) return;
            live.send({ type: "value", at: cell, view: state.view, ...planePlace() });
        }, ASK_EVERY);
        on("cursor", () => this.#changed());
        on("frame", () => this.#changed());
        on("look", () => {
            this.#exact = null;
            this.#changed();
        });
        this.#show();
    }

    /** The server's answer. */
    answer({ at, value, solid }) {
        this.#exact = { at: at.map(Math.floor), value, solid };
        this.#show();
    }

    #cell() {
        if (!state.cursor) return null;
        const cell = state.cursor.map(Math.floor);
        const size = planeSize();
        return cell.every((part, axis) => part >= 0 && part < size[axis]) ? cell : null;
    }

    #changed() {
        const cell = this.#cell();
        if (cell && !state.volume && !this.#isExact(cell)) this.#ask();
        this.#show();
    }

    /** Whether the picture itself says the value: a bit leaves nothing to ask. */
    #isExact(cell) {
        const { frame } = this.#stage;
        return frame?.kind === BITS && byteOfCell(frame, ...cell) !== null;
    }

    #show() {
        const cell = this.#cell();
        if (!cell || state.volume) {
            state.value = null;
            this.#output.replaceChildren(state.volume ? "Drag to turn, wheel to zoom" : "");
            return;
        }
        const place = [...cell];
        if (state.size.length === 3) place.splice(state.axis, 0, state.slice);
        const names = ["z", "y", "x"].slice(-place.length);
        const where = names.map((name, axis) => `${name} ${place[axis]}`).join("  ");
        this.#output.replaceChildren(where, "  ", value(this.#number(cell)));
    }

    /** The text of the value. What comes from a byte is marked as near, not exact. */
    #number(cell) {
        const { frame } = this.#stage;
        const byte = frame ? byteOfCell(frame, ...cell) : null;
        if (this.#isExact(cell)) {
            state.value = numberOfByte(frame, byte);
            return short(state.value);
        }
        const exact = this.#exact?.at.every((part, axis) => part === cell[axis]);
        const broken = this.#exact?.value === null && !this.#exact.solid;
        if (byte === SOLID) {
            state.value = null;
            // The picture shows both alike. Until the server has answered, a cell is taken to
            // be as the last one was.
            return broken ? (exact ? "not finite" : "\u2026") : "solid";
        }
        if (exact) {
            state.value = this.#exact.value;
            if (state.value === null) return broken ? "not finite" : "solid";
            return short(state.value, 6);
        }
        state.value = byte === null ? null : numberOfByte(frame, byte);
        return byte === null ? "\u2026" : `\u2248 ${short(state.value, 3)}`;
    }
}

function value(text) {
    const strong = document.createElement("strong");
    strong.textContent = text;
    return strong;
}
