// The group "Paint": brushes that the model declares, the stamp, undo.

import { button, choice, field, make, segments } from "/web/dom.js";
import { group, slider } from "./panel.js";
import { PRESETS, mirrored, parseRle, turned, writeRle } from "./rle.js";
import { on, state, tell } from "./state.js";

/** The value of the list of stamps for a text that is not one of them. */
const OWN = "";

/** Chooses what a pointer does: "hand", "paint" or "stamp". */
export function setTool(tool, stage) {
    const brushes = state.hello?.brushes ?? [];
    if (tool === "paint" && brushes.length === 0) return;
    if (tool === "stamp" && !state.hello?.rle) return;
    state.tool = tool;
    stage.element.dataset.tool = tool;
    tell("tool");
    stage.redrawAbove();
}

export function brushesGroup(hello, paint, stage) {
    const parts = [];
    if (hello.brushes.length === 0) {
        parts.push(make("p", { class: "hint" }, "This model declares no brushes."));
    } else {
        parts.push(...brushPart(hello, paint, stage));
    }
    if (hello.rle) parts.push(stampPart(paint, stage));
    if (hello.brushes.length > 0 || hello.rle) {
        parts.push(
            make(
                "div",
                { class: "buttons" },
                button({
                    name: "Undo (Ctrl+Z)",
                    text: "Undo",
                    symbol: "undo-2",
                    press: () => paint.undo(),
                }),
                button({
                    name: "Redo (Ctrl+Shift+Z)",
                    text: "Redo",
                    symbol: "redo-2",
                    press: () => paint.redo(),
                }),
            ),
        );
    }
    return group("Paint", {}, ...parts);
}

function brushPart(hello, paint, stage) {
    const values = make("div", {});
    const choose = (name) => {
        paint.brush = hello.brushes.find((brush) => brush.name === name);
        paint.value = paint.brush.value ?? 1;
        values.replaceChildren(valueControl(paint));
    };
    const known = hello.brushes.some((brush) => brush.name === paint.brush?.name);
    const first = known ? paint.brush.name : hello.brushes[0].name;
    if (!known) paint.radius = hello.brushes[0].radius;
    choose(first);
    const brushes = choice(
        hello.brushes.map(({ name, label }) => [name, label ?? name]),
        first,
        (name) => {
            choose(name);
            setTool("paint", stage);
        },
    );
    const radius = slider({
        name: "Radius of the brush",
        low: 0.5,
        high: 100,
        value: paint.radius,
        limits: [0.5, 100],
        change: (now) => paint.setRadius(now),
    });
    on("brush", () => radius.show(paint.radius));
    return [
        field("Brush", brushes, { inline: true }),
        make(
            "div",
            { class: "field field-inline" },
            make("span", { class: "label" }, "Value"),
            values,
        ),
        make(
            "div",
            { class: "field" },
            make("span", { class: "label" }, "Radius in cells"),
            radius,
        ),
        make("p", { class: "hint" }, "The right button, or Shift, paints the lowest value."),
    ];
}

/** How the value of a brush is chosen depends on what it paints. */
function valueControl(paint) {
    const { kind, low, high } = paint.brush;
    const set = (value) => {
        paint.value = value;
    };
    if (kind === "solid") {
        return segments(
            "Value of the brush",
            [
                [high ?? 1, "Add"],
                [low ?? 0, "Remove"],
            ],
            paint.value,
            set,
        );
    }
    if (kind === "states" && high - low <= 5) {
        const states = Array.from({ length: high - low + 1 }, (_, index) => low + index);
        const names = high - low === 1 ? ["Off", "On"] : states.map(String);
        return segments(
            "Value of the brush",
            states.map((each, i) => [each, names[i]]),
            paint.value,
            set,
        );
    }
    return slider({
        name: "Value of the brush",
        low: low ?? 0,
        high: high ?? 1,
        value: paint.value,
        whole: kind === "states",
        change: set,
    });
}

function stampPart(paint, stage) {
    const text = make("textarea", {
        rows: 3,
        spellcheck: "false",
        id: "stamp-rle",
        "aria-describedby": "stamp-note",
    });
    const note = make("p", { class: "hint", id: "stamp-note" });
    const read = () => {
        try {
            paint.setRle(text.value);
            const { height, width, cells } = paint.pattern;
            note.textContent = `${width} by ${height} cells, ${cells.length} alive`;
            note.classList.remove("wrong");
        } catch (error) {
            note.textContent = `Cannot be read: ${error.message}`;
            note.classList.add("wrong");
        }
        text.setAttribute("aria-invalid", String(!paint.pattern));
        // The list says what the text holds.
        presets.value = PRESETS.some(([, rle]) => rle === text.value) ? text.value : OWN;
        stage.redrawAbove();
    };
    const use = (rle) => {
        text.value = rle;
        read();
        setTool("stamp", stage);
    };
    const presets = choice(
        [...PRESETS.map(([name, rle]) => [rle, name]), [OWN, "Own pattern"]],
        PRESETS[0][1],
        (rle) => (rle === OWN ? text.focus() : use(rle)),
    );
    const change = (turn) => {
        if (paint.pattern) use(writeRle(turn(parseRle(text.value))));
    };
    text.value = paint.rle || PRESETS[0][1];
    text.addEventListener("input", read);
    read();
    return make(
        "div",
        { class: "stack" },
        field("Stamp", presets, { inline: true }),
        field("Run lengths (RLE)", text),
        note,
        make(
            "div",
            { class: "buttons" },
            button({
                name: "Place this stamp (T)",
                text: "Place",
                symbol: "stamp",
                press: () => setTool("stamp", stage),
            }),
            button({
                name: "Rotate by 90 degrees",
                text: "Turn",
                symbol: "rotate-cw",
                press: () => change(turned),
            }),
            button({ name: "Mirror", text: "Mirror", press: () => change(mirrored) }),
        ),
    );
}
