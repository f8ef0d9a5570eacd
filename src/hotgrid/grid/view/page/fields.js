// The group "View": which field, in which colours, over which range; slices of a box.

import { choice, field, make, segments } from "/web/dom.js";
import { notice } from "/web/notice.js";
import { paced } from "/web/pace.js";
import { plain, titled } from "/web/text.js";
import { CODED } from "./frame.js";
import { shownRange } from "./legend.js";
import { group, slider } from "./panel.js";
import { look, on, state } from "./state.js";

const ARROWS = 24;

export function fieldsGroup(hello, tables, stage) {
    const views = choice(
        hello.views.map((name) => [name, titled(name)]),
        state.view,
        (view) => look({ view, range: null }),
    );
    const colours = choice(tables.choices(), state.colours, (name) => look({ colours: name }));
    const coloursRow = field("Colours", colours, { inline: true });
    const parts = [field("Field", views, { inline: true }), coloursRow];
    const range = rangeRow();
    parts.push(range);
    let arrows = null;
    if (hasArrows()) {
        const box = make("input", { type: "checkbox", id: "arrows" });
        box.addEventListener("change", () => look({ arrows: box.checked ? ARROWS : 0 }));
        arrows = make(
            "div",
            { class: "check" },
            box,
            make("label", { for: "arrows" }, "Flow arrows"),
        );
        arrows.box = box;
        parts.push(arrows);
    }
    const box = hello.size.length === 3 ? boxPart(hello, stage) : null;
    if (box) parts.push(box);

    const showRange = () => {
        range.show();
        range.hidden = coloursRow.hidden = stage.frame?.colours === CODED;
    };
    const show = () => {
        views.value = state.view;
        colours.value = state.colours;
        showRange();
        box?.show();
        if (arrows) arrows.box.checked = state.arrows > 0;
    };
    on("look", show);
    on(
        "frame",
        paced(showRange, 250),
    );
    show();
    return group("View", {}, ...parts);
}

/** The limits of the colours. They follow the values until one of them is written. */
function rangeRow() {
    const input = (name) =>
        make("input", { type: "number", step: "any", "aria-label": name, class: "number" });
    const low = input("Lowest value of the colours");
    const high = input("Highest value of the colours");
    const mode = segments(
        "Range",
        [
            ["auto", "Auto"],
            ["locked", "Locked"],
        ],
        "auto",
        (key) => look({ range: key === "auto" ? null : shownRange() }),
    );
    const write = () => {
        const limits = [Number(low.value), Number(high.value)];
        if (low.value === "" || high.value === "" || !(limits[0] < limits[1])) {
            notice("The lowest value must be below the highest.", { error: true });
            return;
        }
        look({ range: limits });
    };
    low.addEventListener("change", write);
    high.addEventListener("change", write);
    const row = make(
        "div",
        { class: "field field-inline", id: "range" },
        make("span", { class: "label" }, "Range"),
        mode,
        make("span", {}),
        make("div", { class: "pair" }, low, make("span", { "aria-hidden": true }, "to"), high),
    );
    row.show = () => {
        mode.press(state.range ? "locked" : "auto");
        const [from, to] = state.range ?? [state.low, state.high];
        if (document.activeElement !== low) low.value = plain(rounded(from));
        if (document.activeElement !== high) high.value = plain(rounded(to));
    };
    return row;
}

function rounded(value) {
    return state.range ? value : Number(value.toPrecision(3));
}

/** Axis, slice and volume of a 3-D grid. */
function boxPart(hello, stage) {
    const part = make("div", { class: "stack" });
    const kind = segments(
        "Slice or volume",
        [
            [false, "Slice"],
            [true, "Volume"],
        ],
        state.volume,
        (key) => showVolume(stage, key),
    );
    const axes = segments(
        "Axis of the slice",
        [
            [0, "z"],
            [1, "y"],
            [2, "x"],
        ],
        state.axis,
        (axis) => look({ axis, slice: Math.floor(hello.size[axis] / 2) }),
    );
    const slices = make("div", {});
    const density = slider({
        name: "Opacity",
        low: 0.1,
        high: 10,
        value: 1,
        change: (value) => {
            stage.volume.density = value;
            stage.redraw();
        },
    });
    const axisRow = make(
        "div",
        { class: "field field-inline" },
        make("span", { class: "label" }, "Axis"),
        axes,
    );
    const sliceRow = make(
        "div",
        { class: "field" },
        make("span", { class: "label" }, "Slice"),
        slices,
    );
    const densityRow = make(
        "div",
        { class: "field" },
        make("span", { class: "label" }, "Opacity"),
        density,
    );
    part.append(kind, axisRow, sliceRow, densityRow);
    let axisShown = null;
    let inner = null;
    part.show = () => {
        kind.press(state.volume);
        axes.press(state.axis);
        axisRow.hidden = state.volume;
        sliceRow.hidden = state.volume;
        densityRow.hidden = !state.volume;
        if (axisShown !== state.axis) {
            axisShown = state.axis;
            inner = slider({
                name: "Slice",
                low: 0,
                high: hello.size[state.axis] - 1,
                value: state.slice,
                whole: true,
                limits: [0, hello.size[state.axis] - 1],
                change: (slice) => moveSlice(slice - state.slice),
            });
            slices.replaceChildren(inner);
        }
        inner.show(state.slice);
    };
    return part;
}

/** Moves the slice by some cells, as far as the box goes. */
export function moveSlice(by) {
    if (state.size.length !== 3 || state.volume) return;
    const last = state.size[state.axis] - 1;
    look({ slice: Math.min(last, Math.max(0, state.slice + by)) });
}

export function nextAxis() {
    if (state.size.length !== 3 || state.volume) return;
    const axis = (state.axis + 1) % 3;
    look({ axis, slice: Math.floor(state.size[axis] / 2) });
}

/** Shows the whole box, or a slice again. */
export function showVolume(stage, volume) {
    if (state.size.length !== 3) return;
    try {
        look({ volume });
    } catch (error) {
        look({ volume: false });
        notice(error.message, { error: true });
    }
}

/** Arrows are drawn for flows in a plane. */
export function hasArrows() {
    return Boolean(state.hello?.flow) && state.size.length === 2;
}

export function toggleArrows() {
    if (hasArrows()) look({ arrows: state.arrows ? 0 : ARROWS });
}

/** The next (1) or previous (-1) of a list, in a circle. */
function after(list, now, by) {
    return list[(list.indexOf(now) + by + list.length) % list.length];
}

export function nextView(by) {
    look({ view: after(state.hello.views, state.view, by), range: null });
}

export function nextColours(tables, by) {
    const names = tables.choices().map(([name]) => name);
    look({ colours: after(names, state.colours, by) });
}
