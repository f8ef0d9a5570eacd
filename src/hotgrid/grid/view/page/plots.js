// The group "Plots": one curve for each observable, and how far conserved ones drift.

/* global uPlot */

import { make } from "/web/dom.js";
import { paced } from "/web/pace.js";
import { onTheme, token } from "/web/theme.js";
import { short, titled } from "/web/text.js";
import { History } from "./history.js";
import { group } from "./panel.js";
import { on } from "./state.js";

const HEIGHT = 88;
const DRAW_EVERY = 250;
const SERIES = 4;

export function plotsGroup(hello) {
    const history = new History(hello.observables);
    const rows = hello.observables.map((name, index) => new Plot(name, index, history, hello));
    const none = make("p", { class: "hint" }, "This model declares no observables.");
    const part = group(
        "Plots",
        {},
        ...(rows.length > 0 ? rows.map((row) => row.element) : [none]),
    );
    const draw = paced(
        () => rows.filter(({ seen }) => seen).forEach((row) => row.draw()),
        DRAW_EVERY,
    );
    // A model may have many: only those in sight are drawn.
    const sight = new IntersectionObserver((changes) => {
        for (const { target, isIntersecting } of changes) {
            rows.find((row) => row.element === target).seen = isIntersecting;
        }
        draw();
    });
    rows.forEach((row) => sight.observe(row.element));
    on("history", (message) => {
        history.load(message);
        draw();
    });
    on("status", ({ step, observables, drift }) => {
        // They can cost more than a step, so not every status has them.
        if (Object.keys(observables ?? {}).length === 0) return;
        history.add(step, observables);
        rows.forEach((row) => row.note(observables, drift ?? {}));
        draw();
    });
    onTheme(() => {
        rows.forEach((row) => row.forget());
        draw();
    });
    new ResizeObserver(draw).observe(part);
    return part;
}

class Plot {
    seen = false;
    #name;
    #index;
    #history;
    #conserved;
    #plot = null;
    #place = make("div", { class: "plot" });
    #value = make("output", { class: "plot-value" });
    #drift = make("span", { class: "drift" });
    #hovered = false;

    constructor(name, index, history, hello) {
        this.#name = name;
        this.#index = index;
        this.#history = history;
        this.#conserved = hello.conserved.includes(name);
        this.element = make(
            "div",
            { class: "plot-row", data: { plot: name } },
            make(
                "div",
                { class: "plot-head" },
                make("span", { class: `swatch series-${1 + (index % SERIES)}` }),
                make("span", { class: "plot-name" }, titled(name)),
                this.#drift,
                this.#value,
            ),
            this.#place,
        );
    }

    note(observables, drift) {
        if (!this.#hovered) this.#value.textContent = short(observables[this.#name], 5);
        if (!this.#conserved) return;
        const off = drift[this.#name];
        this.#drift.textContent = off === undefined ? "conserved" : `drift ${short(off, 2)}`;
        this.#drift.title = "Difference from its value at the start, relative to that value";
    }

    /** Colours belong to the drawing; in others it has to be made again. */
    forget() {
        this.#plot?.destroy();
        this.#plot = null;
    }

    draw() {
        const width = this.#place.clientWidth;
        if (width === 0) return;
        const data = [this.#history.steps, this.#history.values[this.#name]];
        if (!this.#plot) {
            this.#plot = new uPlot(this.#options(width), data, this.#place);
            // The curve is also there as a number, which a screen reader can read.
            this.#place.setAttribute("aria-hidden", "true");
            return;
        }
        if (this.#plot.width !== width) this.#plot.setSize({ width, height: HEIGHT });
        this.#plot.setData(data);
    }

    #options(width) {
        const axis = {
            stroke: token("--muted"),
            grid: { stroke: token("--line"), width: 1 },
            ticks: { show: false },
            font: `11px ${token("--font")}`,
        };
        const stroke = token(`--series-${1 + (this.#index % SERIES)}`);
        return {
            width,
            height: HEIGHT,
            legend: { show: false },
            padding: [8, 16, 0, 0],
            scales: { x: { time: false }, y: { range: span } },
            cursor: {
                y: false,
                drag: { x: false, y: false },
                sync: { key: "hotgrid" },
                points: { size: 6 },
            },
            axes: [
                {
                    ...axis,
                    size: 20,
                    gap: 2,
                    space: 72,
                    values: (_, ticks) => ticks.map((tick) => tickText(tick)),
                },
                { ...axis, size: 64, gap: 4, space: 28, values: (_, ticks) => labels(ticks) },
            ],
            series: [{}, { stroke, width: 1.5, points: { show: false }, fill: `${stroke}18` }],
            hooks: { setCursor: [(plot) => this.#hover(plot)] },
        };
    }

    #hover({ cursor }) {
        this.#hovered = cursor.idx !== null && cursor.idx !== undefined && cursor.left >= 0;
        if (!this.#hovered) return;
        const value = this.#history.values[this.#name][cursor.idx];
        this.#value.textContent = short(value, 5);
    }
}

/** A margin above and below the curve; a constant gets a range of its own size. */
function span(_, low, high) {
    if (low === null || high === null || low === undefined) return [0, 1];
    const margin = (high - low) * 0.1 || Math.abs(high) * 1e-6 || 1;
    return [low - margin, high + margin];
}

/** As many digits as the ticks have; where those are too many, their distances. */
export function labels(ticks) {
    const apart = ticks.length > 1 ? ticks[1] - ticks[0] : 0;
    for (let digits = 2; digits <= 5; digits += 1) {
        const off = ticks.map((tick) => Math.abs(tick - Number(tick.toPrecision(digits))));
        if (Math.max(...off) <= 0.01 * apart) return ticks.map((tick) => short(tick, digits));
    }
    const middle = ticks[Math.floor(ticks.length / 2)];
    return ticks.map((tick) => (tick === middle ? short(tick, 5) : offset(tick - middle)));
}

function offset(value) {
    return (value > 0 ? "+" : "") + short(value, 2);
}

function tickText(step) {
    return Math.abs(step) >= 10000 ? `${Number((step / 1000).toPrecision(4))}k` : String(step);
}
