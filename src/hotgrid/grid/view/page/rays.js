// What the graphics processor does for each pixel of a volume: it follows a ray through a box.

export const VERTEX = `
out vec2 place;
void main() {
    vec2 corner = vec2(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1);
    place = corner;
    gl_Position = vec4(corner, 0.0, 1.0);
}`;

// Values and solids are two channels: between a value and a solid lies no third value. A field
// is a cloud that hides more the farther a value is from rest (zero, or the low end of the
// range). Two states are cells: the ray goes from cell to cell and ends at the first one alive.
export const FRAGMENT = `
precision highp float;
precision highp sampler3D;
uniform sampler3D values;
uniform sampler2D colours;
uniform vec3 eye, right, up, ahead, halfEdges;
uniform vec2 slope;
uniform float rest, density, reach;
uniform int steps;
uniform bool flip, cells;
in vec2 place;
out vec4 colour;

const vec3 STONE = vec3(0.55, 0.58, 0.63);
const vec3 ALIVE = vec3(0.36, 0.6, 0.93);

vec2 value(vec3 point) {
    vec3 where = point / (2.0 * halfEdges) + 0.5;
    if (!flip) where.y = 1.0 - where.y;
    return texture(values, where).rg;
}

float matter(vec2 here) {
    return max(here.g, min(1.0, abs(here.r - rest) / max(rest, 1.0 - rest)));
}

float difference(vec3 point, vec3 by) {
    return matter(value(point + by)) - matter(value(point - by));
}

// How much light the surface of a solid gets.
float lit(vec3 point, vec3 light) {
    vec3 slope_here = vec3(
        difference(point, vec3(reach, 0, 0)),
        difference(point, vec3(0, reach, 0)),
        difference(point, vec3(0, 0, reach)));
    float steep = length(slope_here);
    return steep < 0.01 ? 0.8 : 0.55 + 0.45 * abs(dot(slope_here / steep, light));
}

vec4 cloud(vec3 ray, float from, float to) {
    vec4 seen = vec4(0.0);
    float stride = 1.8 / float(steps);
    // A different start for each pixel turns rings into fine grain.
    float noise = dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715));
    float jitter = fract(52.9829189 * fract(noise));
    vec3 light = normalize(up - 1.5 * ahead - 0.7 * right);
    for (float way = from + stride * jitter; way < to; way += stride) {
        vec3 point = eye + way * ray;
        vec2 here = value(point);
        if (here.g > 0.5) {
            return seen + (1.0 - seen.a) * vec4(STONE * lit(point, light), 1.0);
        }
        float much = matter(here);
        float hides = much * much * density;
        if (hides < 0.02) continue;
        vec3 tint = textureLod(colours, vec2(here.r * 0.99609 + 0.00195, 0.5), 0.0).rgb;
        // Bright where there is less matter towards the light: one look, where a whole
        // gradient would take six.
        float rise = much - matter(value(point + light * reach));
        tint *= clamp(0.8 + 1.5 * rise, 0.45, 1.2);
        float alpha = 1.0 - exp(-hides * stride * 18.0);
        seen += (1.0 - seen.a) * alpha * vec4(tint, 1.0);
        if (seen.a > 0.97) break;
    }
    return seen;
}

vec4 blocks(vec3 ray, float from, vec3 entry) {
    ivec3 size = textureSize(values, 0);
    vec3 scale = vec3(size) / (2.0 * halfEdges);
    vec3 at = (eye + from * ray + halfEdges) * scale;
    vec3 go = ray * scale;
    if (!flip) {
        at.y = float(size.y) - at.y;
        go.y = -go.y;
    }
    // A ray along an axis never reaches the next cell of the others.
    go = mix(go, vec3(1e-6), lessThan(abs(go), vec3(1e-6)));
    vec3 turn = sign(go);
    ivec3 cell = clamp(ivec3(floor(at + go * 1e-4)), ivec3(0), size - 1);
    vec3 next = (vec3(cell) + max(turn, 0.0) - at) / go;
    vec3 every = abs(1.0 / go);
    vec3 face = step(vec3(from - 1e-5), entry);
    float way = 0.0;
    int most = size.x + size.y + size.z;
    for (int count = 0; count < most; count += 1) {
        vec2 here = texelFetch(values, cell, 0).rg;
        if (here.g > 0.5 || here.r * density > 0.3) {
            // Faces differ in brightness; distant ones are dimmer.
            float light = dot(face, vec3(0.78, 1.05, 0.62)) / max(1.0, dot(face, vec3(1)));
            vec3 tint = here.g > 0.5 ? STONE : ALIVE;
            return vec4(tint * light * (1.0 - 0.35 * min(1.0, way)), 1.0);
        }
        float nearest = min(next.x, min(next.y, next.z));
        face = step(next, vec3(nearest));
        way = nearest;
        cell += ivec3(face * turn);
        next += face * every;
        if (any(lessThan(cell, ivec3(0))) || any(greaterThanEqual(cell, size))) break;
    }
    return vec4(0.0);
}

void main() {
    vec3 ray = normalize(ahead + place.x * slope.x * right + place.y * slope.y * up);
    vec3 a = (-halfEdges - eye) / ray, b = (halfEdges - eye) / ray;
    vec3 near = min(a, b), far = max(a, b);
    float from = max(max(near.x, near.y), max(near.z, 0.0));
    float to = min(far.x, min(far.y, far.z));
    if (to <= from) colour = vec4(0.0);
    else colour = cells ? blocks(ray, from, near) : cloud(ray, from, to);
}`;
