// What is drawn above the picture and belongs to it: lines between cells, and arrows.

import { state } from "./state.js";

const LINES_FROM = 8;

/** Lines between cells once a cell is large enough; every tenth is stronger. */
export function gridlines(context, camera, frame) {
    if (!frame || state.volume || camera.cell < LINES_FROM) return;
    const [y0, x0, y1, x1] = camera.region();
    const first = [Math.max(0, Math.floor(y0)), Math.max(0, Math.floor(x0))];
    const last = [
        Math.min(camera.height, Math.ceil(y1)),
        Math.min(camera.width, Math.ceil(x1)),
    ];
    const { density } = camera;
    const at = (y, x) => {
        const [py, px] = camera.toScreen(y, x);
        // Half a device pixel, so that a line is one pixel wide and not two pale ones.
        return [(Math.round(py) + 0.5) / density, (Math.round(px) + 0.5) / density];
    };
    const [top, left] = at(first[0], first[1]);
    const [bottom, right] = at(last[0], last[1]);
    context.lineWidth = 1 / density;
    for (const strong of [false, true]) {
        context.beginPath();
        for (let y = first[0]; y <= last[0]; y += 1) {
            if ((y % 10 === 0) !== strong) continue;
            const [py] = at(y, 0);
            context.moveTo(left, py);
            context.lineTo(right, py);
        }
        for (let x = first[1]; x <= last[1]; x += 1) {
            if ((x % 10 === 0) !== strong) continue;
            const [, px] = at(0, x);
            context.moveTo(px, top);
            context.lineTo(px, bottom);
        }
        // Mid grey shows on light and on dark cells alike; larger cells bear stronger lines.
        const strength = Math.min(45, 15 + camera.cell) * (strong ? 2 : 1);
        context.strokeStyle = `rgb(118 128 140 / ${strength}%)`;
        context.stroke();
    }
}

/** Arrows of a flow: the longest is as long as their distance. */
export function arrows(context, camera, frame, table) {
    if (!frame?.arrows || !state.arrows || state.volume) return;
    const { rows, columns, values } = frame.arrows;
    const [y0, x0, y1, x1] = frame.region;
    const stepY = (y1 - y0) / rows;
    const stepX = (x1 - x0) / columns;
    const reach = (0.9 * Math.min(stepY, stepX) * camera.scale) / camera.density / 127;
    const path = new Path2D();
    for (let row = 0; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1) {
            const index = 2 * (row * columns + column);
            const dy = values[index] * reach * (camera.flip ? -1 : 1);
            const dx = values[index + 1] * reach;
            if (dx * dx + dy * dy < 2) continue;
            const [py, px] = camera.toScreen(
                y0 + (row + 0.5) * stepY,
                x0 + (column + 0.5) * stepX,
            );
            addArrow(path, px / camera.density, py / camera.density, dx, dy);
        }
    }
    context.lineCap = "round";
    context.lineJoin = "round";
    // Most of a flow is near the middle of the colours: dark lines where that is light, and a
    // pale rim of the other kind for the rest.
    const [red, green, blue] = table.bytes.subarray(4 * 127);
    const light = red + 2 * green + blue > 512;
    context.strokeStyle = light ? "rgb(255 255 255 / 55%)" : "rgb(8 12 18 / 55%)";
    context.lineWidth = 3;
    context.stroke(path);
    context.strokeStyle = light ? "#1d2733" : "#ffffff";
    context.lineWidth = 1.25;
    context.stroke(path);
}

function addArrow(path, x, y, dx, dy) {
    const tipX = x + dx / 2;
    const tipY = y + dy / 2;
    const length = Math.hypot(dx, dy);
    const head = Math.min(5, 0.4 * length) / length;
    path.moveTo(x - dx / 2, y - dy / 2);
    path.lineTo(tipX, tipY);
    for (const side of [-0.6, 0.6]) {
        path.moveTo(tipX, tipY);
        path.lineTo(tipX - head * (dx + side * dy), tipY - head * (dy - side * dx));
    }
}

/** A thin frame around the grid, so that its end is seen where colours meet the ground. */
export function border(context, camera, frame) {
    if (!frame || state.volume) return;
    const { x, y, width, height } = camera.place([0, 0, camera.height, camera.width]);
    const { density } = camera;
    context.strokeStyle = "rgb(118 128 140 / 60%)";
    context.lineWidth = 1;
    context.strokeRect(
        x / density - 0.5,
        y / density - 0.5,
        width / density + 1,
        height / density + 1,
    );
}
