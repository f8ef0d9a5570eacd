// The side panel: groups that open and close, and stay as they were left.

import { make } from "/web/dom.js";
import { icon } from "/web/icons.js";
import { remember, remembered } from "/web/theme.js";
import { state } from "./state.js";

const KEY = "hotgrid.groups";
const SLIDER_STEPS = 1000;

function openGroups() {
    try {
        return JSON.parse(remembered(KEY)) ?? {};
    } catch {
        return {};
    }
}

/** A group of the panel. `open` is how it is until the reader decides. */
export function group(name, { open = true } = {}, ...children) {
    const body = make("div", { class: "group-body" }, ...children);
    const details = make(
        "details",
        { class: "group", data: { group: name }, open: openGroups()[name] ?? open },
        make("summary", {}, icon("chevron-down"), make("h2", {}, name)),
        body,
    );
    details.addEventListener("toggle", () => {
        remember(KEY, JSON.stringify({ ...openGroups(), [name]: details.open }));
    });
    details.body = body;
    return details;
}

/**
 * A slider with a number next to it. Where the range spans powers of ten, so does the slider.
 * `change(value)` is called on input; `show(value)` sets both without calling it, but not a
 * number that is being written, unless `typed`. Whole numbers stay between the ends.
 */
export function slider({
    name,
    low,
    high,
    value,
    change,
    whole = false,
    linear = false,
    limits = null,
}) {
    const log = !linear && low > 0 && high / low >= 100;
    const inside = (number) => Math.min(high, Math.max(low, number));
    const toPart = (number) =>
        log
            ? Math.log(number / low) / Math.log(high / low)
            : (number - low) / (high - low || 1);
    const toNumber = (part) => {
        const number = log ? low * (high / low) ** part : low + (high - low) * part;
        return inside(whole ? Math.round(number) : Number(number.toPrecision(4)));
    };
    const range = make("input", {
        type: "range",
        min: 0,
        max: SLIDER_STEPS,
        step: 1,
        "aria-label": name,
    });
    const number = make("input", {
        type: "number",
        step: whole ? 1 : "any",
        "aria-label": `${name}, as a number`,
        min: limits?.[0] ?? null,
        max: limits?.[1] ?? null,
        class: "number",
    });
    const paint = (now) => {
        const part = Math.min(1, Math.max(0, toPart(now) || 0));
        range.value = String(Math.round(part * SLIDER_STEPS));
        range.style.setProperty("--filled", `${100 * part}%`);
        range.setAttribute("aria-valuetext", String(now));
    };
    const row = make("div", { class: "slider" }, range, number);
    row.show = (now, { typed = false } = {}) => {
        paint(now);
        if (typed || document.activeElement !== number)
            number.value = String(Number(now.toPrecision(7)));
    };
    range.addEventListener("input", () => {
        const now = toNumber(Number(range.value) / SLIDER_STEPS);
        row.show(now);
        change(now);
    });
    number.addEventListener("change", () => {
        const written = Number(number.value);
        if (number.value === "" || !Number.isFinite(written)) return;
        const now = whole ? inside(Math.round(written)) : written;
        row.show(now, { typed: whole });
        change(now);
    });
    row.show(value);
    return row;
}

/** Shows or hides the panel, to give its place to the picture. */
export function togglePanel() {
    const closed = document.body.classList.toggle("panel-closed");
    const toggle = document.getElementById("panel-toggle");
    toggle.setAttribute("aria-expanded", String(!closed));
    state.panel = !closed;
}
