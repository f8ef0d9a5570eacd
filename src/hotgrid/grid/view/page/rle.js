// Patterns as run lengths, the way collections of Life patterns are written: `b` is a dead
// cell, `o` a living one, `$` ends a row, `!` the pattern; a number repeats what follows.

const LARGEST = 4096;

export const PRESETS = [
    ["Glider", "bob$2bo$3o!"],
    ["R-pentomino", "b2o$2ob$bo!"],
    [
        "Gosper glider gun",
        "24bo$22bobo$12b2o6b2o12b2o$11bo3bo4b2o12b2o$2o8bo5bo3b2o$2o8bo3bob2o4bobo$10bo5bo7bo$11bo3bo$12b2o!",
    ],
    ["Lightweight spaceship", "bo2bo$o4b$o3bo$4o!"],
    ["Acorn", "bo5b$3bo3b$2o2b3o!"],
    [
        "Pulsar",
        "2b3o3b3o2$o4bobo4bo$o4bobo4bo$o4bobo4bo$2b3o3b3o2$2b3o3b3o$o4bobo4bo$o4bobo4bo$o4bobo4bo2$2b3o3b3o!",
    ],
];

/** The living cells as [y, x] and their height and width; an error says what is wrong. */
export function parseRle(text) {
    const body = text
        .split("\n")
        .filter((line) => !line.startsWith("#") && !/^\s*x\s*=/.test(line))
        .join("");
    const cells = [];
    let [y, x, count, width] = [0, 0, "", 0];
    for (const letter of body) {
        const times = count === "" ? 1 : Number(count);
        if (letter >= "0" && letter <= "9") {
            count += letter;
            continue;
        }
        if (/\s/.test(letter)) continue;
        if (letter === "!") break;
        if (times > LARGEST) throw new Error(`a run of ${times} cells is too long`);
        if (letter === "$") [y, x] = [y + times, 0];
        else if (letter === "b" || letter === ".") x += times;
        else if (letter === "o" || letter === "A") {
            for (let index = 0; index < times; index += 1) cells.push([y, x + index]);
            x += times;
        } else throw new Error(`\u201c${letter}\u201d is not b, o, $, ! or a number`);
        width = Math.max(width, x);
        count = "";
        if (Math.max(x, y) > LARGEST) throw new Error(`larger than ${LARGEST} cells`);
    }
    if (cells.length === 0) throw new Error("it has no living cells");
    return { cells, height: Math.max(...cells.map(([row]) => row)) + 1, width };
}

/** Run lengths of living cells. */
export function writeRle({ cells }) {
    const sorted = [...cells].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const parts = [];
    let [y, x] = [0, 0];
    for (const [row, column] of sorted) {
        if (row > y) {
            parts.push([row - y, "$"]);
            [y, x] = [row, 0];
        }
        if (column > x) parts.push([column - x, "b"]);
        const last = parts.at(-1);
        if (last?.[1] === "o" && column === x) last[0] += 1;
        else parts.push([1, "o"]);
        x = column + 1;
    }
    return `${parts.map(([count, letter]) => (count > 1 ? count : "") + letter).join("")}!`;
}

/** The pattern turned by a quarter, clockwise. */
export function turned({ cells, height, width }) {
    return { cells: cells.map(([y, x]) => [x, height - 1 - y]), height: width, width: height };
}

/** The pattern seen in a mirror. */
export function mirrored({ cells, height, width }) {
    return { cells: cells.map(([y, x]) => [y, width - 1 - x]), height, width };
}
