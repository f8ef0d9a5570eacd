// All models with a picture each. Pictures are computed one after the other while the page is
// open, so a card first waits for its own.

import { make, spelled } from "/web/dom.js";
import { placeIcons } from "/web/icons.js";
import { spaced } from "/web/text.js";
import { toggleTheme } from "/web/theme.js";

const ASK_EVERY = 1000;
const FAMILIES = {
    life: "Automata",
    lbm: "Fluids",
    pde: "Waves, heat and reactions",
    neural: "Continuous and neural automata",
};

const element = (id) => document.getElementById(id);

function card({ name, title, summary, size, thumb }) {
    const picture = make("div", { class: "thumb waiting" }, "computing\u2026");
    const item = make(
        "li",
        { data: { search: `${name} ${title} ${summary}`.toLowerCase() } },
        make(
            "a",
            { class: "card", href: `/m/${encodeURIComponent(name)}` },
            picture,
            make(
                "div",
                { class: "card-text" },
                make(
                    "div",
                    { class: "card-head" },
                    make("b", {}, spaced(title)),
                    make("span", {}, size.join(" \u00d7 ")),
                ),
                make("p", {}, spelled(summary)),
            ),
        ),
    );
    return { item, picture, thumb };
}

/** Asks for pictures until all have arrived; one at a time, as they are made. */
async function fill(cards) {
    let waiting = cards;
    while (waiting.length > 0) {
        const later = [];
        for (const each of waiting) {
            const answer = await fetch(each.thumb).catch(() => null);
            if (answer?.status === 200) {
                each.picture.classList.remove("waiting");
                each.picture.replaceChildren(
                    make("img", { src: each.thumb, alt: "", decoding: "async" }),
                );
            } else if (answer?.status === 404) {
                each.picture.classList.remove("waiting");
                each.picture.textContent = "no picture";
            } else later.push(each);
        }
        waiting = later;
        if (waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
    }
}

function show(models) {
    const cards = [];
    for (const [family, members] of Object.entries(
        Object.groupBy(models, (model) => model.family),
    )) {
        const made = members.map(card);
        cards.push(...made);
        element("models").append(
            make(
                "section",
                { class: "family", "aria-labelledby": `family-${family}` },
                make(
                    "h2",
                    { id: `family-${family}` },
                    FAMILIES[family] ?? family,
                    make("span", {}, String(members.length)),
                ),
                make(
                    "ul",
                    { class: "cards" },
                    made.map(({ item }) => item),
                ),
            ),
        );
    }
    element("models").setAttribute("aria-busy", "false");
    fill(cards);
}

function filter() {
    const words = element("filter").value.toLowerCase().split(/\s+/);
    let left = 0;
    for (const family of document.querySelectorAll(".family")) {
        let here = 0;
        for (const item of family.querySelectorAll("li")) {
            item.hidden = !words.every((word) => item.dataset.search.includes(word));
            if (!item.hidden) here += 1;
        }
        family.hidden = here === 0;
        left += here;
    }
    element("nothing").textContent = left === 0 ? "No model matches these words." : "";
}

// The token is a cookie by now; in the address it would be copied and shown.
const query = new URLSearchParams(location.search);
if (query.has("token")) {
    query.delete("token");
    const rest = query.size > 0 ? `?${query}` : "";
    history.replaceState(null, "", location.pathname + rest + location.hash);
}

placeIcons();
element("theme").addEventListener("click", toggleTheme);
element("filter").addEventListener("input", filter);
addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input")) return;
    event.preventDefault();
    element("filter").focus();
});

try {
    const answer = await fetch("/models.json");
    if (!answer.ok) throw new Error(String(answer.status));
    show((await answer.json()).models);
} catch (error) {
    element("models").setAttribute("aria-busy", "false");
    element("nothing").textContent =
        `The list of models could not be read (${error.message}). Reload the page.`;
}
