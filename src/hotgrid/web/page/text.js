// Numbers and names as people read them.

const THIN = "\u2009";

/** A number with some significant digits; very large and small ones as powers of 10. */
export function short(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-3) {
        const [mantissa, exponent] = value.toExponential(Math.max(0, digits - 2)).split("e");
        const trimmed = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
        return `${trimmed}e${Number(exponent)}`.replaceAll("-", "\u2212");
    }
    const text = String(Number(value.toPrecision(digits)));
    return text.replace("-", "\u2212");
}

/** A whole number with its digits in groups of three. */
export function whole(value) {
    return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

/** A number that an input can hold, without the dust of binary fractions. */
export function plain(value) {
    return String(Number(Number(value).toPrecision(7)));
}

/** A name from the code as words: `momentum_x` is "Momentum x". */
export function titled(name) {
    const words = name.replaceAll("_", " ");
    return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The name of a class as words: `DoubleShear` is "Double Shear", `Life3D` "Life 3D". */
export function spaced(name) {
    return name.replace(/([a-z])([A-Z]|\d+D\b)/g, "$1 $2");
}
