// Points, edges and circles of the sphere on a WebGL2 canvas.

import { SLOPE } from "/web/orbit.js";
import { program } from "/web/program.js";

const EYE = `
uniform vec3 eye, right, up, ahead;
uniform vec2 shape;
vec4 seen(vec3 place) {
    vec3 offset = place - eye;
    float depth = dot(offset, ahead);
    vec2 flat_ = vec2(dot(offset, right), dot(offset, up)) * shape;
    // Depths from 0 to 8 in equal steps.
    return vec4(flat_, (depth / 4.0 - 1.0) * depth, depth);
}`;
const POINTS = `
layout(location = 0) in vec3 place;
layout(location = 1) in vec4 colour;
layout(location = 2) in float mark;
${EYE}
uniform float size, dimmed;
uniform int chosen;
uniform vec3 accent;
uniform vec3 ground;
out vec3 shown;
void main() {
    gl_Position = seen(place);
    float lit = max(mark, 1.0 - dimmed);
    float far = clamp((gl_Position.w - length(eye)) + 0.5, 0.0, 1.0);
    shown = mix(mix(colour.rgb, ground, 0.82), mix(colour.rgb, ground, 0.5 * far), lit);
    gl_PointSize = max(2.0, size * (1.0 + 0.8 * mark * dimmed) / gl_Position.w);
    // What is found lies above the rest, and what is chosen above all.
    gl_Position.z = mix(gl_Position.z, -gl_Position.w, 0.5 * mark * dimmed);
    if (gl_VertexID == chosen) {
        shown = accent;
        gl_PointSize = max(10.0, 1.6 * gl_PointSize);
        gl_Position.z = -0.99 * gl_Position.w;
    }
}`;
const DISC = `
precision mediump float;
in vec3 shown;
out vec4 found;
void main() {
    vec2 off = gl_PointCoord - 0.5;
    if (dot(off, off) > 0.25) discard;
    found = vec4(shown, 1.0);
}`;
const LINES = `
layout(location = 0) in vec3 place;
${EYE}
void main() { gl_Position = seen(place); }`;
const PLAIN = `
precision mediump float;
uniform vec4 colour;
out vec4 found;
void main() { found = colour; }`;
const TURNS = 128;

export class PointCloud {
    dimmed = false;
    /** The number of the point that stands out; -1 for none. */
    chosen = -1;
    edges = { on: false, count: 0 };
    #gl;
    #canvas;
    #places;
    #colours = null;
    #marks;
    #pairs = null;
    #heights;

    /** `places` are x, y, z of points around the origin; `heights` those of circles. */
    constructor(canvas, places, heights) {
        this.#canvas = canvas;
        this.#places = places;
        this.#marks = new Uint8Array(places.length / 3);
        this.#heights = heights;
        this.#gl = canvas.getContext("webgl2", { antialias: true });
        if (!this.#gl) throw new Error("this page needs WebGL2, which the browser does not have");
        this.#build();
        canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
        canvas.addEventListener("webglcontextrestored", () => {
            this.#build();
            if (this.#colours) this.colour(this.#colours);
            this.mark(null, this.#marks);
            if (this.#pairs) this.join(this.#pairs);
            canvas.dispatchEvent(new Event("redraw"));
        });
    }

    get count() {
        return this.#marks.length;
    }

    #build() {
        const gl = this.#gl;
        this.points = program(gl, POINTS, DISC);
        this.lines = program(gl, LINES, PLAIN);
        this.buffers = {};
        for (const name of ["places", "colours", "marks", "pairs", "circles"]) {
            this.buffers[name] = gl.createBuffer();
        }
        this.cloud = gl.createVertexArray();
        gl.bindVertexArray(this.cloud);
        this.#attribute("places", this.#places, 0, 3, gl.FLOAT, false);
        this.#attribute("colours", new Uint8Array(4 * this.count), 1, 4, gl.UNSIGNED_BYTE, true);
        this.#attribute("marks", this.#marks, 2, 1, gl.UNSIGNED_BYTE, false);
        this.web = gl.createVertexArray();
        gl.bindVertexArray(this.web);
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.places);
        gl.enableVertexAttribArray(0);
        gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.pairs);
        this.frame = gl.createVertexArray();
        gl.bindVertexArray(this.frame);
        this.#attribute("circles", circles(this.#heights), 0, 3, gl.FLOAT, false);
        gl.bindVertexArray(null);
    }

    #attribute(name, data, at, parts, kind, normal) {
        const gl = this.#gl;
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
        gl.enableVertexAttribArray(at);
        gl.vertexAttribPointer(at, parts, kind, normal, 0, 0);
    }

    /** Four bytes for each point. */
    colour(data) {
        this.#colours = data;
        this.#fill("colours", data);
    }

    /** Lights some points and dims the others; `null` lights all. */
    mark(numbers, marks = new Uint8Array(this.count)) {
        for (const at of numbers ?? []) marks[at] = 1;
        this.#marks = marks;
        this.dimmed = marks.includes(1);
        this.#fill("marks", marks);
    }

