// Keys for everything, and the sheet that lists them.

import { button, make } from "/web/dom.js";
import { remember, remembered } from "/web/theme.js";

const KEY = "hotgrid.single-keys";
// In these, letters and Space belong to what is written or pressed.
const WRITTEN = "input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]";
const PRESSED = "button, a, summary, input[type=checkbox], select";
const MOVED = "input[type=range], select, .segments";

/**
 * Listens to keys. `shown` holds sections `[title, [[keys, what, action], ...]]` of the sheet,
 * `hidden` holds rows that the sheet leaves out. A key is written as the event names it, after
 * `Ctrl+` or `Shift+`. An action that returns `false` did not use the key.
 */
export class Keys {
    #actions = new Map();
    #sheet;
    // Single letters can be in the way of speech input, so they can be turned off.
    #single = remembered(KEY) !== "off";

    constructor({ shown, hidden }) {
        for (const [keys, , action] of [...shown.flatMap(([, rows]) => rows), ...hidden]) {
            for (const key of keys) this.#actions.set(key, action);
        }
        this.#actions.set("?", () => this.open());
        this.#sheet = this.#makeSheet(shown);
        document.body.append(this.#sheet);
        addEventListener("keydown", (event) => this.#press(event));
    }

    open() {
        if (!this.#sheet.open) this.#sheet.showModal();
    }

    #press(event) {
        if (event.defaultPrevented || event.altKey || document.querySelector("dialog[open]"))
            return;
        const control = event.ctrlKey || event.metaKey;
        const { target } = event;
        if (!(target instanceof Element)) return;
        if (target.matches(WRITTEN)) {
            if (event.key === "Escape") target.blur();
            return;
        }
        if ([" ", "Enter"].includes(event.key) && target.closest(PRESSED)) return;
        if (event.key.startsWith("Arrow") && target.closest(MOVED)) return;
        const letter = event.key.length === 1 && event.key !== " ";
        if (letter && !control && !this.#single && event.key !== "?") return;
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        // Signs such as `?` need Shift on some keyboards and not on others.
        const shifted = event.shiftKey && (key.length > 1 || /[a-z]/.test(key));
        const name = (control ? "Ctrl+" : "") + (shifted ? "Shift+" : "") + key;
        const action = this.#actions.get(name);
        if (!action || action(event) === false) return;
        event.preventDefault();
    }

    #makeSheet(sections) {
        const single = make("input", {
            type: "checkbox",
            id: "single-keys",
            ".checked": this.#single,
        });
        single.addEventListener("change", () => {
            this.#single = single.checked;
            remember(KEY, single.checked ? null : "off");
        });
        const sheet = make(
            "dialog",
            { id: "sheet", "aria-labelledby": "sheet-title" },
            make(
                "div",
                { class: "dialog-head" },
                make("h2", { id: "sheet-title" }, "Keys and gestures"),
                button({
                    name: "Close",
                    symbol: "x",
                    className: "button button-quiet",
                    press: () => sheet.close(),
                }),
            ),
            make(
                "div",
                { class: "dialog-body" },
                make(
                    "div",
                    { class: "sheet" },
                    sections.map(([title, rows]) => section(title, rows)),
                ),
                make(
                    "p",
                    { class: "check" },
                    single,
                    make("label", { for: "single-keys" }, "Use single letters as shortcuts"),
                ),
            ),
        );
        // A press outside the sheet closes it.
        sheet.addEventListener("click", (event) => {
            if (event.target === sheet) sheet.close();
        });
        return sheet;
    }
}

function section(title, rows) {
    const list = make("dl", {});
    for (const [keys, what] of rows) {
        list.append(
            make(
                "div",
                {},
                make(
                    "dt",
                    {},
                    keys.map((key) => make("kbd", {}, written(key))),
                ),
                make("dd", {}, what),
            ),
        );
    }
    return make("section", {}, make("h3", {}, title), list);
}

const SIGNS = {
    " ": "Space",
    ArrowUp: "\u2191",
    ArrowDown: "\u2193",
    ArrowLeft: "\u2190",
    ArrowRight: "\u2192",
    Escape: "Esc",
};

function written(key) {
    return key
        .split(/(?<=.)\+/)
        .map((part) => SIGNS[part] ?? (part.length === 1 ? part.toUpperCase() : part))
        .join("+");
}
