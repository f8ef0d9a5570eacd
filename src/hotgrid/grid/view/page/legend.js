// The colour bar: which number has which colour, and whether the range is locked.

import { icon } from "/web/icons.js";
import { paced } from "/web/pace.js";
import { short, titled } from "/web/text.js";
import { CODED, SOLID, STATES } from "./frame.js";
import { colourOf } from "./tables.js";
import { look, on, state } from "./state.js";

export class Legend {
    #stage;
    #element;
    #parts;
    #drawn = null;

    constructor(stage, element) {
        this.#stage = stage;
        this.#element = element;
        const part = (name) => element.querySelector(`[data-part="${name}"]`);
        this.#parts = {
            name: part("name"),
            unit: part("unit"),
            bar: part("bar"),
            low: part("low"),
            middle: part("middle"),
            high: part("high"),
            lock: part("lock"),
            solid: part("solid"),
        };
        this.#parts.lock.addEventListener("click", toggleLock);
        const show = paced(() => this.#show(), 100);
        on("frame", show);
        on("look", show);
        on("hello", show);
        on("colours", show);
    }

    #show() {
        const { name, unit, bar, low, middle, high, lock, solid } = this.#parts;
        const { frame, table } = this.#stage;
        name.textContent = titled(state.view ?? "");
        unit.textContent = state.hello?.units?.[state.view] ?? "";
        solid.hidden = !state.hello?.brushes.some(({ kind }) => kind === "solid");
        const locked = state.range !== null;
        if (lock.getAttribute("aria-pressed") !== String(locked) || !lock.firstChild) {
            lock.setAttribute("aria-pressed", String(locked));
            lock.title = locked
                ? "Range is locked: press to follow the values"
                : "Lock the range";
            lock.replaceChildren(icon(locked ? "lock" : "lock-open"));
        }
        if (!frame || !table) return;
        delete this.#element.dataset.empty;
        const states = frame.colours === STATES && !locked;
        const coded = frame.colours === CODED;
        // Numbers that are colours have neither a range nor others to choose.
        bar.hidden = lock.hidden = coded;
        this.#element.classList.toggle("coded", coded);
        low.textContent = coded ? "" : short(frame.low, 3);
        middle.textContent = coded || states ? "" : short((frame.low + frame.high) / 2, 3);
        high.textContent = coded ? "" : short(frame.high, 3);
        if (this.#drawn !== table) this.#drawBar(table);
    }

    #drawBar(table) {
        const { bar, solid } = this.#parts;
        const context = bar.getContext("2d");
        const row = context.createImageData(SOLID, 1);
        row.data.set(table.bytes.subarray(0, 4 * SOLID));
        context.putImageData(row, 0, 0);
        solid.style.setProperty("--solid", colourOf(table, SOLID));
        this.#drawn = table;
    }
}

/** Locks the range at what is shown now, or lets it follow the values again. */
export function toggleLock() {
    look({ range: state.range ? null : shownRange() });
}

/** The range that is shown now. A constant field has none, so it gets one of its own. */
export function shownRange() {
    const { low, high } = state;
    return low < high ? [low, high] : [low, low + (Math.abs(low) || 1)];
}
