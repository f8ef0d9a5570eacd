// The group "Share": a link and a command that lead to what is seen now. What the server keeps
// is in the address, what only this viewer chose is behind its `#`.

import { button, make } from "/web/dom.js";
import { notice } from "/web/notice.js";
import { group } from "./panel.js";
import { on, state } from "./state.js";

export class Share {
    #stage;
    #command = make("code", { class: "command", tabindex: "0" });

    constructor(stage) {
        this.#stage = stage;
        on("status", () => this.#show());
        on("hello", () => this.#show());
    }

    part() {
        return group(
            "Share",
            { open: false },
            make("p", { class: "hint" }, "The command starts a run with the current settings:"),
            this.#command,
            make(
                "div",
                { class: "buttons" },
                button({
                    name: "Copy the link (Y)",
                    text: "Copy link",
                    symbol: "link",
                    press: () => this.copyLink(),
                }),
                button({
                    name: "Copy the command (U)",
                    text: "Copy command",
                    symbol: "terminal",
                    press: () => this.copyCommand(),
                }),
            ),
        );
    }

    get command() {
        return state.status?.command ?? state.hello?.command ?? "";
    }

    get link() {
        const path = state.status?.link ?? state.hello?.link ?? location.pathname;
        const mark = this.#mark();
        return new URL(path, location.href).href.split("#")[0] + (mark ? `#${mark}` : "");
    }

    copyLink() {
        return copy(this.link, `Link copied.${painted()}`);
    }

    copyCommand() {
        return copy(this.command, `Command copied.${painted()}`);
    }

    #show() {
        if (this.#command.textContent !== this.command)
            this.#command.textContent = this.command;
    }

    /** What this viewer chose, where it is not what everyone sees anyway. */
    #mark() {
        const parts = new URLSearchParams();
        const { hello, view, colours, range, axis, slice, volume, arrows } = state;
        if (!hello) return "";
        if (view !== hello.view) parts.set("view", view);
        if (colours !== "auto") parts.set("colours", colours);
        if (range)
            parts.set("range", range.map((value) => Number(value.toPrecision(6))).join(","));
        if (state.size.length === 3) {
            if (volume) parts.set("volume", "1");
            parts.set("axis", axis);
            parts.set("slice", slice);
        }
        if (arrows) parts.set("arrows", arrows);
        const { camera } = this.#stage;
        if (!camera.fitted)
            parts.set(
                "region",
                camera
                    .region()
                    .map((part) => part.toFixed(1))
                    .join(","),
            );
        return parts.toString().replaceAll("%2C", ",");
    }
}

/** What a link says behind its `#`, as far as it fits the model. */
export function choicesOf(mark, hello) {
    const parts = new URLSearchParams(mark.replace(/^#/, ""));
    const numbers = (name, count) => {
        const list = (parts.get(name) ?? "").split(",").map(Number);
        return parts.has(name) && list.length === count && list.every(Number.isFinite)
            ? list
            : null;
    };
    const found = {};
    if (hello.views.includes(parts.get("view"))) found.view = parts.get("view");
    // Numbers that are colours have a map too, which is nobody's choice.
    const colours = parts.get("colours");
    if (colours !== "coded" && Object.hasOwn(hello.maps, colours)) found.colours = colours;
    const range = numbers("range", 2);
    if (range && range[0] < range[1]) found.range = range;
    const [axis] = numbers("axis", 1) ?? [];
    if (hello.size.length === 3 && [0, 1, 2].includes(axis)) {
        const [slice] = numbers("slice", 1) ?? [0];
        found.axis = axis;
        found.slice = Math.min(hello.size[axis] - 1, Math.max(0, Math.round(slice)));
        found.volume = parts.get("volume") === "1";
    }
    const [arrows] = numbers("arrows", 1) ?? [0];
    if (hello.flow && hello.size.length === 2 && arrows > 0)
        found.arrows = Math.min(64, Math.round(arrows));
    return { found, region: numbers("region", 4) };
}

/** A note on what the copied text cannot reproduce. */
function painted() {
    return state.status?.painted ? " Painted cells are not included: save a checkpoint." : "";
}

/** Copies a text. Pages that were not opened over loopback or https have no clipboard. */
async function copy(text, done) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const area = make("textarea", { class: "unseen", "aria-label": "Copied text" });
        area.value = text;
        document.body.append(area);
        area.select();
        const copied = document.execCommand("copy");
        area.remove();
        if (!copied) {
            notice(`The browser does not allow copying. The text is: ${text}`, { error: true });
            return;
        }
    }
    notice(done);
}
