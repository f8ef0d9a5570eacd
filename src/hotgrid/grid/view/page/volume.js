// The whole box at once: a 3-D texture, through which one ray is sent for each pixel.

import { SLOPE, Orbit, halfEdges } from "/web/orbit.js";
import { program, texture } from "/web/program.js";
import { SIGNED, SOLID, STATES } from "./frame.js";
import { FRAGMENT, VERTEX } from "./rays.js";
import { state } from "./state.js";

export class Volume {
    orbit = new Orbit(state.size);
    /** How much is hidden by what lies before it, as the reader sets it. */
    density = 1;
    #canvas;
    #gl;
    #parts;
    #software;
    #frame = null;
    #table = null;
    #flip = false;

    constructor(canvas, software, redraw) {
        this.#canvas = canvas;
        this.#software = software;
        this.#gl = canvas.getContext("webgl2", { antialias: false, depth: false });
        if (!this.#gl)
            throw new Error("The volume needs WebGL2, which this browser does not support.");
        canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
        canvas.addEventListener("webglcontextrestored", () => {
            this.#prepare();
            if (this.#frame) this.setFrame(this.#frame, this.#table, this.#flip);
            redraw();
        });
        this.#prepare();
    }

    #prepare() {
        const gl = this.#gl;
        const { made, uniforms } = program(gl, VERTEX, FRAGMENT);
        gl.useProgram(made);
        gl.activeTexture(gl.TEXTURE1);
        texture(gl, gl.TEXTURE_2D, gl.LINEAR);
        gl.activeTexture(gl.TEXTURE0);
        texture(gl, gl.TEXTURE_3D, gl.LINEAR);
        gl.uniform1i(uniforms.values, 0);
        gl.uniform1i(uniforms.colours, 1);
        gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
        this.#parts = { uniforms, table: null };
    }

    setFrame(frame, table, flip) {
        const gl = this.#gl;
        this.#frame = frame;
        this.#table = table;
        this.#flip = flip;
        const { depth, height, width, values } = frame;
        const pairs = new Uint8Array(2 * values.length);
        for (let index = 0; index < values.length; index += 1) {
            const solid = values[index] === SOLID;
            pairs[2 * index] = solid ? this.#rest(frame) * 254 : values[index];
            pairs[2 * index + 1] = solid ? 255 : 0;
        }
        gl.texImage3D(
            gl.TEXTURE_3D,
            0,
            gl.RG8,
            width,
            height,
            depth,
            0,
            gl.RG,
            gl.UNSIGNED_BYTE,
            pairs,
        );
        if (this.#parts.table === table) return;
        gl.activeTexture(gl.TEXTURE1);
        gl.texImage2D(
            gl.TEXTURE_2D,
            0,
            gl.RGBA8,
            256,
            1,
            0,
            gl.RGBA,
            gl.UNSIGNED_BYTE,
            new Uint8Array(table.bytes.buffer),
        );
        gl.activeTexture(gl.TEXTURE0);
        this.#parts.table = table;
    }

    /** The value that hides nothing, between 0 and 1. */
    #rest({ colours, low, high }) {
        if (colours !== SIGNED) return 0;
        return Math.min(1, Math.max(0, -low / (high - low || 1)));
    }

    draw(width, height) {
        const gl = this.#gl;
        // In software a ray costs so much that a coarse picture is the better one.
        const coarse = this.#frame?.colours === STATES ? 384 : 256;
        const most = this.#software ? coarse : 1600;
        const shrink = Math.min(1.5, most / Math.max(width, height));
        const size = [
            Math.max(1, Math.round(width * shrink)),
            Math.max(1, Math.round(height * shrink)),
        ];
        if (this.#canvas.width !== size[0] || this.#canvas.height !== size[1]) {
            [this.#canvas.width, this.#canvas.height] = size;
        }
        gl.viewport(0, 0, ...size);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        if (!this.#frame) return;
        const { uniforms } = this.#parts;
        const half = halfEdges(state.size);
        for (const [name, vector] of Object.entries(this.orbit.frame())) {
            gl.uniform3fv(uniforms[name], vector);
        }
        const { colours, width: w, height: h, depth: d } = this.#frame;
        gl.uniform3fv(uniforms.halfEdges, half);
        gl.uniform1f(uniforms.reach, 1.5 / Math.max(w, h, d));
        const short = Math.min(width, height);
        gl.uniform2f(uniforms.slope, (SLOPE * width) / short, (SLOPE * height) / short);
        gl.uniform1f(uniforms.rest, this.#rest(this.#frame));
        gl.uniform1f(uniforms.density, this.density * (colours === STATES ? 1 : 2));
        gl.uniform1i(uniforms.steps, this.#software ? 72 : 256);
        const cells = colours === STATES;
        gl.uniform1i(uniforms.cells, cells ? 1 : 0);
        gl.uniform1i(uniforms.flip, this.#flip ? 1 : 0);
        gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
}
