// Light or dark: what the system says, until the reader chooses. Loaded before the first paint,
// so that the page never flashes in the other colours.

const KEY = "hotgrid.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** Storage can be forbidden; the choice then lasts as long as the page. */
export function remembered(key) {
    try {
        return localStorage.getItem(key);
    } catch {
        return null;
    }
}

export function remember(key, value) {
    try {
        if (value === null) localStorage.removeItem(key);
        else localStorage.setItem(key, value);
    } catch {
        // Nothing to do: see above.
    }
}

export function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : system.matches;
}

/** Calls back whenever the colours of the page change. */
export function onTheme(action) {
    addEventListener("hotgrid-theme", action);
    system.addEventListener("change", action);
}

/** The other colours. Choosing what the system says anyway gives the choice back to it. */
export function toggleTheme() {
    const dark = !isDark();
    const chosen = dark === system.matches ? null : dark ? "dark" : "light";
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    remember(KEY, chosen);
    dispatchEvent(new Event("hotgrid-theme"));
}

/** A colour token as the page shows it now, for canvases. */
export function token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const before = remembered(KEY);
if (before === "light" || before === "dark") document.documentElement.dataset.theme = before;
