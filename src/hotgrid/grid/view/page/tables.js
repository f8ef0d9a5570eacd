// Colour tables: the colour in which each byte of a frame is drawn.

import { CODED, SIGNED, SOLID, STATES } from "./frame.js";

// Grey and a little blue: in no colour map, and visible on both grounds.
const SOLID_COLOUR = [124, 133, 146];
const TITLES = {
    auto: "Automatic",
    inferno: "Inferno",
    viridis: "Viridis",
    cividis: "Cividis",
    magma: "Magma",
    plasma: "Plasma",
    turbo: "Turbo",
    gray: "Grey",
    binary: "White to black",
    RdBu_r: "Blue to red, zero is white",
    coolwarm: "Blue to red, zero is grey",
};

export class Tables {
    #maps = new Map();
    #made = new Map();

    /** `maps` holds base64 of 256 times red, green and blue for each name. */
    constructor(maps) {
        for (const [name, text] of Object.entries(maps)) {
            this.#maps.set(
                name,
                Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)),
            );
        }
    }

    /** Pairs of name and title for a list. */
    choices() {
        const names = [...this.#maps.keys()].filter((name) => name !== "coded");
        return ["auto", ...names].map((name) => [name, TITLES[name] ?? name]);
    }

    /**
     * 256 colours as red, green, blue and opacity. "auto" takes the map that suits the kind of
     * numbers; two states are drawn light on dark where the page is dark, so that an empty grid
     * does not glare. Numbers that are colours have their own.
     */
    table(name, colours, dark) {
        const free = this.#maps.has(name) && colours !== CODED;
        const known = free ? name : this.#automatic(colours);
        const turned = name === "auto" && known === "binary" && dark;
        const key = `${known} ${turned}`;
        if (!this.#made.has(key)) this.#made.set(key, fill(this.#maps.get(known), turned));
        return this.#made.get(key);
    }

    #automatic(colours) {
        const wanted =
            { [CODED]: "coded", [STATES]: "binary", [SIGNED]: "RdBu_r" }[colours] ?? "inferno";
        return this.#maps.has(wanted) ? wanted : this.#maps.keys().next().value;
    }
}

/** Bytes 0 to 254 span the map; 255 is solid. */
function fill(map, turned) {
    const bytes = new Uint8ClampedArray(256 * 4);
    for (let byte = 0; byte < 256; byte += 1) {
        const place = Math.round(((turned ? SOLID - 1 - byte : byte) * 255) / (SOLID - 1));
        const colour = byte === SOLID ? SOLID_COLOUR : map.subarray(3 * place, 3 * place + 3);
        bytes.set(colour, 4 * byte);
        bytes[4 * byte + 3] = 255;
    }
    return { bytes, words: new Uint32Array(bytes.buffer) };
}

/** A colour of a table for style sheets and canvases. */
export function colourOf(table, byte) {
    return `rgb(${table.bytes.subarray(4 * byte, 4 * byte + 3).join(" ")})`;
}
