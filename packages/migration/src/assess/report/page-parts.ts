/** Style and script of the report's page. Both are constant: what is found is never part of them. */

/** For light and dark. */
const colors = {
  ink: "light-dark(#1c2128, #e6e9ed)",
  paper: "light-dark(#ffffff, #14181d)",
  soft: "light-dark(#f3f5f7, #1d232a)",
  line: "light-dark(#d5dae0, #38414b)",
  mute: "light-dark(#57606a, #9aa5b1)",
  error: "light-dark(#b42318, #ff8a7d)",
  unknown: "light-dark(#7a4fbf, #c3a6ff)",
  warning: "light-dark(#8a5a00, #f0b849)",
  info: "light-dark(#1f6f43, #6fd19b)",
};

/** The style: one column, tables that scroll on narrow screens, colours of the reader's system. */
export const pageStyle = `
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 78rem; background: ${colors.paper}; color: ${colors.ink};
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; }
.verdicts { display: flex; flex-wrap: wrap; gap: 1rem; margin: 0; }
.verdicts div { border: 1px solid ${colors.line}; border-radius: 8px; padding: .6rem 1rem; background: ${colors.soft}; }
dt, .made { color: ${colors.mute}; }
dd { margin: 0; font-size: 1.3rem; font-weight: 650; }
.filter { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 0;
  background: ${colors.paper}; border-bottom: 1px solid ${colors.line}; }
#find { font: inherit; padding: .3rem .5rem; width: 20rem; max-width: 100%; border: 1px solid ${colors.line}; border-radius: 6px;
  background: ${colors.paper}; color: ${colors.ink}; }
#shown { color: ${colors.mute}; }
.error { color: ${colors.error}; } .unknown { color: ${colors.unknown}; } .warning { color: ${colors.warning}; } .info { color: ${colors.info}; }
details { border: 1px solid ${colors.line}; border-radius: 8px; margin: 1rem 0; padding: .2rem 1rem .6rem; }
summary { cursor: pointer; padding: .4rem 0; }
.badge { border: 1px solid currentColor; border-radius: 999px; padding: 0 .5rem; font-size: .8rem; }
.count { color: ${colors.mute}; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid ${colors.line}; overflow-wrap: anywhere;
  min-width: 7rem; }
th { color: ${colors.mute}; font-weight: 550; border-top: 0; }
th:first-child, td:first-child { min-width: 13rem; }
th:last-child, td:last-child { white-space: nowrap; }
code { font-size: .9em; color: ${colors.mute}; }
.sides { margin: .4rem 0 0; font-size: .9em; }
.sides div { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem; border-top: 1px dotted ${colors.line}; }
.sides dd { font-size: 1em; font-weight: 400; }
[hidden] { display: none; }
@media print { .filter { display: none; } body { max-width: none; padding: 0; } details { break-inside: auto; } tr { break-inside: avoid; } }
`;

/** The script: filters by words and severity, and opens every group before the page is printed. */
export const pageScript = `
"use strict";
const find = document.getElementById("find");
const shown = document.getElementById("shown");
const boxes = [...document.querySelectorAll("input[name=severity]")];
const groups = [...document.querySelectorAll(".group")].map((group) => ({
  group,
  head: group.querySelector("summary").textContent.toLowerCase(),
  rows: [...group.querySelectorAll("tbody tr")].map((row) => ({ row, text: row.textContent.toLowerCase() })),
}));
const all = groups.reduce((sum, { rows }) => sum + rows.length, 0);
function apply() {
  const words = find.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const severities = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  let count = 0;
  for (const { group, head, rows } of groups) {
    let some = 0;
    for (const { row, text } of rows) {
      const fits = words.every((word) => text.includes(word) || head.includes(word));
      row.hidden = !fits;
      if (fits) some++;
    }
    group.hidden = some === 0 || !severities.has(group.dataset.severity);
    if (!group.hidden) count += some;
  }
  shown.textContent = count === all ? all + " findings" : count + " of " + all + " findings";
}
find.addEventListener("input", apply);
for (const box of boxes) box.addEventListener("change", apply);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== find) {
    event.preventDefault();
    find.focus();
  }
});
addEventListener("beforeprint", () => { for (const { group } of groups) group.open = true; });
apply();
`;