    /** Lines between points, as pairs of their numbers. */
    join(pairs) {
        const gl = this.#gl;
        this.#pairs = pairs;
        this.edges.count = pairs.length;
        gl.bindVertexArray(this.web);
        gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, pairs, gl.STATIC_DRAW);
        gl.bindVertexArray(null);
    }

    #fill(name, data) {
        const gl = this.#gl;
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
    }

    /** Draws all for an orbit; `ground`, `line` and `edge` are colours from 0 to 1. */
    draw(orbit, { ground, line, edge }) {
        const gl = this.#gl;
        const density = devicePixelRatio || 1;
        const width = Math.max(1, Math.round(this.#canvas.clientWidth * density));
        const height = Math.max(1, Math.round(this.#canvas.clientHeight * density));
        if (this.#canvas.width !== width || this.#canvas.height !== height) {
            Object.assign(this.#canvas, { width, height });
        }
        gl.viewport(0, 0, width, height);
        gl.clearColor(...ground, 1);
        gl.enable(gl.DEPTH_TEST);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
        const least = Math.min(width, height);
        const shape = [least / width / SLOPE, least / height / SLOPE];
        this.#see(this.points, orbit, shape);
        // Fewer points are larger; none covers its neighbours when there are many.
        const size = Math.min(0.016, Math.max(0.002, 0.35 / Math.sqrt(this.count)));
        gl.uniform1f(this.points.uniforms.size, (size * least) / SLOPE);
        gl.uniform1f(this.points.uniforms.dimmed, this.dimmed ? 1 : 0);
        gl.uniform3fv(this.points.uniforms.ground, ground);
        gl.uniform3fv(this.points.uniforms.accent, edge);
        gl.uniform1i(this.points.uniforms.chosen, this.chosen);
        gl.bindVertexArray(this.cloud);
        gl.drawArrays(gl.POINTS, 0, this.count);
        this.#see(this.lines, orbit, shape);
        gl.enable(gl.BLEND);
        gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
        gl.depthMask(false);
        gl.uniform4f(this.lines.uniforms.colour, ...line, 0.9);
        gl.bindVertexArray(this.frame);
        for (let ring = 0; ring < this.#heights.length; ring += 1) {
            gl.drawArrays(gl.LINE_LOOP, ring * TURNS, TURNS);
        }
        if (this.edges.on && this.edges.count > 0) {
            gl.uniform4f(this.lines.uniforms.colour, ...edge, this.edges.count > 20000 ? 0.12 : 0.35);
            gl.bindVertexArray(this.web);
            gl.drawElements(gl.LINES, this.edges.count, gl.UNSIGNED_INT, 0);
        }
        gl.depthMask(true);
        gl.disable(gl.BLEND);
        gl.bindVertexArray(null);
    }

    #see({ made, uniforms }, orbit, shape) {
        const gl = this.#gl;
        gl.useProgram(made);
        for (const [name, vector] of Object.entries(orbit.frame())) {
            gl.uniform3fv(uniforms[name], vector);
        }
        gl.uniform2fv(uniforms.shape, shape);
    }

    /** The point under a place of the canvas, in its CSS pixels; -1 for none. */
    pick(orbit, x, y, reach = 10) {
        const { eye, right, up, ahead } = orbit.frame();
        const [wide, high] = [this.#canvas.clientWidth, this.#canvas.clientHeight];
        const scale = Math.min(wide, high) / 2 / SLOPE;
        const places = this.#places;
        let [best, least] = [-1, Infinity];
        for (let at = 0; at < this.count; at += 1) {
            if (this.dimmed && !this.#marks[at]) continue;
            const a = places[3 * at] - eye[0];
            const b = places[3 * at + 1] - eye[1];
            const c = places[3 * at + 2] - eye[2];
            const depth = a * ahead[0] + b * ahead[1] + c * ahead[2];
            if (depth < 0.05) continue;
            const dx = wide / 2 + ((a * right[0] + b * right[1] + c * right[2]) * scale) / depth - x;
            if (dx > reach || dx < -reach) continue;
            const dy = high / 2 - ((a * up[0] + b * up[1] + c * up[2]) * scale) / depth - y;
            const far = dx * dx + dy * dy;
            if (far > reach * reach) continue;
            // Of points about as near to the pointer, the one in front.
            const cost = far + 40 * depth;
            if (cost < least) [best, least] = [at, cost];
        }
        return best;
    }
}

/** Circles of latitude on the outermost shell, for their heights from -0.5 to 0.5. */
function circles(heights) {
    const found = new Float32Array(3 * TURNS * heights.length);
    heights.forEach((height, ring) => {
        const wide = Math.sqrt(Math.max(0, 0.25 - height * height));
        for (let turn = 0; turn < TURNS; turn += 1) {
            const angle = (2 * Math.PI * turn) / TURNS;
            const place = [wide * Math.cos(angle), height, wide * Math.sin(angle)];
            found.set(place, 3 * (ring * TURNS + turn));
        }
    });
    return found;
}
