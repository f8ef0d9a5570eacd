// A view of a box from outside: turned by drags, zoomed by the wheel.

const STEEPEST = 1.45;

export class Orbit {
    turn = -0.6;
    tilt = 0.45;
    #whole;

    /**
     * `size` is that of the box, in cells: from the first distance all of it is seen.
     * `whole` is another first distance, in edges of the box.
     */
    constructor(size, whole = 2.6 * Math.hypot(...halfEdges(size))) {
        this.#whole = whole;
        this.distance = this.#whole;
    }

    turnBy(dx, dy) {
        this.turn -= dx * 0.008;
        this.tilt = Math.min(STEEPEST, Math.max(-STEEPEST, this.tilt + dy * 0.008));
    }

    zoomBy(factor) {
        const least = 0.4 * this.#whole;
        this.distance = Math.min(3 * this.#whole, Math.max(least, this.distance / factor));
    }

    home() {
        Object.assign(this, { turn: -0.6, tilt: 0.45, distance: this.#whole });
    }

    /** Where the eye is, and the directions to the right, up and ahead of it. */
    frame() {
        const [st, ct, sp, cp] = [
            Math.sin(this.turn),
            Math.cos(this.turn),
            Math.sin(this.tilt),
            Math.cos(this.tilt),
        ];
        const ahead = [-st * cp, -sp, -ct * cp];
        return {
            eye: ahead.map((part) => -part * this.distance),
            right: [ct, 0, -st],
            up: [-st * sp, cp, -ct * sp],
            ahead,
        };
    }
}

/** The half angle of view as a slope: narrow enough that the box is hardly bent. */
export const SLOPE = 0.45;

/** Half the edges of the box along x, y, z: the longest is 0.5. `size` is z, y, x in cells. */
export function halfEdges([depth, height, width]) {
    const longest = Math.max(depth, height, width);
    return [width, height, depth].map((cells) => (0.5 * cells) / longest);
}

/** Where a point of space is on a screen of that size in pixels; null behind the eye. */
export function project(orbit, point, width, height) {
    const { eye, right, up, ahead } = orbit.frame();
    const offset = point.map((part, index) => part - eye[index]);
    const along = (direction) => direction.reduce((sum, part, i) => sum + part * offset[i], 0);
    const depth = along(ahead);
    if (depth < 0.05) return null;
    const scale = Math.min(width, height) / 2 / SLOPE / depth;
    return [width / 2 + along(right) * scale, height / 2 - along(up) * scale];
}
