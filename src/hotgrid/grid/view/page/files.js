// The group "Save": pictures, films and checkpoints, by name, in the server's folder.

import { button, field, make } from "/web/dom.js";
import { icon } from "/web/icons.js";
import { complain, notice } from "/web/notice.js";
import { group } from "./panel.js";
import { on, state } from "./state.js";

const WHAT = { picture: "Picture", checkpoint: "Checkpoint", film: "Film" };

export class Files {
    #live;
    #name = make("input", {
        type: "text",
        id: "save-name",
        maxlength: 64,
        autocomplete: "off",
        spellcheck: "false",
    });
    #saved = make("select", { id: "saved" });
    #record;
    #load;

    constructor(live) {
        this.#live = live;
        on("saved", (message) => this.#tellSaved(message));
        on("status", () => this.#showRecording());
    }

    part(hello) {
        this.#name.value ||= hello.model;
        this.#record = button({
            name: "Record a film (M)",
            text: "Film",
            symbol: "video",
            press: () => this.record(),
        });
        this.#load = button({
            name: "Load this checkpoint",
            text: "Load",
            symbol: "folder-open",
            press: () => this.load(),
        });
        this.list(hello.saved);
        const load = field("Checkpoint", this.#saved, { inline: true });
        load.append(make("div", { class: "with" }, this.#saved, this.#load));
        return group(
            "Save",
            { open: false },
            field("Name", this.#name, { inline: true }),
            make(
                "div",
                { class: "buttons" },
                button({
                    name: "Save a picture (S)",
                    text: "Picture",
                    symbol: "camera",
                    press: () => this.save("picture"),
                }),
                this.#record,
                button({
                    name: "Save a checkpoint (K)",
                    text: "Checkpoint",
                    symbol: "save",
                    press: () => this.save("checkpoint"),
                }),
            ),
            load,
        );
    }

    /** Which checkpoints can be loaded. */
    list(names) {
        const now = this.#saved.value;
        const unique = [...new Set(names.map(checkpointOf).filter(Boolean))];
        this.#saved.replaceChildren(...unique.map((name) => new Option(name, name)));
        if (unique.length === 0) this.#saved.append(new Option("None yet", ""));
        if (unique.includes(now)) this.#saved.value = now;
        if (this.#load) this.#load.disabled = unique.length === 0;
        state.saved = unique;
    }

    save(what) {
        const name = this.#name.value.trim() || state.model;
        this.#live.ask({ type: "save", what, name, ...chosenColours() }).catch(complain);
    }

    load() {
        const name = this.#saved.value;
        if (!name) return;
        this.#live
            .ask({ type: "load", name })
            .then(() => notice(`Loaded ${name}.`))
            .catch(complain);
    }

    record() {
        const name = this.#name.value.trim() || undefined;
        const on = !state.recording;
        this.#live.ask({ type: "record", on, name, ...chosenColours() }).catch(complain);
    }

    #tellSaved({ what, name, url }) {
        notice(`${WHAT[what] ?? "File"} saved as ${name}.`, {
            link: { href: url, text: "Open" },
        });
        if (what === "checkpoint") this.list([...(state.saved ?? []), name]);
    }

    #showRecording() {
        if (!this.#record || this.#record.dataset.on === String(state.recording)) return;
        this.#record.dataset.on = String(state.recording);
        this.#record.setAttribute("aria-pressed", String(state.recording));
        this.#record.replaceChildren(icon("video"), state.recording ? "Stop" : "Film");
        document.body.classList.toggle("recording", state.recording);
    }
}

/** The colours of a picture. The server knows the rest of this viewer's view. */
function chosenColours() {
    return state.colours === "auto" ? {} : { colours: state.colours };
}

/** The name of a checkpoint without the end of its file; null for pictures and films. */
function checkpointOf(name) {
    const [, stem, end] = /^(.*?)(\.[^.]*)?$/.exec(name);
    return end === undefined || end === ".safetensors" ? stem : null;
}
