// The edges of the box around a volume, with the names of its axes.

import { halfEdges, project } from "/web/orbit.js";
import { state } from "./state.js";

/** A layer that draws the box of the stage's volume. */
export function boxEdges(stage) {
    return (context) => {
        if (!state.volume || !stage.volume) return;
        const { density, screen } = stage.camera;
        const [height, width] = screen.map((pixels) => pixels / density);
        const half = halfEdges(state.size);
        const place = (signs) =>
            project(
                stage.volume.orbit,
                signs.map((sign, axis) => sign * half[axis]),
                width,
                height,
            );
        const ink = getComputedStyle(stage.element).color;
        context.strokeStyle = ink;
        context.fillStyle = ink;
        context.lineWidth = 1;
        context.globalAlpha = 0.55;
        for (let axis = 0; axis < 3; axis += 1) {
            for (const [p, q] of [
                [-1, -1],
                [-1, 1],
                [1, -1],
                [1, 1],
            ]) {
                const ends = [-1, 1].map((sign) => {
                    const signs = [p, q];
                    signs.splice(axis, 0, sign);
                    return place(signs);
                });
                if (ends.includes(null)) continue;
                context.beginPath();
                context.moveTo(...ends[0]);
                context.lineTo(...ends[1]);
                context.stroke();
            }
        }
        context.globalAlpha = 1;
        context.font = "12px system-ui, sans-serif";
        context.textAlign = "center";
        context.textBaseline = "middle";
        // Rows count downwards unless the model says that y points up.
        const origin = [-1, state.hello.y_up ? -1 : 1, -1];
        for (const [axis, name] of ["x", "y", "z"].entries()) {
            const signs = [...origin];
            signs[axis] = 0;
            const point = place(signs.map((sign) => sign * 1.12));
            if (point) context.fillText(name, ...point);
        }
    };
}
