"""The style and the script of the report: light and dark, without a network."""

STYLE = """
:root { color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --ink: #1c1c1a; --soft: #6b6a65; --line: #e5e4df;
  --c0: #2a78d6; --c1: #eb6834; --c2: #1b9d70; --c3: #4a3aa7; --c4: #d13f3e; --c5: #b47a00;
  --good: #1b7f4d; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root {
  --page: #161615; --card: #1f1f1d; --ink: #f0efeb; --soft: #a3a29b; --line: #33332f;
  --c0: #5a9df0; --c1: #ee8157; --c2: #37b98a; --c3: #a79cf0; --c4: #ee7b79; --c5: #d9a53a;
  --good: #5fcf97; --bad: #f2938c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 32px 24px 64px; }
header { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; }
h1 { font-size: 26px; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 15px; margin: 0; } h2 small { color: var(--soft); font-weight: 400; }
.status { padding: 1px 10px; border-radius: 99px; font-size: 13px;
  border: 1px solid currentColor; color: var(--soft); }
.status.good { color: var(--good); } .status.bad { color: var(--bad); }
.sub { color: var(--soft); margin: 4px 0 24px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 12px;
  margin-bottom: 20px; }
.tile, figure, section { background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.tile { padding: 12px 16px; } .tile b { display: block; font-size: 23px; font-weight: 600;
  font-variant-numeric: tabular-nums; letter-spacing: -.01em; }
.tile span, .tile i { color: var(--soft); font-size: 13px; font-style: normal; display: block; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr));
  gap: 16px; }
figure { margin: 0; padding: 14px 16px 8px; position: relative; }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 16px; }
.keys { display: flex; flex-wrap: wrap; gap: 0 14px; font-size: 13px; color: var(--soft); }
.key::before { content: ""; display: inline-block; width: 10px; height: 10px; margin-right: 6px;
  border-radius: 3px; background: var(--of); }
.key b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; display: block; margin-top: 6px; overflow: visible; }
.s0 { --of: var(--c0); } .s1 { --of: var(--c1); } .s2 { --of: var(--c2); }
.s3 { --of: var(--c3); } .s4 { --of: var(--c4); } .s5 { --of: var(--c5); }
.line, .raw { fill: none; stroke: var(--of); stroke-width: 2; stroke-linejoin: round; }
.raw { stroke-width: 1; opacity: .32; } .end { fill: var(--of); }
.grid { stroke: var(--line); } .mark { stroke: var(--soft); stroke-dasharray: 3 4; }
.tick { fill: var(--soft); font-size: 11.5px; font-variant-numeric: tabular-nums; }
.cursor { stroke: var(--soft); }
.tip { position: absolute; pointer-events: none; background: var(--card); color: var(--ink);
  border: 1px solid var(--line); border-radius: 8px; padding: 6px 10px; font-size: 13px;
  box-shadow: 0 4px 16px #0003; white-space: nowrap; font-variant-numeric: tabular-nums; }
section { margin-top: 16px; padding: 14px 16px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin-top: 8px; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px; }
table.few { width: auto; }
th, td { padding: 5px 28px 5px 0; border-top: 1px solid var(--line); vertical-align: top; }
tr:first-child th { border-top: 0; } .number { text-align: right; }
pre { margin: 8px 0 0; font-size: 13px; overflow-x: auto; }
td.text { overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 13px; margin-top: 24px; }
"""

SCRIPT = """
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const data = JSON.parse(figure.dataset.chart), svg = figure.querySelector("svg");
  const [left, top, right, bottom] = data.box, [first, last] = data.steps;
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cursor.setAttribute("class", "cursor"); cursor.setAttribute("y1", top);
  cursor.setAttribute("y2", bottom);
  const tip = document.createElement("div"); tip.className = "tip"; tip.hidden = true;
  figure.append(tip);
  const hide = () => { tip.hidden = true; cursor.remove(); };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = Math.min(right, Math.max(left, (event.clientX - box.left) * scale));
    const step = first + (x - left) / (right - left) * (last - first);
    cursor.setAttribute("x1", x); cursor.setAttribute("x2", x); svg.append(cursor);
    const rows = Object.entries(data.series).map(([name, points]) => {
      const gap = point => Math.abs(point[0] - step);
      const near = points.reduce((a, b) => gap(b) < gap(a) ? b : a);
      return `${name}: ${Number(near[1].toPrecision(5))} at step ${near[0]}`;
    });
    tip.textContent = ""; rows.forEach(row => {
      const line = document.createElement("div"); line.textContent = row; tip.append(line); });
    tip.hidden = false;
    const own = figure.getBoundingClientRect(), at = event.clientX - own.left;
    const over = at > own.width / 2;
    tip.style.left = over ? "auto" : `${at + 14}px`;
    tip.style.right = over ? `${own.width - at + 14}px` : "auto";
    tip.style.top = `${event.clientY - own.top - 12}px`;
  });
}
"""
