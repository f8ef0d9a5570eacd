// Short messages at the edge of the page: saved, copied, refused.

import { button, make, spelled } from "./dom.js";

const SHOWN = 5000;
// Errors stay longer: they have to be read, not only noticed.
const SHOWN_ERROR = 10000;

// Both regions are there from the start, since a screen reader reads only what is added to one
// that it already knows.
const shelf = make("div", { class: "notices" });
const polite = make("div", { role: "status" });
const urgent = make("div", { role: "alert" });
shelf.append(polite, urgent);
document.body.append(shelf);

/** Shows a message; `link` is `{href, text}`. An equal one that is shown is replaced. */
export function notice(text, { error = false, link = null } = {}) {
    const region = error ? urgent : polite;
    for (const other of region.children) if (other.dataset.text === text) other.remove();
    const box = make(
        "div",
        { class: error ? "notice notice-error" : "notice", data: { text } },
        make("span", {}, spelled(text)),
        link
            ? make("a", { href: link.href, target: "_blank", rel: "noopener" }, link.text)
            : null,
        button({
            name: "Close this message",
            symbol: "x",
            className: "button button-quiet button-small",
            press: () => box.remove(),
        }),
    );
    region.append(box);
    setTimeout(() => box.remove(), error ? SHOWN_ERROR : SHOWN);
    return box;
}

/** For promises of actions that the reader started: what went wrong is said, not thrown. */
export function complain(error) {
    notice(error.message, { error: true });
}
