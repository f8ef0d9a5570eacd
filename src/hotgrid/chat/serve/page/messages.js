// Messages on the page. What a model writes is text: no part of it becomes markup.

import { button, make } from "/web/dom.js";
import { notice } from "/web/notice.js";

const NAMES = { user: "You", assistant: "Model", system: "System" };

/** The nodes of a text: code between fences stands apart, all else as it is written. */
function nodes(text) {
    return text.split(/^```[^\n]*\n?/m).map((part, index) =>
        index % 2
            ? make("pre", { tabindex: "0" }, make("code", {}, part.replace(/\n$/, "")))
            : make("span", { class: "plain" }, part),
    );
}

async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        notice("Copied");
    } catch {
        notice("The browser does not allow copying here", { error: true });
    }
}

/** One message: `write` replaces its text, `note` says something below it. */
export class MessageView {
    constructor(list, role, text = "") {
        this.body = make("div", { class: "body" });
        this.foot = make("div", { class: "foot" });
        this.copy = button({
            name: `Copy this ${role === "user" ? "message" : "reply"}`,
            text: "Copy",
            className: "button button-quiet button-small",
            press: () => copy(this.text),
        });
        this.item = make(
            "li",
            { class: `message ${role}`, data: { role } },
            make("span", { class: "who" }, NAMES[role]),
            this.body,
            this.foot,
        );
        this.foot.append(this.copy);
        list.append(this.item);
        this.write(text);
    }

    write(text) {
        this.text = text;
        this.body.replaceChildren(...nodes(text));
    }

    busy(is) {
        this.item.setAttribute("aria-busy", String(is));
    }

    note(text, error = false) {
        this.foot.append(make("span", { class: error ? "hint wrong" : "hint" }, text));
    }

    remove() {
        this.item.remove();
    }
}
