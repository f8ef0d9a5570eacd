// Which part of the plane is seen. Cells are squares; positions on the screen are device pixels
// of the canvas, positions on the grid are cells as fractions, y before x.

const LARGEST_CELL = 96;
// How much smaller the whole grid may be drawn so that nothing lies above it.
const WORTH = 0.72;

export class Camera {
    height = 1;
    width = 1;
    flip = false;
    screen = [1, 1];
    /** Device pixels in a CSS pixel. */
    density = 1;
    /** Device pixels in a cell. */
    scale = 1;
    centre = [0.5, 0.5];
    /**
     * Places for the whole grid, as top, left, bottom, right in device pixels: first those that
     * nothing covers, last the one that is taken where they are too small.
     */
    areas = [[0, 0, 1, 1]];
    /** Whether the whole grid is shown; it then stays so when the window changes. */
    fitted = true;

    setGrid(height, width, flip) {
        const same = height === this.height && width === this.width && flip === this.flip;
        Object.assign(this, { height, width, flip });
        if (!same) this.fit();
    }

    setScreen(height, width, density, areas) {
        this.screen = [height, width];
        this.density = density;
        this.areas = areas;
        if (this.fitted) this.fit();
        else this.#keepInside();
    }

    /** The best area for the whole grid, and the scale in it. */
    #bestArea() {
        const found = this.areas.map((area) => {
            const [top, left, bottom, right] = area;
            const scale = Math.min((bottom - top) / this.height, (right - left) / this.width);
            return { area, scale: Math.max(scale, 1e-6) };
        });
        const last = found.pop();
        const free = found.sort((a, b) => b.scale - a.scale)[0];
        const best = free && free.scale >= WORTH * last.scale ? free : last;
        // Cells of equal size look calmer than a picture that is a little larger.
        if (best.scale >= 4) best.scale = Math.floor(best.scale);
        best.scale = Math.min(best.scale, LARGEST_CELL * this.density);
        return best;
    }

    fit() {
        const { scale, area } = this.#bestArea();
        this.scale = scale;
        const offY = (area[0] + area[2] - this.screen[0]) / 2 / scale;
        const offX = (area[1] + area[3] - this.screen[1]) / 2 / scale;
        this.centre = [this.height / 2 - (this.flip ? -offY : offY), this.width / 2 - offX];
        this.fitted = true;
    }

    /** Zooms so that the cell at a place of the screen stays there. */
    zoomAt(py, px, factor) {
        const [y, x] = this.toCell(py, px);
        const least = this.#bestArea().scale / 2;
        const most = Math.max(LARGEST_CELL * this.density, least);
        this.scale = Math.min(most, Math.max(least, this.scale * factor));
        this.fitted = false;
        const [nowY, nowX] = this.toCell(py, px);
        this.centre = [this.centre[0] + y - nowY, this.centre[1] + x - nowX];
        this.#keepInside();
    }

    panBy(dy, dx) {
        const sign = this.flip ? -1 : 1;
        this.centre = [
            this.centre[0] - (sign * dy) / this.scale,
            this.centre[1] - dx / this.scale,
        ];
        this.fitted = false;
        this.#keepInside();
    }

    /** Shows a region as large as it fits. */
    show([y0, x0, y1, x1]) {
        if (!(y1 > y0 && x1 > x0)) return;
        this.centre = [(y0 + y1) / 2, (x0 + x1) / 2];
        this.scale = Math.min(
            LARGEST_CELL * this.density,
            this.screen[0] / (y1 - y0),
            this.screen[1] / (x1 - x0),
        );
        this.fitted = false;
        this.#keepInside();
    }

    #keepInside() {
        this.centre = [
            Math.min(this.height, Math.max(0, this.centre[0])),
            Math.min(this.width, Math.max(0, this.centre[1])),
        ];
    }

    toScreen(y, x) {
        const down = (this.flip ? -1 : 1) * (y - this.centre[0]) * this.scale;
        return [
            this.screen[0] / 2 + down,
            this.screen[1] / 2 + (x - this.centre[1]) * this.scale,
        ];
    }

    toCell(py, px) {
        const down = (py - this.screen[0] / 2) / this.scale;
        return [
            this.centre[0] + (this.flip ? -down : down),
            this.centre[1] + (px - this.screen[1] / 2) / this.scale,
        ];
    }

    /** The cells that are seen, as y0, x0, y1, x1; they may lie outside the grid. */
    region() {
        const [top, left] = this.toCell(0, 0);
        const [bottom, right] = this.toCell(...this.screen);
        return [Math.min(top, bottom), left, Math.max(top, bottom), right];
    }

    /** Where a region lies on the screen, on whole pixels. */
    place([y0, x0, y1, x1]) {
        const [ya, left] = this.toScreen(y0, x0);
        const [yb, right] = this.toScreen(y1, x1);
        const x = Math.round(left);
        const y = Math.round(Math.min(ya, yb));
        return {
            x,
            y,
            width: Math.round(right) - x,
            height: Math.round(Math.max(ya, yb)) - y,
        };
    }

    /** CSS pixels in a cell. */
    get cell() {
        return this.scale / this.density;
    }
}
