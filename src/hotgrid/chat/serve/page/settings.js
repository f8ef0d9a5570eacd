// How replies are made: kept in this browser, except for the key.

import { field, make } from "/web/dom.js";
import { remember, remembered } from "/web/theme.js";

const KEY = "hotgrid.chat.settings";
const NUMBERS = {
    temperature: { text: "Temperature", value: 0.8, min: 0, max: 2, step: 0.05, note: "0 always takes the likeliest token." },
    top_p: { text: "Top p", value: 1, min: 0.05, max: 1, step: 0.05, note: "The likeliest tokens that together have this probability." },
    top_k: { text: "Top k", value: "", min: 1, max: 1000, step: 1, note: "So many likeliest tokens; empty for all." },
    repetition_penalty: { text: "Repetition penalty", value: 1, min: 1, max: 2, step: 0.05, note: "Above 1, tokens that were there are less likely." },
    max_tokens: { text: "Longest reply, in tokens", value: 512, min: 1, max: 100000, step: 1 },
    seed: { text: "Seed", value: "", min: 0, max: 2 ** 53 - 1, step: 1, note: "The same seed gives the same reply; empty for another each time." },
};

function stored() {
    try {
        const found = JSON.parse(remembered(KEY) ?? "{}");
        return found && typeof found === "object" ? found : {};
    } catch {
        return {};
    }
}

export class Settings {
    constructor(place, changed) {
        const before = stored();
        this.inputs = {};
        this.system = make("textarea", { rows: 3, ".value": String(before.system ?? "") });
        place.append(field("System prompt", this.system, { note: "Said to the model before the conversation." }));
        for (const [name, { text, value, note, ...range }] of Object.entries(NUMBERS)) {
            const input = make("input", { type: "number", ...range, name });
            input.value = before[name] ?? value;
            this.inputs[name] = input;
            place.append(field(text, input, { note }));
        }
        this.key = make("input", { type: "password", autocomplete: "off", name: "key" });
        place.append(field("Key of the server", this.key, { note: "Needed only if the server was started with one. It is not kept." }));
        place.addEventListener("change", (event) => {
            if (event.target !== this.key) this.save();
            changed(event.target === this.key);
        });
    }

    /** Fields of a request; those that are empty or wrong are left out. */
    get values() {
        const found = {};
        for (const [name, input] of Object.entries(this.inputs)) {
            if (input.value !== "" && input.validity.valid) found[name] = input.valueAsNumber;
        }
        return found;
    }

    save() {
        remember(KEY, JSON.stringify({ ...this.values, system: this.system.value }));
    }
}
