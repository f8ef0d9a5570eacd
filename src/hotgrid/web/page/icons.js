// Icons of Lucide 1.62 (ISC licence, see vendor/lucide-1.62.0/LICENSE): only the shapes inside
// the `svg` element, so that every icon has the same size, stroke and colour.

const SHAPES = {
    play: [
        "M5 5a2 2 0 0 1 3.008-1.728l11.997 6.998a2 2 0 0 1 .003 3.458l-12 7A2 2 0 0 1 5 19z",
    ],
    pause: [
        { tag: "rect", x: 14, y: 3, width: 5, height: 18, rx: 1 },
        { tag: "rect", x: 5, y: 3, width: 5, height: 18, rx: 1 },
    ],
    "step-forward": [
        "M10.029 4.285A2 2 0 0 0 7 6v12a2 2 0 0 0 3.029 1.715l9.997-5.998a2 2 0 0 0 .003-3.432z",
        "M3 4v16",
    ],
    "rotate-ccw": ["M3 12a9 9 0 1 0 9-9 9.75 9.75 0 0 0-6.74 2.74L3 8", "M3 3v5h5"],
    camera: [
        "M13.997 4a2 2 0 0 1 1.76 1.05l.486.9A2 2 0 0 0 18.003 7H20a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V9a2 2 0 0 1 2-2h1.997a2 2 0 0 0 1.759-1.048l.489-.904A2 2 0 0 1 10.004 4z",
        { tag: "circle", cx: 12, cy: 13, r: 3 },
    ],
    video: [
        "m16 13 5.223 3.482a.5.5 0 0 0 .777-.416V7.87a.5.5 0 0 0-.752-.432L16 10.5",
        { tag: "rect", x: 2, y: 6, width: 14, height: 12, rx: 2 },
    ],
    save: [
        "M15.2 3a2 2 0 0 1 1.4.6l3.8 3.8a2 2 0 0 1 .6 1.4V19a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2z",
        "M17 21v-7a1 1 0 0 0-1-1H8a1 1 0 0 0-1 1v7",
        "M7 3v4a1 1 0 0 0 1 1h7",
    ],
    "folder-open": [
        "m6 14 1.5-2.9A2 2 0 0 1 9.24 10H20a2 2 0 0 1 1.94 2.5l-1.54 6a2 2 0 0 1-1.95 1.5H4a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2h3.9a2 2 0 0 1 1.69.9l.81 1.2a2 2 0 0 0 1.67.9H18a2 2 0 0 1 2 2v2",
    ],
    link: [
        "M10 13a5 5 0 0 0 7.54.54l3-3a5 5 0 0 0-7.07-7.07l-1.72 1.71",
        "M14 11a5 5 0 0 0-7.54-.54l-3 3a5 5 0 0 0 7.07 7.07l1.71-1.71",
    ],
    terminal: ["M12 19h8", "m4 17 6-6-6-6"],
    keyboard: [
        "M10 8h.01",
        "M12 12h.01",
        "M14 8h.01",
        "M16 12h.01",
        "M18 8h.01",
        "M6 8h.01",
        "M7 16h10",
        "M8 12h.01",
        { tag: "rect", width: 20, height: 16, x: 2, y: 4, rx: 2 },
    ],
    "sun-moon": [
        "M12 2v2",
        "M14.837 16.385a6 6 0 1 1-7.223-7.222c.624-.147.97.66.715 1.248a4 4 0 0 0 5.26 5.259c.589-.255 1.396.09 1.248.715",
        "M16 12a4 4 0 0 0-4-4",
        "m19 5-1.256 1.256",
        "M20 12h2",
    ],
    paintbrush: [
        "m14.622 17.897-10.68-2.913",
        "M18.376 2.622a1 1 0 1 1 3.002 3.002L17.36 9.643a.5.5 0 0 0 0 .707l.944.944a2.41 2.41 0 0 1 0 3.408l-.944.944a.5.5 0 0 1-.707 0L8.354 7.348a.5.5 0 0 1 0-.707l.944-.944a2.41 2.41 0 0 1 3.408 0l.944.944a.5.5 0 0 0 .707 0z",
        "M9 8c-1.804 2.71-3.97 3.46-6.583 3.948a.507.507 0 0 0-.302.819l7.32 8.883a1 1 0 0 0 1.185.204C12.735 20.405 16 16.792 16 15",
    ],
    stamp: [
        "M14 13V8.5C14 7 15 7 15 5a3 3 0 0 0-6 0c0 2 1 2 1 3.5V13",
        "M20 15.5a2.5 2.5 0 0 0-2.5-2.5h-11A2.5 2.5 0 0 0 4 15.5V17a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1z",
        "M5 22h14",
    ],
    "undo-2": ["M9 14 4 9l5-5", "M4 9h10.5a5.5 5.5 0 0 1 5.5 5.5a5.5 5.5 0 0 1-5.5 5.5H11"],
    "redo-2": ["m15 14 5-5-5-5", "M20 9H9.5A5.5 5.5 0 0 0 4 14.5A5.5 5.5 0 0 0 9.5 20H13"],
    hand: [
        "M18 11V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2",
        "M14 10V4a2 2 0 0 0-2-2a2 2 0 0 0-2 2v2",
        "M10 10.5V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2v8",
        "M18 8a2 2 0 1 1 4 0v6a8 8 0 0 1-8 8h-2c-2.8 0-4.5-.86-5.99-2.34l-3.6-3.6a2 2 0 0 1 2.83-2.82L7 15",
    ],
    maximize: [
        "M8 3H5a2 2 0 0 0-2 2v3",
        "M21 8V5a2 2 0 0 0-2-2h-3",
        "M3 16v3a2 2 0 0 0 2 2h3",
        "M16 21h3a2 2 0 0 0 2-2v-3",
    ],
    lock: [
        { tag: "rect", width: 18, height: 11, x: 3, y: 11, rx: 2, ry: 2 },
        "M7 11V7a5 5 0 0 1 10 0v4",
    ],
    "lock-open": [
        { tag: "rect", width: 18, height: 11, x: 3, y: 11, rx: 2, ry: 2 },
        "M7 11V7a5 5 0 0 1 9.9-1",
    ],
    "grid-3x3": [
        { tag: "rect", width: 18, height: 18, x: 3, y: 3, rx: 2 },
        "M3 9h18",
        "M3 15h18",
        "M9 3v18",
        "M15 3v18",
    ],
    box: [
        "M21 8a2 2 0 0 0-1-1.73l-7-4a2 2 0 0 0-2 0l-7 4A2 2 0 0 0 3 8v8a2 2 0 0 0 1 1.73l7 4a2 2 0 0 0 2 0l7-4A2 2 0 0 0 21 16Z",
        "m3.3 7 8.7 5 8.7-5",
        "M12 22V12",
    ],
    "dice-5": [
        { tag: "rect", width: 18, height: 18, x: 3, y: 3, rx: 2, ry: 2 },
        "M16 8h.01",
        "M8 8h.01",
        "M8 16h.01",
        "M16 16h.01",
        "M12 12h.01",
    ],
    "chevron-down": ["m6 9 6 6 6-6"],
    plus: ["M5 12h14", "M12 5v14"],
    minus: ["M5 12h14"],
    x: ["M18 6 6 18", "m6 6 12 12"],
    users: [
        "M16 21v-2a4 4 0 0 0-4-4H6a4 4 0 0 0-4 4v2",
        "M16 3.128a4 4 0 0 1 0 7.744",
        "M22 21v-2a4 4 0 0 0-3-3.87",
        { tag: "circle", cx: 9, cy: 7, r: 4 },
    ],
    "layout-grid": [
        { tag: "rect", width: 7, height: 7, x: 3, y: 3, rx: 1 },
        { tag: "rect", width: 7, height: 7, x: 14, y: 3, rx: 1 },
        { tag: "rect", width: 7, height: 7, x: 14, y: 14, rx: 1 },
        { tag: "rect", width: 7, height: 7, x: 3, y: 14, rx: 1 },
    ],
    "rotate-cw": ["M21 12a9 9 0 1 1-9-9c2.52 0 4.93 1 6.74 2.74L21 8", "M21 3v5h-5"],
    wind: [
        "M12.8 19.6A2 2 0 1 0 14 16H2",
        "M17.5 8a2.5 2.5 0 1 1 2 4H2",
        "M9.8 4.4A2 2 0 1 1 11 8H2",
    ],
    "panel-right": [{ tag: "rect", width: 18, height: 18, x: 3, y: 3, rx: 2 }, "M15 3v18"],
    flag: [
        "M4 22V4a1 1 0 0 1 .4-.8A6 6 0 0 1 8 2c3 0 5 2 7.333 2q2 0 3.067-.8A1 1 0 0 1 20 4v10a1 1 0 0 1-.4.8A6 6 0 0 1 16 16c-3 0-5-2-8-2a6 6 0 0 0-4 1.528",
    ],
};

const SVG = "http://www.w3.org/2000/svg";

/** An icon as an `svg` element. It is decoration: the button around it carries the name. */
export function icon(name) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    for (const shape of SHAPES[name]) {
        const { tag = "path", ...rest } = typeof shape === "string" ? { d: shape } : shape;
        const part = document.createElementNS(SVG, tag);
        for (const [key, value] of Object.entries(rest)) part.setAttribute(key, value);
        svg.append(part);
    }
    return svg;
}

/** Puts the icon into every element below `root` that asks for one with `data-icon`. */
export function placeIcons(root = document) {
    for (const element of root.querySelectorAll("[data-icon]")) {
        element.querySelector(":scope > .icon")?.remove();
        element.prepend(icon(element.dataset.icon));
    }
}
