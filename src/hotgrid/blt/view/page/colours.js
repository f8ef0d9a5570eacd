// Colours of points: one for each name, or a ramp over a range.

import { titled } from "/web/text.js";

// Distinguishable on a light and on a dark background.
const NAMED = [
    "#2f7de1",
    "#d9690f",
    "#1f9b57",
    "#a659c9",
    "#d1495b",
    "#1b9aaa",
    "#9a8212",
    "#7a6ff0",
    "#c2529a",
    "#6f8a3a",
];
const RAMP = ["#2b59d8", "#7d4fd0", "#c2478f", "#dd5f3c", "#d99a16"];

const ZONES = { instruction: "Instructions", content: "Content", qa: "Questions and answers" };

const parts = (hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
const STOPS = RAMP.map(parts);

/** The colour at a share of the ramp, from 0 to 1. */
export function ramp(share) {
    const place = Math.min(1, Math.max(0, share)) * (STOPS.length - 1);
    const at = Math.min(STOPS.length - 2, Math.floor(place));
    return STOPS[at].map((low, i) => low + (STOPS[at + 1][i] - low) * (place - at));
}

/** The ramp for style sheets. */
export const GRADIENT = `linear-gradient(90deg, ${RAMP.join(", ")})`;

export function named(number) {
    return NAMED[number % NAMED.length];
}

/** Ways to colour points: the values they go by, and the names or the ends of the range. */
export function ways(about, points) {
    const counted = (list) =>
        list.map(({ name, count }, number) => ({
            text: ZONES[name] ?? titled(name),
            count,
            colour: named(number),
        }));
    return {
        zone: { text: "Zone", values: points.zones, names: counted(about.zones) },
        shell: { text: "Shell", values: points.shells, range: [0, about.shells - 1] },
        entropy: { text: "Entropy", values: points.entropies, range: about.entropy },
        density: { text: "Density", values: points.densities, range: about.density },
        modality: { text: "Kind", values: points.kinds, names: counted(about.modalities) },
    };
}

/** Four bytes for each point. */
export function coloured({ values, names, range }) {
    const found = new Uint8Array(4 * values.length);
    const table = names?.map(({ colour }) => parts(colour));
    const [low, high] = range ?? [0, 1];
    const span = high > low ? high - low : 1;
    for (let at = 0; at < values.length; at += 1) {
        found.set(table ? table[values[at]] : ramp((values[at] - low) / span), 4 * at);
        found[4 * at + 3] = 255;
    }
    return found;
}
