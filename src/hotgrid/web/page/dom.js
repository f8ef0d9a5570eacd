// Building elements without a framework.

import { icon } from "./icons.js";

/**
 * An element. `attributes` may hold `on` (a record of listeners), `data`, properties that start
 * with a dot (`.value`) and plain attributes; `null` and `false` leave one out.
 */
export function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (key === "on") {
            for (const [event, listener] of Object.entries(value)) {
                element.addEventListener(event, listener);
            }
        } else if (key === "data") Object.assign(element.dataset, value);
        else if (key.startsWith(".")) element[key.slice(1)] = value;
        else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
}

/** A button with an icon, a text, or both. Without a text the name is a label and a tooltip. */
export function button({ name, text, symbol, press, className = "button", ...more }) {
    return make(
        "button",
        {
            type: "button",
            class: className + (text ? "" : " button-icon"),
            "aria-label": text ? null : name,
            title: name,
            on: { click: press },
            ...more,
        },
        symbol ? icon(symbol) : null,
        text ? make("span", {}, text) : null,
    );
}

let fields = 0;

/** A label above (or beside) an input, tied to it by an id. */
export function field(text, input, { inline = false, note = null } = {}) {
    input.id ||= `field-${++fields}`;
    const row = make(
        "div",
        { class: inline ? "field field-inline" : "field" },
        make("label", { for: input.id }, text),
        input,
    );
    if (note) {
        const hint = make("p", { class: "hint", id: `${input.id}-note` }, note);
        input.setAttribute("aria-describedby", hint.id);
        row.append(hint);
    }
    return row;
}

/** A drop-down list. `options` are `[value, text]` pairs. */
export function choice(options, value, change) {
    const list = make(
        "select",
        { on: { change: () => change(list.value) } },
        options.map(([key, text]) => make("option", { value: key }, text)),
    );
    list.value = value;
    return list;
}

/** Two or more buttons of which one is pressed. */
export function segments(name, options, value, change) {
    const group = make("div", { class: "segments", role: "group", "aria-label": name });
    const press = (key) => {
        for (const each of group.children) {
            each.setAttribute("aria-pressed", String(each.dataset.key === String(key)));
        }
    };
    for (const [key, text] of options) {
        const one = make("button", { type: "button", data: { key: String(key) } }, text);
        one.addEventListener("click", () => {
            press(key);
            change(key);
        });
        group.append(one);
    }
    press(value);
    group.press = press;
    return group;
}

/** A text of the code as nodes: what stands between backticks is code. */
export function spelled(text) {
    return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}
